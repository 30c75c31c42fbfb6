"""W and lateness as the laws define them, over recorded items: written once more, for the suite only.

It knows nothing of windows but their ends, and shares no code with any engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from thund_contract.engine import Outcome
from thund_contract.scenario import Scenario
from thund_contract.vocabulary import (
    BY_EPOCH,
    END,
    NEVER,
    PARTITION_RULE,
    WINDOW_RULE,
    Add,
    Config,
    Drain,
    EpochRecord,
    Item,
    Remove,
    Row,
    Rows,
)


@dataclass(frozen=True, slots=True)
class Judged:
    """A valid row of the history: the W that it saw, and whether it was late."""

    epoch: int
    row: Row
    event_time: int
    watermark: int
    late: bool


@dataclass(frozen=True, slots=True)
class History:
    """What the laws make of the items. ends: W at the end of each epoch. rows: the valid ones.

    invalid: (partition, offset) and the W that the row saw, for those that the engine refused.
    """

    ends: tuple[int, ...]
    rows: tuple[Judged, ...]
    invalid: tuple[tuple[str, int, int], ...]


def history(scenario: Scenario, outcome: Outcome) -> History:
    """The definitions, run over the items of an outcome. Law: W1, W2, W3, W5, W6, A1, A2, A3."""
    model = _Model(scenario)
    ends = []
    for epoch in outcome.epochs:
        model.epoch(epoch)
        ends.append(model.w)
    return History(tuple(ends), tuple(model.rows), tuple(model.invalid))


def window_end(config: Config, event_time: int) -> int:
    """The end of the window of a time: the least point of the grid that is greater."""
    beyond = (event_time - config.window.offset_ms) // config.window.size_ms + 1
    return beyond * config.window.size_ms + config.window.offset_ms


class _Model:
    """W, each partition's largest time, and which of them are assigned."""

    def __init__(self, scenario: Scenario) -> None:
        self.config = scenario.config
        self.logs = {(r.partition, r.offset): r for _, log in scenario.logs for r in log}
        self.w = NEVER
        self.largest: dict[str, int] = {}
        self.active: set[str] = set()
        self.rows: list[Judged] = []
        self.invalid: list[tuple[str, int, int]] = []

    def epoch(self, epoch: EpochRecord) -> None:
        refused = {(bad.partition, bad.offset) for bad in epoch.invalid}
        for item in epoch.items:
            self._take(item, epoch.epoch, refused)
        self._move()

    def _take(self, item: Item, epoch: int, refused: set[tuple[str, int]]) -> None:
        match item:
            case Drain():
                self.w = END
            case Add(partition):
                self.active.add(partition)
                self._move()
            case Remove(partition):
                self.active.discard(partition)
                self._move()
            case Rows():
                for row in self._rows_of(item):
                    self._row(row, epoch, invalid=(row.partition, row.offset) in refused)
                    if self.config.watermark_update != BY_EPOCH:
                        self._move()

    def _rows_of(self, item: Rows) -> Iterator[Row]:
        """Offsets may have holes."""
        places = [(item.partition, offset) for offset in range(item.first, item.last + 1)]
        return (self.logs[place] for place in places if place in self.logs)

    def _row(self, row: Row, epoch: int, *, invalid: bool) -> None:
        if invalid:
            self.invalid.append((row.partition, row.offset, self.w))
            return
        time = row.event_time
        assert isinstance(time, int)
        self.rows.append(Judged(epoch, row, time, self.w, self._is_late(row.partition, time)))
        self.largest[row.partition] = max(self.largest.get(row.partition, time), time)

    def _is_late(self, partition: str, time: int) -> bool:
        config = self.config
        if config.late_rule == WINDOW_RULE:
            return window_end(config, time) + config.grace_ms <= self.w
        own = self.largest.get(partition, time) - config.delay_ms
        return time < self.w or (config.late_rule == PARTITION_RULE and time < own)

    def _move(self) -> None:
        if self.active and all(p in self.largest for p in self.active):
            least = min(self.largest[p] for p in self.active)
            self.w = max(self.w, least - self.config.delay_ms)
