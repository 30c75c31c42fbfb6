"""W and lateness as the laws define them, over recorded items: written once more, for the suite only.

It knows nothing of windows but their bounds, and shares no code with any engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from thund_contract.engine import Outcome
from thund_contract.scenario import Scenario
from thund_contract.vocabulary import (
    BY_EPOCH,
    CALENDAR,
    END,
    NEVER,
    PARTITION_RULE,
    SESSION,
    WINDOW_RULE,
    Add,
    Config,
    Drain,
    EpochRecord,
    Idle,
    Item,
    Remove,
    Row,
    Rows,
    WindowSpec,
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
    """The definitions, run over the items of an outcome. Law: W1, W2, W3, W4, W5, W6, A1, A2, A3."""
    model = _Model(scenario)
    ends = []
    for epoch in outcome.epochs:
        model.epoch(epoch)
        ends.append(model.w)
    return History(tuple(ends), tuple(model.rows), tuple(model.invalid))


def windows_of(window: WindowSpec, event_time: int) -> list[tuple[int, int]]:
    """The windows of a grid that hold a time; of a session, what the row covers. Law: G1, G2, G3."""
    assert window.kind != CALENDAR, "calendars have tests of their own"
    if window.kind == SESSION:
        return [(event_time, event_time + window.gap_ms)]
    size, step = window.size_ms, window.slide_ms or window.size_ms
    nearest = (event_time - window.offset_ms) // step
    starts = [n * step + window.offset_ms for n in range(nearest - size // step - 1, nearest + 2)]
    return [(start, start + size) for start in starts if start <= event_time < start + size]


def window_end(config: Config, event_time: int) -> int:
    """The end of the last window of a time."""
    return max(end for _, end in windows_of(config.window, event_time))


def sessions_of(covers: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Covers that overlap, made one. Law: G3."""
    out: list[tuple[int, int]] = []
    for start, end in sorted(covers):
        if out and start < out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((start, end))
    return out


class _Model:
    """W, each partition's largest time, and which of them are assigned."""

    def __init__(self, scenario: Scenario) -> None:
        self.config = scenario.config
        self.logs = {(r.partition, r.offset): r for _, log in scenario.logs for r in log}
        self.w = NEVER
        self.largest: dict[str, int] = {}
        self.active: set[str] = set()
        self.idle: set[str] = set()
        self.covers: dict[str, list[tuple[int, int]]] = {}
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
                self.idle.discard(partition)
                self._move()
            case Idle(partitions):
                self.idle.update(partitions)
                self._move()
            case Remove(partition):
                self.active.discard(partition)
                self._move()
            case Rows():
                for row in self._rows_of(item):
                    invalid = (row.partition, row.offset) in refused
                    self._row(row, epoch, invalid=invalid)
                    if self.config.watermark_update != BY_EPOCH and not invalid:
                        self._move()

    def _rows_of(self, item: Rows) -> Iterator[Row]:
        """Offsets may have holes."""
        places = [(item.partition, offset) for offset in range(item.first, item.last + 1)]
        return (self.logs[place] for place in places if place in self.logs)

    def _row(self, row: Row, epoch: int, *, invalid: bool) -> None:
        self.idle.discard(row.partition)
        if invalid:
            self.invalid.append((row.partition, row.offset, self.w))
            return
        time = row.event_time
        assert isinstance(time, int)
        passes = self.config.filter is None or row.passes is True
        late = passes and self._is_late(row, time)
        self.rows.append(Judged(epoch, row, time, self.w, late))
        if passes and not late:
            self.covers.setdefault(repr(row.key), []).append(
                (time, time + self.config.window.gap_ms)
            )
        self.largest[row.partition] = max(self.largest.get(row.partition, time), time)

    def _is_late(self, row: Row, time: int) -> bool:
        config = self.config
        if config.late_rule == WINDOW_RULE and config.window.kind == SESSION:
            spans = sessions_of(self.covers.get(repr(row.key), []))
            still_open = [s for s in spans if s[1] + config.grace_ms > self.w]
            return time + config.grace_ms < self.w and not any(a <= time < b for a, b in still_open)
        if config.late_rule == WINDOW_RULE:
            return window_end(config, time) + config.grace_ms <= self.w
        own = self.largest.get(row.partition, time) - config.delay_ms
        return time < self.w or (config.late_rule == PARTITION_RULE and time < own)

    def _move(self) -> None:
        awake = self.active - self.idle
        if awake and all(p in self.largest for p in awake):
            least = min(self.largest[p] for p in awake)
            self.w = max(self.w, least - self.config.delay_ms)
