"""Situations that a test session must reach, so that no law passes by being empty.

The link and the outcomes are looked at; a table says what was seen, and how often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from thund_conformance.definition import window_end
from thund_contract.engine import Outcome
from thund_contract.scenario import Scenario
from thund_contract.vocabulary import (
    APPEND,
    BY_EPOCH,
    COMPLETE,
    END,
    LATE_RULES,
    NAN_TIME,
    NULL_TIME,
    OUT_OF_RANGE,
    PARTITION_RULE,
    STEPS,
    TOO_FAR_AHEAD,
    UNDECODABLE_TIME,
    UPDATE,
    WINDOW_RULE,
    Clock,
    Config,
    EpochRecord,
    Put,
    Row,
    Rows,
)

FAULT = "a run stopped by an error"
DUPLICATE = "a delivery came twice"
HELD = "a row waited for the one before it"
CREDIT_STOP = "a source stopped for lack of credit"
WINDOW_FULL = "an epoch was cut because a credit window was full"
KILLED_ALIVE = "a process was killed without a durable step before"
CRASH_AT_ONCE = "a process died at once"
CRASH_AFTER = "a process died after the step "
CRASH_IN_RECOVERY = "a process died while it recovered"
LOST_EPOCH = "an epoch was lost with its process"
ADDED_AGAIN = "a partition was added again"
REMOVED = "a partition was removed"
LATE = "a late row under the rule "
INVALID = "an invalid row: "
BEFORE_W = "a row before W that the window rule admits"
LATE_BY_PARTITION = "a row late by its own partition alone"
TIE_LATE = "an event time equal to W, which is on time"
TIE_WINDOW_LATE = "a row late in a window that W has closed exactly"
TIE_PARTITION = "an event time equal to the largest of its partition less the delay, on time"
TIE_END = "an event time equal to the end of a window with rows"
TIE_CLOSE = "a window closed by W equal to its end plus grace"
CLOSED_INSIDE = "a window opened and closed in one epoch"
LATE_CORRECTION = "a window corrected after an epoch that had shown it"
IN_GRACE = "a window corrected after W had passed its end"
MOVED_BY_EPOCH = "W moved at the end of an epoch"
GRACE_OPEN = "a window kept open by its grace"
NEGATIVE = "a window that starts before 1970"
HELD_BACK = "W held at NEVER by a partition without a valid row"
TWO_CLOCKS = "a second clock reading in an epoch"
EMPTY_OUTBOX = "an epoch with an empty outbox"
ROWLESS = "an epoch without rows"
UNFIT = "a value that does not fit its type"
SPARSE = "offsets with holes"
NULL_KEY = "a null in a key"
NAN_KEY = "a NaN in a key"
NULL_RESULT = "an aggregate over nulls only"
NO_KEY = "a pipeline without key columns"
OUTPUT = "output mode "
DRAINED = "a drain"

SITUATIONS: tuple[str, ...] = (
    *(OUTPUT + mode for mode in (APPEND, UPDATE, COMPLETE)),
    *(LATE + rule for rule in LATE_RULES),
    BEFORE_W,
    LATE_BY_PARTITION,
    *(
        INVALID + reason
        for reason in (NULL_TIME, NAN_TIME, UNDECODABLE_TIME, OUT_OF_RANGE, TOO_FAR_AHEAD)
    ),
    TIE_LATE,
    TIE_WINDOW_LATE,
    TIE_PARTITION,
    TIE_END,
    TIE_CLOSE,
    CLOSED_INSIDE,
    LATE_CORRECTION,
    IN_GRACE,
    MOVED_BY_EPOCH,
    GRACE_OPEN,
    NEGATIVE,
    HELD_BACK,
    DUPLICATE,
    HELD,
    SPARSE,
    CREDIT_STOP,
    WINDOW_FULL,
    ADDED_AGAIN,
    REMOVED,
    TWO_CLOCKS,
    EMPTY_OUTBOX,
    ROWLESS,
    UNFIT,
    NULL_KEY,
    NAN_KEY,
    NULL_RESULT,
    NO_KEY,
    KILLED_ALIVE,
    CRASH_AT_ONCE,
    *(CRASH_AFTER + step for step in STEPS),
    CRASH_IN_RECOVERY,
    LOST_EPOCH,
    DRAINED,
    FAULT,
)

_reached: Counter[str] = Counter()


def note(situation: str) -> None:
    """The situation was there once more."""
    assert situation in SITUATIONS, situation
    _reached[situation] += 1


def unreached() -> list[str]:
    """The situations that this process has not seen yet."""
    return [s for s in SITUATIONS if not _reached[s]]


def table() -> str:
    """How often each situation was seen."""
    width = max(map(len, SITUATIONS))
    lines = [f"{s.ljust(width)}  {_reached[s] or 'never'!s:>9}" for s in SITUATIONS]
    return "\n".join(lines)


def look(scenario: Scenario, outcome: Outcome) -> None:
    """Note what can be seen in a scenario and in what came of it."""
    config = scenario.config
    note(OUTPUT + config.output)
    if not config.key:
        note(NO_KEY)
    rows = {(r.partition, r.offset): r for _, log in scenario.logs for r in log}
    for _, log in scenario.logs:
        if any(b.offset > a.offset + 1 for a, b in pairwise(log)):
            note(SPARSE)
    numbers = {int(s.rpartition(":")[2]) for s in outcome.steps if s.startswith("state")}
    lost = [s for s in outcome.steps if s.startswith("state")]
    if len(lost) > len(outcome.epochs) or len(numbers) < len(lost):
        note(LOST_EPOCH)
    shown: set[str] = set()
    before = None
    for epoch in outcome.epochs:
        _look_at_epoch(config, epoch, before, shown)
        _look_at_rows(config, epoch, rows)
        _look_at_lateness(config, epoch, before, rows)
        before = epoch


def _look_at_epoch(
    config: Config, epoch: EpochRecord, before: EpochRecord | None, shown: set[str]
) -> None:
    counted = [item for item in epoch.items if isinstance(item, Rows)]
    _note_if(ROWLESS, not counted)
    _note_if(WINDOW_FULL, any(item.rows == config.credits for item in counted))
    _note_if(TWO_CLOCKS, sum(isinstance(item, Clock) for item in epoch.items) > 1)
    _note_if(EMPTY_OUTBOX, not epoch.outbox)
    _note_if(DRAINED, epoch.drained)
    _note_if(UNFIT, bool(epoch.unfit))
    _note_if(MOVED_BY_EPOCH, _moved_at_the_end(config, epoch, before))
    for bad in epoch.invalid:
        note(INVALID + bad.reason)
    states = [p for p in epoch.partitions if p.assigned]
    known = [p for p in states if p.max_event_time is not None]
    _note_if(HELD_BACK, 0 < len(known) < len(states))
    open_ends = [w.start_ms + config.window.size_ms for w in epoch.state]
    _note_if(GRACE_OPEN, config.grace_ms > 0 and any(end <= epoch.watermark for end in open_ends))
    was_open = {(repr(w.key), w.start_ms) for w in before.state} if before else set()
    for row in epoch.outbox:
        if not isinstance(row, Put):
            continue
        _note_if(NEGATIVE, row.start_ms < 0)
        _note_if(TIE_CLOSE, row.end_ms + config.grace_ms == epoch.watermark)
        _note_if(LATE_CORRECTION, row.id in shown)
        past = before is not None and row.end_ms <= before.watermark
        _note_if(IN_GRACE, past and row.id in shown and config.output == UPDATE)
        inside = config.output == APPEND and (repr(row.key), row.start_ms) not in was_open
        _note_if(CLOSED_INSIDE, inside and epoch.watermark != END)
        _note_if(NULL_KEY, None in row.key)
        _note_if(NAN_KEY, any(isinstance(v, float) and v != v for v in row.key))  # noqa: PLR0124
        _note_if(NULL_RESULT, None in row.values)
        shown.add(row.id)


def _moved_at_the_end(config: Config, epoch: EpochRecord, before: EpochRecord | None) -> bool:
    """Nothing but rows and readings of the clock was there, and W is another one."""
    if config.watermark_update != BY_EPOCH or before is None:
        return False
    only_rows = all(isinstance(item, Rows | Clock) for item in epoch.items)
    return only_rows and epoch.watermark != before.watermark


def _look_at_lateness(
    config: Config,
    epoch: EpochRecord,
    before: EpochRecord | None,
    rows: dict[tuple[str, int], Row],
) -> None:
    """What the late lane and the largest times of the epoch before say of each row."""
    for late in epoch.late:
        note(LATE + config.late_rule)
        _note_if(LATE_BY_PARTITION, late.event_time >= late.watermark)
        closed_exactly = window_end(config, late.event_time) + config.grace_ms == late.watermark
        _note_if(TIE_WINDOW_LATE, config.late_rule == WINDOW_RULE and closed_exactly)
    if before is None or not config.late_lane:
        return
    largest = {p.partition: p.max_event_time for p in before.partitions}
    for row in _admitted(epoch, rows):
        time, own = row.event_time, largest.get(row.partition)
        before_w = isinstance(time, int) and time < before.watermark
        _note_if(BEFORE_W, before_w and config.late_rule == WINDOW_RULE)
        tie = own is not None and time == own - config.delay_ms
        _note_if(TIE_PARTITION, tie and config.late_rule == PARTITION_RULE)


def _look_at_rows(config: Config, epoch: EpochRecord, rows: dict[tuple[str, int], Row]) -> None:
    """Ties are seen from outside: a time that equals a W or an end that the epoch showed."""
    ends = {w.start_ms + config.window.size_ms for w in epoch.state}
    ends |= {put.end_ms for put in epoch.outbox if isinstance(put, Put)}
    for row in _admitted(epoch, rows):
        _note_if(TIE_LATE, row.event_time == epoch.watermark)
        _note_if(TIE_END, row.event_time in ends)


def _admitted(epoch: EpochRecord, rows: dict[tuple[str, int], Row]) -> Iterator[Row]:
    """The rows of an epoch that no lane has."""
    refused = {(r.partition, r.offset) for r in epoch.late}
    refused |= {(r.partition, r.offset) for r in epoch.invalid}
    for item in epoch.items:
        if not isinstance(item, Rows):
            continue
        for offset in range(item.first, item.last + 1):
            place = (item.partition, offset)
            if place in rows and place not in refused:
                yield rows[place]


def _note_if(situation: str, seen: bool) -> None:
    if seen:
        note(situation)
