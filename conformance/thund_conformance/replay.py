"""Run recorded items once more, epoch by epoch, without any death in between (laws T7, R1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from thund_contract.engine import Engine, Life, World
from thund_contract.vocabulary import (
    NONE_BEFORE,
    Add,
    Clock,
    Config,
    Drain,
    EpochRecord,
    Idle,
    Item,
    Remove,
    Row,
    Rows,
)

UNBOUNDED = 1_048_576


class Steps(Protocol):
    """What the items but Rows and Clock do: a Life has it, and so has the reference's process."""

    def add(self, partition: str) -> None: ...

    def remove(self, partition: str) -> None: ...

    def tick(self) -> None: ...

    def idle(self, partitions: tuple[str, ...]) -> None: ...

    def drain(self) -> None: ...


def take(
    item: Item,
    steps: Steps,
    *,
    first: bool,
    clock: Callable[[int], None],
    rows: Callable[[Rows], None],
) -> None:
    """Let one recorded item happen again.

    An epoch's first clock reading is taken by the process itself, once the clock is set.
    Law: K3, T7.
    """
    match item:
        case Clock(now_ms):
            clock(now_ms)
            if not first:
                steps.tick()
        case Add(partition):
            steps.add(partition)
        case Remove(partition):
            steps.remove(partition)
        case Idle(partitions):
            steps.idle(partitions)
        case Drain():
            steps.drain()
        case Rows():
            rows(item)


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
                take(item, self.life, first=index == 0, clock=self._set_clock, rows=self._deliver)
            self.life.commit()
        return self.world

    def _set_clock(self, now_ms: int) -> None:
        self.clock_ms = now_ms

    def _deliver(self, run: Rows) -> None:
        partition, first, last, rows = run.partition, run.first, run.last, run.rows
        log = self.logs[partition]
        wanted = [i for i, row in enumerate(log) if first <= row.offset <= last]
        assert len(wanted) == rows, (
            f"{partition}: {len(wanted)} rows in [{first}, {last}], not {rows}"
        )
        self.life.send(partition, rows)
        for index in wanted:
            self.life.deliver(log[index], log[index - 1].offset if index else NONE_BEFORE)
