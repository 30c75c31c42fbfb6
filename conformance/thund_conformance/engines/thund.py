"""The implementation as an engine of the contract, over a store and a sink in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

import thund.engine
from thund.checkpoint import Checkpoints
from thund.epoch import Outbox
from thund.history import History
from thund.manifest import Manifest
from thund.sink import MemorySink, Sink
from thund.stores import open_store
from thund_conformance.engines.carrier import Carrier, from_arrow
from thund_conformance.engines.log_source import LogSource
from thund_conformance.engines.state import all_states, configs_of, remembered
from thund_contract.engine import Capabilities, Durable, Life, World
from thund_contract.scenario import Scenario
from thund_contract.vocabulary import (
    Config,
    Delete,
    EpochRecord,
    InvalidRow,
    LateRow,
    Pane,
    Put,
    Row,
    Unfit,
)


class Thund:
    """Lives of the implementation for one scenario, whose columns it knows.

    gather: rows of one step of the link go in as one batch; else one by one, and in rarer Arrow
    types. No law lets either show.
    """

    capabilities = Capabilities()

    def __init__(self, scenario: Scenario, *, gather: bool = True) -> None:
        self.name = "thund" if gather else "thund-rowwise"
        self.gather, self.carrier = gather, Carrier(scenario, other_types=not gather)
        self.source = LogSource(scenario, self.carrier)

    def world(self, config: Config) -> World:
        """An empty store and an empty table, both in memory."""
        return ThundWorld(config)

    def live(
        self, config: Config, world: World, *, now: Callable[[], int], durable: Durable
    ) -> Life:
        """A new process over the world."""
        own = cast("ThundWorld", world)
        engine = thund.engine.Engine(
            config,
            own.checkpoints(config, durable),
            own.sink,
            self.source,
            now=now,
            durable=durable,
        )
        return cast("Life", ThundLife(engine, self.carrier, gather=self.gather))


class ThundWorld:
    """The store and the sink; reading them back is what a user could do."""

    def __init__(self, config: Config) -> None:
        self.config, self.lives = config, 0
        self.store = open_store("memory://")
        self.sink = MemorySink()

    def checkpoints(self, config: Config, durable: Durable) -> Checkpoints:
        """The store as a new process opens it, under a nonce of its own."""
        self.lives += 1
        nonce = f"life-{self.lives}"
        return Checkpoints(self.store, config=config, definition={}, nonce=nonce, durable=durable)

    def epochs(self) -> tuple[EpochRecord, ...]:
        """Every committed epoch."""
        history = History(self.store)
        return tuple(epoch_record(self.config, history, m) for m in history.manifests())

    def table(self) -> tuple[Put, ...]:
        """The sink's rows."""
        return all_puts(self.config, self.sink)


class ThundLife:
    """One process. Rows that arrive wait here until something is asked that needs them."""

    def __init__(self, engine: thund.engine.Engine, carrier: Carrier, *, gather: bool) -> None:
        self._engine, self._carrier, self._gather = engine, carrier, gather
        self._waiting: list[tuple[Row, int]] = []

    @property
    def duplicates(self) -> int:
        return self._settled.duplicates

    def position(self, partition: str) -> int:
        return self._settled.position(partition)

    def assigned(self) -> tuple[str, ...]:
        return self._settled.assigned()

    def credit(self, partition: str) -> int:
        return self._settled.credit(partition)

    def send(self, partition: str, rows: int) -> None:
        self._settled.send(partition, rows)

    def deliver(self, row: Row, prev: int) -> None:
        self._waiting.append((row, prev))
        if not self._gather:
            self._hand_over()

    def add(self, partition: str) -> None:
        self._settled.add(partition)

    def remove(self, partition: str) -> None:
        self._settled.remove(partition)

    def tick(self) -> None:
        self._settled.tick()

    def resume(self) -> None:
        self._settled.resume()

    def idle(self, partitions: tuple[str, ...]) -> None:
        self._settled.idle(partitions)

    def commit(self) -> None:
        self._settled.commit()

    def drain(self) -> None:
        self._settled.drain()

    @property
    def _settled(self) -> thund.engine.Engine:
        """The engine, once it has every row that arrived."""
        self._hand_over()
        return self._engine

    def _hand_over(self) -> None:
        if self._waiting:
            rows, self._waiting = self._waiting, []
            self._engine.deliver(self._carrier.delivery(rows))


def epoch_record(config: Config, history: History, manifest: Manifest) -> EpochRecord:
    """One committed epoch, read back from the store."""
    outbox, state = history.outbox(manifest.epoch), history.state(manifest.epoch)
    configs, shown = configs_of(config), outbox.shown()
    return EpochRecord(
        epoch=manifest.epoch,
        items=manifest.items,
        watermark=manifest.watermark,
        partitions=manifest.partitions,
        state=all_states(config, state, manifest.watermark),
        outbox=tuple(p for n, one in configs.items() for p in _outbox_rows(one, shown[n].rows)),
        late=_late(outbox),
        invalid=_invalid(outbox),
        unfit=_unfit(outbox),
        drained=manifest.drained,
        seen=remembered(config, state),
        panes=tuple(pane for n, one in configs.items() for pane in _panes(one, shown[n].panes)),
    )


def _outbox_rows(config: Config, table: pa.Table) -> tuple[Put | Delete, ...]:
    """Rows of an outbox, tombstones too, sorted by id."""
    deleted = table.column("_deleted")
    gone = table.filter(deleted)
    ids = [value.hex() for value in gone.column("_gar_id").to_pylist()]
    tombstones = map(Delete, ids, gone.column("_epoch").to_pylist())
    rows: list[Put | Delete] = [*puts(config, table.filter(pc.invert(deleted))), *tombstones]
    return tuple(sorted(rows, key=lambda row: row.id))


def all_puts(config: Config, sink: Sink) -> tuple[Put, ...]:
    """The rows of all tables of a sink, sorted by id."""
    tables = [puts(one, sink.table(name)) for name, one in configs_of(config).items()]
    return tuple(sorted((put for table in tables for put in table), key=lambda put: put.id))


def puts(config: Config, table: pa.Table) -> tuple[Put, ...]:
    """Rows of an outbox or of a sink's table, sorted by id."""
    if not table.num_rows:
        return ()
    starts, ends = _milliseconds(table, "window_start"), _milliseconds(table, "window_end")
    keys = _rows([from_arrow(table.column(name)) for name in config.key], table.num_rows)
    values = _rows([from_arrow(table.column(a.name)) for a in config.aggregates], table.num_rows)
    ids = [value.hex() for value in table.column("_gar_id").to_pylist()]
    versions = table.column("_epoch").to_pylist()
    rows = zip(ids, versions, keys, starts, ends, values, strict=True)
    return tuple(sorted((Put(*row) for row in rows), key=lambda put: put.id))


def _panes(config: Config, table: pa.Table | None) -> tuple[Pane, ...]:
    """The lane of panes, in its order."""
    if table is None or not table.num_rows:
        return ()
    starts, ends = _milliseconds(table, "window_start"), _milliseconds(table, "window_end")
    keys = _rows([from_arrow(table.column(name)) for name in config.key], table.num_rows)
    values = _rows([from_arrow(table.column(a.name)) for a in config.aggregates], table.num_rows)
    ids = [value.hex() for value in table.column("_gar_id").to_pylist()]
    own = [table.column(name).to_pylist() for name in ("_pane", "_timing", "_retraction")]
    return tuple(Pane(*row) for row in zip(ids, *own, keys, starts, ends, values, strict=True))


def _rows(columns: list[list[object]], count: int) -> list[tuple[object, ...]]:
    return list(zip(*columns, strict=True)) if columns else [()] * count


def _milliseconds(table: pa.Table, name: str) -> list[Any]:
    column = table.column(name)
    assert column.type == pa.timestamp("ms", "UTC"), f"{name} is a {column.type}"
    milliseconds: list[Any] = column.combine_chunks().view(pa.int64()).to_pylist()
    return milliseconds


def _late(outbox: Outbox) -> tuple[LateRow, ...]:
    return tuple(LateRow(*row.values()) for row in outbox.late.to_pylist())


def _invalid(outbox: Outbox) -> tuple[InvalidRow, ...]:
    return tuple(InvalidRow(*row.values()) for row in outbox.invalid.to_pylist())


def _unfit(outbox: Outbox) -> tuple[Unfit, ...]:
    rows = outbox.unfit.to_pylist()
    return tuple(Unfit(r["_gar_id"].hex(), r["aggregate"], r["value"]) for r in rows)
