"""From a definition to a run: opens the source, the state and the sink, and hands in the clock.

The one place, beside the edges, that knows the world: wall clock, randomness and files.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import msgspec
import pyarrow as pa

from thund.checkpoint import Checkpoints
from thund.definition import (
    INCREMENTAL,
    FilesSpec,
    MemorySpec,
    ParquetSpec,
    Pipeline,
    TriggerSpec,
)
from thund.engine import Engine
from thund.epoch import table_name
from thund.history import History
from thund.operators import operator_configs
from thund.panes import pane_schema
from thund.pipeline import Core
from thund.prepare import prepared_schema
from thund.recompute import recompute
from thund.results import outbox_schema
from thund.runners import local
from thund.runners.local import Progress
from thund.sink import MemorySink, Sink, rebuild
from thund.source import Source, next_row
from thund.standing import Standing, open_windows, standing_of
from thund.stores import open_store
from thund.windows import STATE
from thund_contract.engine import Durable
from thund_contract.errors import CallerError
from thund_contract.vocabulary import Config

Batches = Iterable[pa.RecordBatch] | Callable[[], Iterable[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of a run. note: what the user should know, such as a fallback of the mode.

    table, lanes and more, the tables of further windows by their names, are those of a sink in
    memory, which ends with the run; a database keeps its own.
    """

    mode: str
    note: str | None
    progress: Progress
    table: pa.Table | None
    lanes: dict[str, pa.Table]
    more: dict[str, pa.Table] = field(default_factory=dict)


def clock_ms() -> int:
    """Processing time, in milliseconds."""
    return time.time_ns() // 1_000_000


def open_source(pipeline: Pipeline, stream: Source | Batches | None = None) -> Source:
    """The source of a definition; a definition of a stream needs one, or the batches for one.

    Raises: CallerError where a stream has no batches, or files have some; InputError for files
    that cannot be read.
    """
    if isinstance(pipeline.source, FilesSpec):
        if stream is not None:
            raise CallerError(
                "a stream was given to a pipeline that reads files",
                allowed="a stream for a source of kind `stream`",
                where=f"pipeline {pipeline.name}",
                action="leave `stream` away, or define the source as a stream",
            )
        from thund.connectors.files import open_files

        return open_files(pipeline)
    if stream is None:
        raise CallerError(
            "the definition names a stream, and none was given",
            allowed="with_stream_input(...), or an iterable of Arrow record batches",
            where=f"pipeline {pipeline.name}",
            action="call thund.run(pipeline, stream=...), or name files as the source",
        )
    if hasattr(stream, "read"):
        return cast("Source", stream)  # a protocol cannot be told from an iterable by its type
    from thund.connectors.stream import with_stream_input

    return with_stream_input(stream, partition=pipeline.source.partition_column)


def _sink(pipeline: Pipeline, schema: pa.Schema) -> Sink:
    if isinstance(pipeline.sink, MemorySpec):
        return MemorySink()
    config = pipeline.config()
    columns = prepared_schema(config, schema)
    configs = operator_configs(config)
    if isinstance(pipeline.sink, ParquetSpec):
        from thund.connectors.parquet_sink import ParquetSink

        logs = {
            name: (pane_schema if each.panes else outbox_schema)(each, columns)
            for name, each in configs.items()
        }
        return ParquetSink(open_store(pipeline.sink.path), logs.pop(""), more=logs)
    from thund.connectors.duckdb_sink import DuckDbSink

    path, table = pipeline.sink.path, pipeline.sink.table
    more = {
        each.name: (
            each.table or f"{table}_{each.name}",
            outbox_schema(configs[each.name], columns),
        )
        for each in pipeline.more
    }
    return DuckDbSink(path, table, outbox_schema(configs[""], columns), more=more)


@contextmanager
def open_sink(pipeline: Pipeline, schema: pa.Schema) -> Iterator[Sink]:
    """The sink of a definition over a source's schema, closed at the end."""
    sink = _sink(pipeline, schema)
    try:
        yield sink
    finally:
        sink.close()


def run(
    pipeline: Pipeline,
    *,
    stream: Source | Batches | None = None,
    now: Callable[[], int] = clock_ms,
    nonce: str | None = None,
    durable: Durable = lambda step, epoch: None,
    progress: Callable[[Progress], None] = lambda progress: None,
    stop: threading.Event | None = None,
) -> Ran:
    """Run a pipeline to the end of what is there, or until `stop` is set.

    stream: what with_stream_input gives, any Source, or an iterable of record batches; only for a
    definition of kind `stream`.

    Law: R1, R2.
    Raises: ThundError in its families; what was committed stands.
    """
    mode, note = pipeline.runs_as()
    ended = stop or threading.Event()
    source = open_source(pipeline, stream)
    if mode == INCREMENTAL:
        checkpoints = _checkpoints(pipeline, nonce or secrets.token_hex(8), durable)
        before = checkpoints.newest()
        if before:
            source.verify(before.source)  # it settles the schema, which the sink needs
    with open_sink(pipeline, source.schema) as sink:
        if mode == INCREMENTAL:
            engine = Engine(pipeline.config(), checkpoints, sink, source, now=now, durable=durable)
            trigger = pipeline.trigger
            shown = local.run(engine, source, trigger, now=now, progress=progress, stop=ended)
        else:
            shown = _run_recompute(pipeline, source, sink, now=now, progress=progress, stop=ended)
        if not isinstance(sink, MemorySink):
            return Ran(mode, note, shown, None, {})
        more = {each.name: sink.table(each.name) for each in pipeline.more}
        return Ran(mode, note, shown, sink.table(), sink.lanes(), more)


def status(place: Pipeline | str | Path) -> Standing | None:
    """Where a pipeline stands after its newest epoch; None before the first one.

    place: a definition, its TOML file, or a state folder. Nothing is written.

    Law: W7.
    Raises: CallerError for a pipeline without a state, StoreError for one that cannot be read.
    """
    root: str | None = str(place)
    if isinstance(place, Pipeline):
        root = place.state_root
    elif str(place).endswith(".toml"):
        root = Pipeline.from_toml(Path(place)).state_root
    if root is None:
        raise CallerError(
            f"{place.name if isinstance(place, Pipeline) else place} has no state_root: recompute "
            "mode keeps nothing between runs",
            allowed="a state folder, or an incremental pipeline",
            where="status",
            action="look at the sink's table instead",
        )
    return standing_in(History(open_store(root, create=False)))


def standing_in(history: History) -> Standing | None:
    """Where the pipeline of a history stands; None before its first epoch. Law: W7."""
    newest = history.highest()
    if newest == 0:
        return None
    manifest = history.manifest(newest)
    config = msgspec.convert(manifest.config, Config)
    found = standing_of(
        config,
        manifest,
        windows=[
            window
            for name, each in operator_configs(config).items()
            for window in open_windows(
                each,
                manifest.watermark,
                history.table(newest, table_name(STATE, name)),
                operator=name,
            )
        ],
        history=((epoch, history.manifest(epoch).partitions) for epoch in range(newest, 0, -1)),
    )
    if found.since is None:
        return found
    known = replace(found.since, written_ms=history.written_ms(found.since.epoch))
    return replace(found, since=known)


def rebuild_sink(pipeline: Pipeline) -> int:
    """Empty the sink, whoever wrote it, and apply every committed outbox; gives how many.

    Law: K5.
    Raises: CallerError for a pipeline without a state, StoreError where an outbox is gone.
    """
    if pipeline.state_root is None:
        raise CallerError(
            f"pipeline {pipeline.name!r} has no state_root",
            allowed="a pipeline in incremental mode, whose outboxes are kept",
            where=f"pipeline {pipeline.name}",
            action="run it: recompute mode fills its table by itself",
        )
    checkpoints = _checkpoints(pipeline, secrets.token_hex(8), lambda step, epoch: None)
    checkpoints.recover()
    with open_sink(pipeline, open_source(pipeline).schema) as sink:
        return rebuild(checkpoints, sink, durable=lambda step, epoch: None)


def _checkpoints(pipeline: Pipeline, nonce: str, durable: Durable) -> Checkpoints:
    assert pipeline.state_root is not None
    return Checkpoints(
        open_store(pipeline.state_root),
        config=pipeline.config(),
        definition=msgspec.to_builtins(pipeline),
        nonce=nonce,
        durable=durable,
    )


def _run_recompute(
    pipeline: Pipeline,
    source: Source,
    sink: Sink,
    *,
    now: Callable[[], int],
    progress: Callable[[Progress], None],
    stop: threading.Event,
) -> Progress:
    """Once, or again whenever the source has grown; an interval says how long to wait between."""
    trigger = pipeline.trigger
    while True:
        core = recompute(
            pipeline.config(),
            source,
            sink,
            now=now,
            drain=trigger.drain,
            progress=lambda core: progress(_shown(core)),
        )
        progress(_shown(core))
        if trigger.once or not _grown(core, source, trigger, stop):
            return _shown(core)


def _grown(core: Core, source: Source, trigger: TriggerSpec, stop: threading.Event) -> bool:
    """Wait for rows after those of the last answer; False when asked to stop."""
    pause_s = local.WAIT_S if trigger.interval_ms is None else trigger.interval_ms / 1000
    while not stop.wait(pause_s):
        names = source.partitions()
        after = {name: core.position(name) for name in names}
        if set(names) != set(core.assigned()) or next_row(source, after) is not None:
            return True
    return False


def _shown(core: Core) -> Progress:
    return local.progress_of(core, epoch=0)
