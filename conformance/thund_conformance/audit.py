"""Run the committed history once more through the reference, and say where it differs.

It reads the manifests' items, the state folder and the source; it writes nothing.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec
import pyarrow as pa

from thund.batch import UNREADABLE_TIME, Delivery
from thund.history import History
from thund.manifest import Manifest
from thund.monoids import registered
from thund.prepare import Preparation
from thund.source import Source
from thund_conformance.compare import epoch_differences
from thund_conformance.engines.carrier import from_arrow
from thund_conformance.engines.thund import epoch_record
from thund_conformance.replay import take
from thund_contract.errors import CallerError
from thund_contract.vocabulary import (
    NONE_BEFORE,
    Aggregate,
    Config,
    EpochRecord,
    Item,
    Operator,
    Row,
    Rows,
)
from thund_reference import accumulators, output
from thund_reference.process import Process

Values = tuple[object, ...]

PER_UNIT = {"s": (1000, 1), "ms": (1, 1), "us": (1, 1000), "ns": (1, 1_000_000)}
"""Timestamp units as (multiply by, floor-divide by) to milliseconds."""


@dataclass(frozen=True, slots=True)
class Audit:
    """What was run again, and the first epoch that differs, if one does.

    differences: lines for a person; empty means that every outbox and every state is the same.
    """

    pipeline: str
    epochs: int
    rows: int
    differs_at: int | None
    differences: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether the whole history is what the reference makes of it."""
        return self.differs_at is None


def audit_history(
    history: History,
    source: Source,
    *,
    progress: Callable[[int, int], None] = lambda epoch, rows: None,
) -> Audit:
    """Every committed epoch's outbox and state, against the reference over the same items.

    Monoids of one's own have to be registered in this process, as for the run. It stops at the first epoch that differs: what follows would differ too.

    Law: T7, S1, K3.
    Raises: StoreError for a damaged state folder, InputError where rows are lost.
    """
    first = history.manifest(1)
    config = msgspec.convert(first.config, Config)
    accumulators.USER.update(registered())
    again = _Again(config, source)
    rows = 0
    for manifest in history.manifests():
        mine, read = again.epoch(manifest)
        rows += read
        theirs = epoch_record(config, history, manifest)
        lines = epoch_differences([mine], [theirs], names=("reference", "committed"))
        if lines:
            found = tuple(lines)
            return Audit(first.pipeline, manifest.epoch, rows, manifest.epoch, found)
        progress(manifest.epoch, rows)
    return Audit(first.pipeline, history.highest(), rows, None, ())


class _Again:
    """The reference's process, fed with what the items say."""

    def __init__(self, config: Config, source: Source) -> None:
        self.config, self.source, self.clock_ms = config, source, 0
        self.process = Process(config, lambda: self.clock_ms)

    def epoch(self, manifest: Manifest) -> tuple[EpochRecord, int]:
        """One epoch's items, and what they give; also how many rows they were."""
        items = manifest.items
        rows = self._rows(items)
        self.process.begin_epoch()
        for index, item in enumerate(items):
            take(
                item,
                self.process,
                first=index == 0,
                clock=self._set_clock,
                rows=lambda run: self._deliver(run, rows[run.partition]),
            )
        process = self.process
        process.end_epoch()
        rows_out, unfit, panes = output.outbox(process, manifest.epoch)
        record = EpochRecord(
            epoch=manifest.epoch,
            items=tuple(process.items),
            watermark=process.watermark,
            partitions=process.partition_states(),
            state=process.window_states(),
            outbox=tuple(rows_out),
            late=tuple(process.late),
            invalid=tuple(process.invalid),
            unfit=tuple(unfit),
            drained=process.drained,
            seen=process.remembered(),
            panes=tuple(panes),
        )
        return record, sum(i.rows for i in items if isinstance(i, Rows))

    def _set_clock(self, now_ms: int) -> None:
        self.clock_ms = now_ms

    def _deliver(self, run: Rows, rows: deque[Row]) -> None:
        """The run's rows; where the source has fewer now, the items will differ."""
        for _ in range(min(run.rows, len(rows))):
            self._accept(rows.popleft())

    def _accept(self, row: Row) -> None:
        prev = self.process.sequencers[row.partition].last
        for accepted in self.process.deliver(row, prev):
            self.process.accept(accepted)

    def _rows(self, items: tuple[Item, ...]) -> dict[str, deque[Row]]:
        """The epoch's rows, read again from the source, per partition in order."""
        wanted: dict[str, int] = {}
        for item in items:
            if isinstance(item, Rows):
                wanted[item.partition] = wanted.get(item.partition, 0) + item.rows
        return {p: deque(self._read(p, count)) for p, count in wanted.items()}

    def _read(self, partition: str, count: int) -> Iterator[Row]:
        known = self.process.sequencers.get(partition)
        last = known.last if known else NONE_BEFORE
        while count:
            delivery = self.source.read({partition: last}, {partition: count}, count)
            if delivery is None or not delivery.num_rows:
                return
            last, count = int(delivery.offset[-1]), count - delivery.num_rows
            yield from rows_of(self.config, delivery)


def rows_of(config: Config, delivery: Delivery) -> list[Row]:
    """Arrow rows as the reference sees them: with what comes of renaming, deriving and the filter."""
    count = delivery.num_rows
    prepared = Preparation(config, delivery.columns.schema).apply(delivery.columns)
    columns = prepared.columns
    ids = [from_arrow(columns.column(name)) for name in config.deduplicate]
    more = [_of_window(one, columns) for one in config.more]
    names = [delivery.partitions[i] for i in delivery.partition.tolist()]
    rows = zip(
        names,
        delivery.offset.tolist(),
        event_times(config, columns),
        *_of_window(config, columns),
        [True] * count if prepared.passes is None else prepared.passes.tolist(),
        _across(ids, count),
        _across([list(zip(*window, strict=True)) for window in more], count),
        strict=True,
    )
    return [Row(*row) for row in rows]


def _of_window(window: Config | Operator, columns: pa.RecordBatch) -> list[list[Values]]:
    """The key and the values that a window reads of each row."""
    keys = [from_arrow(columns.column(name)) for name in window.key]
    values = [_values(aggregate, columns) for aggregate in window.aggregates]
    return [_across(keys, columns.num_rows), _across(values, columns.num_rows)]


def _across(columns: Sequence[Sequence[object]], count: int) -> list[Values]:
    return list(zip(*columns, strict=True)) if columns else [()] * count


def _values(aggregate: Aggregate, columns: pa.RecordBatch) -> list[object]:
    """What an aggregate reads of each row: a value, or a tuple of several."""
    if aggregate.column is None:
        return [None] * columns.num_rows
    found = [from_arrow(columns.column(n)) for n in (aggregate.column, *aggregate.others)]
    return list(zip(*found, strict=True)) if aggregate.others else found[0]


def event_times(config: Config, columns: pa.RecordBatch) -> list[object]:
    """The event-time column as the contract's Row has it, decoded apart from the implementation.

    Law: A4.
    """
    column = columns.column(config.event_time)
    decoded = [_event_time(column.type, value) for value in _plain(column)]
    if UNREADABLE_TIME in columns.schema.names:
        unreadable = columns.column(UNREADABLE_TIME).to_pylist()
        decoded = ["unreadable" if u else t for u, t in zip(unreadable, decoded, strict=True)]
    return decoded


def _plain(column: pa.Array) -> list[Any]:
    """Python values; what is a whole number underneath comes as that number."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date64(kind):
        column = column.cast(pa.int64())
    elif pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    values: list[Any] = column.to_pylist()
    return values


def _event_time(kind: pa.DataType, value: Any) -> object:
    if value is None:
        return None
    if pa.types.is_timestamp(kind):
        times, per = PER_UNIT[kind.unit]
        return value * times // per
    if pa.types.is_date32(kind):
        return value * 86_400_000
    if pa.types.is_floating(kind):
        return math.floor(value) if math.isfinite(value) else math.nan
    if isinstance(value, str):
        return _parse(value)
    return value


def _parse(text: str) -> object:
    try:
        moment = dt.datetime.fromisoformat(text.strip())
    except ValueError:
        return text
    utc = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    since = utc - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return since // dt.timedelta(milliseconds=1)


# ---- the command -----------------------------------------------------------------------------------


@click.command()
@click.argument("place")
@click.option("--json", "as_json", is_flag=True, help="The verdict as one JSON document.")
def audit(place: str, *, as_json: bool) -> None:
    """Run the history of PLACE, a TOML file or a state folder, through the reference, and compare."""
    from rich.console import Console
    from rich.progress import Progress as Bar

    history, source = open_place(place)
    console = Console(stderr=True)
    with Bar(console=console, transient=True, disable=as_json or not console.is_terminal) as bar:
        task = bar.add_task("epochs", total=history.highest())
        found = audit_history(
            history, source, progress=lambda epoch, rows: bar.update(task, completed=epoch)
        )
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
    else:
        for line in found.differences:
            click.echo(line)
        verdict = "PASS" if found.same else f"FAIL at epoch {found.differs_at}"
        click.echo(f"audit: {verdict} epochs={found.epochs} rows={found.rows}")
    if not found.same:
        raise click.exceptions.Exit(1)


def open_place(place: str) -> tuple[History, Source]:
    """The history of a state folder, or of a definition's, and the source it was made from.

    Raises: CallerError where there is no history, or the source was a stream.
    """
    from thund.definition import FilesSpec, Pipeline
    from thund.launch import open_source
    from thund.stores import open_store

    root: str | None = place
    if place.endswith(".toml"):
        root = Pipeline.from_toml(Path(place)).state_root
    history = History(open_store(root, create=False)) if root else None
    if history is None or history.highest() == 0:
        raise CallerError(
            f"{place} has no committed epoch",
            allowed="a state folder of an incremental pipeline, or its TOML file",
            where=place,
            action="run the pipeline in incremental mode first",
        )
    pipeline = msgspec.convert(history.manifest(history.highest()).definition, Pipeline)
    if not isinstance(pipeline.source, FilesSpec):
        raise CallerError(
            f"pipeline {pipeline.name!r} read a stream, which only its caller can give again",
            allowed="a pipeline over files",
            where=place,
            action="call audit_history(history, source) with the same batches",
        )
    return history, open_source(pipeline)
