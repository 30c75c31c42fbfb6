"""Run recorded items once more, epoch by epoch, without any death in between (laws T7, R1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from thund_contract.engine import Engine, Life, World
from thund_contract.vocabulary import (
    NONE_BEFORE,
    Add,
    Clock,
    Config,
    Drain,
    EpochRecord,
    Item,
    Remove,
    Row,
    Rows,
)

UNBOUNDED = 1_048_576


def replay(
    engine: Engine,
    config: Config,
    logs: Mapping[str, tuple[Row, ...]],
    history: Iterable[EpochRecord],
) -> World:
    """A new world in which the items of a history happened, with the same cuts, in one life."""
    return _Replay(engine, replace(config, credits=UNBOUNDED), logs).run(history)


class _Replay:
    """One life, and a clock that shows what the items say."""

    def __init__(self, engine: Engine, config: Config, logs: Mapping[str, tuple[Row, ...]]) -> None:
        self.logs, self.clock_ms = logs, 0
        self.world = engine.world(config)
        self.life: Life = engine.live(
            config, self.world, now=lambda: self.clock_ms, durable=lambda name, epoch: None
        )

    def run(self, history: Iterable[EpochRecord]) -> World:
        for epoch in history:
            for index, item in enumerate(epoch.items):
                self._take(item, first=index == 0)
            self.life.commit()
        return self.world

    def _take(self, item: Item, *, first: bool) -> None:
        match item:
            case Clock(now_ms):
                self.clock_ms = now_ms
                if not first:
                    self.life.tick()
            case Add(partition):
                self.life.add(partition)
            case Remove(partition):
                self.life.remove(partition)
            case Drain():
                self.life.drain()
            case Rows(partition, first_offset, last, rows):
                self._deliver(partition, first_offset, last, rows)

    def _deliver(self, partition: str, first: int, last: int, rows: int) -> None:
        log = self.logs[partition]
        wanted = [i for i, row in enumerate(log) if first <= row.offset <= last]
        assert len(wanted) == rows, (
            f"{partition}: {len(wanted)} rows in [{first}, {last}], not {rows}"
        )
        self.life.send(partition, rows)
        for index in wanted:
            self.life.deliver(log[index], log[index - 1].offset if index else NONE_BEFORE)
