"""Apply each epoch's outbox to a table exactly once, and say where that cannot be known."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from thund.checkpoint import Checkpoints
from thund.epoch import LANES, Outbox
from thund.history import History
from thund_contract.engine import Durable
from thund_contract.errors import CallerError, StoreError
from thund_contract.vocabulary import SINK_STEP

RECOMPUTE = "recompute"
"""The generation of a table that mode `recompute` replaces as a whole (law R2)."""

REBUILD = (
    "run `thund state rebuild` to empty the table and fill it from the state's outboxes, "
    "or choose another table"
)


@dataclass(frozen=True, slots=True)
class Record:
    """What a sink keeps in the transaction of its rows: whose they are, and how far.

    Law: K5.
    """

    pipeline: str
    generation: str
    last: int


class Sink(Protocol):
    """A table that takes outboxes, one per epoch, in order. name: what messages call it.

    A pipeline of several windows has a table for each, and one record for all: what is said here of
    the table is said of every one of them.
    """

    name: str

    def record(self) -> Record | None:
        """The record of the last transaction; None where none was ever made.

        Law: K5.
        """
        ...

    def has_rows(self) -> bool:
        """Whether the table or a lane holds any row."""
        ...

    def apply(self, outbox: Outbox, *, pipeline: str, generation: str) -> bool:
        """Merge an outbox and move the record on, in one transaction; False if it has it already.

        Law: K5, M1, M2.
        Raises: CallerError for the table of another history, StoreError for a gap.
        """
        ...

    def replace(self, outbox: Outbox, *, pipeline: str, version: int) -> bool:
        """Put an outbox in place of the table and its lanes, in one transaction.

        version is the record's last as read before the rows were, plus 1; if another run was
        faster, nothing changes and the answer is False: compute again.
        Law: R2, K5.
        """
        ...

    def reset(self, *, pipeline: str, generation: str) -> None:
        """Empty the table and its lanes and set the record to (generation, 0).

        Law: K5.
        """
        ...

    def table(self, operator: str = "") -> pa.Table:
        """The rows, sorted by _gar_id, with _gar_id and _epoch and without _deleted.

        operator: the name of a further window; "" for the first one.
        """
        ...

    def lanes(self) -> dict[str, pa.Table]:
        """The lanes late, invalid and unfit, each with _epoch, in order."""
        ...

    def close(self) -> None:
        """Let go of what is held."""
        ...


# ---- the rules, the same for each sink ---------------------------------------------------------


def due(record: Record | None, *, name: str, rows: bool, own: Record) -> bool:
    """Whether an outbox is to be applied: own.last is its epoch. False: the table has it already.

    Law: K5.
    Raises: CallerError for the table of another pipeline, generation or mode, or one with rows and
    no record; StoreError for a gap.
    """
    last = check(record, name=name, rows=rows, own=own)
    if own.last <= last:
        return False
    if own.last != last + 1:
        raise StoreError(
            f"outbox {own.last} was offered to a table that has the epochs up to {last}",
            allowed=f"outbox {last + 1}",
            where=name,
            action="start again: outboxes are then offered from the table's last epoch on",
            code="sink_gap",
        )
    return True


def replaceable(record: Record | None, *, name: str, rows: bool, own: Record) -> bool:
    """Whether a recomputed table may be put in place as version own.last; False: beaten to it.

    Law: R2, K5.
    """
    return check(record, name=name, rows=rows, own=own) == own.last - 1


def check(record: Record | None, *, name: str, rows: bool, own: Record) -> int:
    """The last epoch of a table that is one's own, or may become so.

    Law: K5.
    Raises: see due.
    """
    if record is None:
        if rows:
            raise _not_ours("the table has rows, but no record of who wrote them", name, own)
        return 0
    if record.pipeline != own.pipeline:
        raise _not_ours(f"the table is that of pipeline {record.pipeline!r}", name, own)
    if record.generation != own.generation:
        raise _not_ours(f"the table is that of {_history(record.generation)}", name, own)
    return record.last


def newer(stored: int | None, version: int) -> bool:
    """Whether a row or a tombstone goes over what is stored under its id.

    Law: M1.
    """
    return stored is None or version > stored


# ---- publishing --------------------------------------------------------------------------------


def publish(checkpoints: Checkpoints, sink: Sink, *, durable: Durable) -> int:
    """Apply every committed outbox that the sink lacks, in order; gives how many it was.

    The sink is read first, then the manifests: so another engine that commits and publishes in
    between is never taken for a table that is ahead.
    Law: K1, K5, M2.
    Raises: StoreError if the sink is ahead of the state, or needs an outbox no longer kept.
    """
    record = sink.record()
    rows = record is None and sink.has_rows()
    own = Record(checkpoints.config.pipeline, checkpoints.generation, checkpoints.last)
    last = check(record, name=sink.name, rows=rows, own=own)
    if last > own.last:
        _require_not_ahead(checkpoints, sink, last)
    applied = 0
    for epoch in range(last + 1, own.last + 1):
        _require_kept(checkpoints, epoch, sink)
        outbox = checkpoints.outbox(epoch)
        if sink.apply(outbox, pipeline=own.pipeline, generation=own.generation):
            applied += 1
            durable(SINK_STEP, epoch)
    return applied


def rebuild(checkpoints: Checkpoints, sink: Sink, *, durable: Durable) -> int:
    """Empty a table, whoever wrote it, and fill it from the outboxes; only on being asked to.

    Law: K5.
    Raises: StoreError, with the table untouched, if an outbox is no longer kept.
    """
    for epoch in range(1, checkpoints.last + 1):
        _require_kept(checkpoints, epoch, sink)
    sink.reset(pipeline=checkpoints.config.pipeline, generation=checkpoints.generation)
    return publish(checkpoints, sink, durable=durable)


def recompute_version(sink: Sink, *, pipeline: str) -> int:
    """The version of a table that is to be computed now: read it before the rows.

    Law: R2, K5.
    """
    own = Record(pipeline, RECOMPUTE, 0)
    return check(sink.record(), name=sink.name, rows=sink.has_rows(), own=own) + 1


def _require_not_ahead(history: History, sink: Sink, last: int) -> None:
    if last > (highest := history.highest()):
        raise StoreError(
            f"the table has the epochs up to {last}, the state only those up to {highest}",
            allowed="a table that is at most as new as the state",
            where=f"{sink.name}; {history.store.url}",
            action=f"bring back the newer state_root; or {REBUILD}",
            code="sink_ahead",
        )


def _require_kept(history: History, epoch: int, sink: Sink) -> None:
    if not history.has_outbox(epoch):
        raise StoreError(
            f"the table needs the outbox of epoch {epoch}, which is no longer kept",
            allowed="a table that has every epoch whose outbox was collected",
            where=f"{sink.name}; {history.store.url}",
            action="bring back a newer copy of the table; or start a new state_root and a new "
            "table",
            code="outbox_gone",
        )


def _history(generation: str) -> str:
    if generation == RECOMPUTE:
        return "mode recompute"
    return f"another history (generation {generation}) of this pipeline in mode incremental"


def _not_ours(found: str, name: str, own: Record) -> CallerError:
    mode = "mode recompute" if own.generation == RECOMPUTE else f"generation {own.generation}"
    return CallerError(
        found,
        allowed=f"a new table, or one of pipeline {own.pipeline!r}, {mode}",
        where=name,
        action=REBUILD if own.generation != RECOMPUTE else "choose another table, or empty it",
        code="not_our_table",
    )


# ---- a sink in memory --------------------------------------------------------------------------


class MemorySink:
    """A table in this process, behind one lock; it outlives the engines that write to it.

    Law: K5, M1, R2.
    """

    def __init__(self, name: str = "memory") -> None:
        self.name = name
        self._lock = threading.Lock()
        self._record: Record | None = None
        self._rows: dict[str, pa.Table] = {}
        self._lanes = _empty_lanes()

    def record(self) -> Record | None:
        with self._lock:
            return self._record

    def has_rows(self) -> bool:
        with self._lock:
            return self._any_rows()

    def apply(self, outbox: Outbox, *, pipeline: str, generation: str) -> bool:
        own = Record(pipeline, generation, outbox.epoch)
        with self._lock:
            if not due(self._record, name=self.name, rows=self._any_rows(), own=own):
                return False
            before = {name: self._live(name, each.rows) for name, each in outbox.shown().items()}
            self._merge(before, outbox)
            self._record = own
        return True

    def replace(self, outbox: Outbox, *, pipeline: str, version: int) -> bool:
        own = Record(pipeline, RECOMPUTE, version)
        with self._lock:
            if not replaceable(self._record, name=self.name, rows=self._any_rows(), own=own):
                return False
            self._lanes = _empty_lanes()
            self._merge({name: _none(each.rows) for name, each in outbox.shown().items()}, outbox)
            self._record = own
        return True

    def reset(self, *, pipeline: str, generation: str) -> None:
        with self._lock:
            self._rows, self._lanes = {}, _empty_lanes()
            self._record = Record(pipeline, generation, 0)

    def table(self, operator: str = "") -> pa.Table:
        """The rows; before the first outbox its columns are not known, but for two. See Sink."""
        with self._lock:
            if operator not in self._rows:
                return pa.table(
                    {"_gar_id": pa.array([], pa.binary(16)), "_epoch": pa.array([], "int64")}
                )
            return self._rows[operator].sort_by("_gar_id")

    def lanes(self) -> dict[str, pa.Table]:
        with self._lock:
            return dict(self._lanes)

    def close(self) -> None:
        """Nothing is held."""

    def _any_rows(self) -> bool:
        return any(table.num_rows for table in (*self._lanes.values(), *self._rows.values()))

    def _live(self, operator: str, rows: pa.Table) -> pa.Table:
        live = self._rows.get(operator)
        if live is None:
            return _none(rows)
        require_schema(live.schema, _shown(rows).schema, name=self.name)
        return live

    def _merge(self, before: Mapping[str, pa.Table], outbox: Outbox) -> None:
        """The tables after an outbox, and its lanes. Law: M1."""
        shown = outbox.shown()
        self._rows = {name: merge(table, shown[name].rows) for name, table in before.items()}
        self._append(outbox)

    def _append(self, outbox: Outbox) -> None:
        """Add the lanes' rows; the record moves on under the same lock.

        Law: A6, M3.
        """
        self._lanes = {
            lane: pa.concat_tables([self._lanes[lane], with_epoch(rows, outbox.epoch)])
            for lane, rows in outbox.lanes().items()
        }


def merge(live: pa.Table, rows: pa.Table) -> pa.Table:
    """The live rows after an outbox: newer rows go over older ones, tombstones take away.

    Law: M1.
    """
    stored: dict[Any, Any] = dict(
        zip(live.column("_gar_id").to_pylist(), live.column("_epoch").to_pylist(), strict=True)
    )
    offered: Any = zip(
        rows.column("_gar_id").to_pylist(),
        rows.column("_epoch").to_pylist(),
        rows.column("_deleted").to_pylist(),
        strict=True,
    )
    taken = {
        id_: (place, deleted)
        for place, (id_, version, deleted) in enumerate(offered)
        if newer(stored.get(id_), version)
    }
    kept = [place for place, id_ in enumerate(stored) if id_ not in taken]
    put = [place for place, deleted in taken.values() if not deleted]
    return pa.concat_tables([_take(live, kept), _take(_shown(rows), put)])


def with_epoch(lane: pa.Table, epoch: int) -> pa.Table:
    """A lane's rows with the epoch they came in.

    Law: A6.
    """
    return lane.append_column("_epoch", pa.repeat(pa.scalar(epoch, pa.int64()), lane.num_rows))


def require_schema(table: pa.Schema, outbox: pa.Schema, *, name: str) -> None:
    """Refuse rows whose columns are not the table's. Raises: CallerError."""
    if not table.equals(outbox):
        raise CallerError(
            f"the table has the columns {columns(table)}",
            allowed=f"the columns {columns(outbox)}",
            where=name,
            action="choose another table, or change the pipeline's keys and aggregates back",
            code="table_schema",
        )


def columns(schema: pa.Schema) -> str:
    """The names and types of a schema on one line."""
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _shown(rows: pa.Table) -> pa.Table:
    return rows.drop_columns(["_deleted"])


def _none(rows: pa.Table) -> pa.Table:
    """A table for such rows, with none in it."""
    return _shown(rows).slice(0, 0)


def _take(table: pa.Table, places: list[int]) -> pa.Table:
    return table.take(pa.array(places, pa.int64()))


def _empty_lanes() -> dict[str, pa.Table]:
    return {name: with_epoch(schema.empty_table(), 0) for name, schema in LANES.items()}
