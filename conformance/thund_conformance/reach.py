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
    DAY,
    END,
    HOPPING,
    LATE_RULES,
    NAN_TIME,
    NULL_TIME,
    OPERATIONS,
    OUT_OF_RANGE,
    PANES,
    PARTITION_RULE,
    SESSION,
    STEPS,
    TIMINGS,
    TOO_FAR_AHEAD,
    TUMBLING,
    UNDECODABLE_TIME,
    UPDATE,
    WINDOW_KINDS,
    WINDOW_RULE,
    Clock,
    Config,
    EpochRecord,
    Idle,
    Put,
    Row,
    Rows,
    WindowState,
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
KIND = "windows: "
OPERATION = "aggregate "
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
MISSED = "a row that some of its windows had closed for"
UNEVEN = "hopping windows whose size is no multiple of their slide"
MERGED_TWO = "two sessions of one key became one"
MERGED_THREE = "three sessions of one key became one"
TAKEN_BACK = "a row of the table was taken back"
EARLIER_START = "a session that was shown took an earlier start"
TIE_SESSION = "an event time equal to the end of a session of its key"
SHORT_DAY = "a day of 23 hours"
LONG_DAY = "a day of 25 hours"
IDLE = "a partition went idle"
TWO_IDLE = "two partitions went idle in one reading"
ALL_IDLE = "no assigned partition was awake"
IDLE_MOVED = "W moved because a partition went idle"
WOKEN = "a row woke its partition"
WOKEN_BY_INVALID = "an invalid row woke its partition"
IDLE_REMOVED = "an idle partition was removed"
FILTERED = "a row that the filter does not pass"
FILTERED_LATE = "a row that does not pass, before W"
REPEATED = "a row with an id that was remembered"
FORGOTTEN = "an id was forgotten"
SEVERAL = "several windows from one source"
PANES_OF = "panes: "
PANE = "a pane that is "
RETRACTION = "a pane taken back"
OUTPUT = "output mode "
DRAINED = "a drain"

SITUATIONS: tuple[str, ...] = (
    *(OUTPUT + mode for mode in (APPEND, UPDATE, COMPLETE)),
    *(KIND + kind for kind in WINDOW_KINDS),
    *(LATE + f"{rule}, {kind}" for rule in LATE_RULES for kind in WINDOW_KINDS),
    *(OPERATION + operation for operation in OPERATIONS),
    MISSED,
    UNEVEN,
    MERGED_TWO,
    MERGED_THREE,
    TAKEN_BACK,
    EARLIER_START,
    TIE_SESSION,
    SHORT_DAY,
    LONG_DAY,
    IDLE,
    TWO_IDLE,
    ALL_IDLE,
    IDLE_MOVED,
    WOKEN,
    WOKEN_BY_INVALID,
    IDLE_REMOVED,
    FILTERED,
    FILTERED_LATE,
    REPEATED,
    FORGOTTEN,
    SEVERAL,
    *(PANES_OF + panes for panes in PANES),
    *(PANE + timing for timing in TIMINGS),
    RETRACTION,
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

WRITTEN_ONLY = (FAULT,)
"""What no drawn scenario can reach, and the written ones do."""

_reached: Counter[str] = Counter()


def note(situation: str) -> None:
    """The situation was there once more."""
    assert situation in SITUATIONS, situation
    _reached[situation] += 1


def counts() -> Counter[str]:
    """How often this process has seen each situation."""
    return Counter(_reached)


def unreached(counted: Counter[str] = _reached) -> list[str]:
    """The situations that were not seen."""
    return [s for s in SITUATIONS if not counted[s]]


def table(counted: Counter[str] = _reached) -> str:
    """How often each situation was seen."""
    width = max(map(len, SITUATIONS))
    lines = [f"{s.ljust(width)}  {counted[s] or 'never'!s:>9}" for s in SITUATIONS]
    return "\n".join(lines)


def look(scenario: Scenario, outcome: Outcome) -> None:
    """Note what can be seen in a scenario and in what came of it."""
    config = scenario.config
    note(OUTPUT + config.output)
    note(KIND + config.window.kind)
    for aggregate in config.aggregates:
        _note_if(OPERATION + aggregate.operation, aggregate.operation in OPERATIONS)
    uneven = config.window.slide_ms and config.window.size_ms % config.window.slide_ms
    _note_if(UNEVEN, bool(uneven))
    _note_if(SEVERAL, bool(config.more))
    if config.panes:
        note(PANES_OF + config.panes)
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
        _look_at_sessions(config, epoch, before)
        _look_at_partitions(epoch, before, rows)
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
    open_ends = [_end_of(config, w) for w in epoch.state]
    _note_if(GRACE_OPEN, config.grace_ms > 0 and any(end <= epoch.watermark for end in open_ends))
    for pane in epoch.panes:
        note(RETRACTION if pane.retraction else PANE + pane.timing)
    was_open = {(repr(w.key), w.start_ms) for w in before.state} if before else set()
    for row in epoch.outbox:
        if not isinstance(row, Put):
            note(TAKEN_BACK)
            continue
        hours = (row.end_ms - row.start_ms) / 3_600_000 if config.window.unit == DAY else 0
        _note_if(SHORT_DAY, hours == 23)
        _note_if(LONG_DAY, hours == 25)
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
        note(LATE + f"{config.late_rule}, {config.window.kind}")
        _note_if(LATE_BY_PARTITION, late.event_time >= late.watermark)
        if config.late_rule == WINDOW_RULE and config.window.kind in (TUMBLING, HOPPING):
            closes = window_end(config, late.event_time) + config.grace_ms
            _note_if(TIE_WINDOW_LATE, closes == late.watermark)
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
    ends = {_end_of(config, w) for w in epoch.state}
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


def _look_at_sessions(config: Config, epoch: EpochRecord, before: EpochRecord | None) -> None:
    """Which of the sessions that an epoch found lie in one that it left."""
    if config.window.kind != SESSION or config.more or before is None:
        return
    found = [(repr(w.key), w.start_ms, w.end_ms or 0) for w in before.state]
    left = [(repr(w.key), w.start_ms, w.end_ms or 0) for w in epoch.state]
    left += [(repr(p.key), p.start_ms, p.end_ms) for p in epoch.outbox if isinstance(p, Put)]
    for key, start, end in left:
        inside = [a for k, a, b in found if k == key and start <= a and b <= end]
        _note_if(MERGED_TWO, len(inside) >= 2)
        _note_if(MERGED_THREE, len(inside) >= 3)
        _note_if(EARLIER_START, bool(inside) and start < min(inside) and config.output != APPEND)
        _note_if(TIE_SESSION, any(k == key and b == start for k, _, b in found))


def _look_at_partitions(
    epoch: EpochRecord, before: EpochRecord | None, rows: dict[tuple[str, int], Row]
) -> None:
    """Idle readings and what follows from them, and the counters that stand for no lane."""
    gone = [item for item in epoch.items if isinstance(item, Idle)]
    for item in gone:
        note(IDLE)
        _note_if(TWO_IDLE, len(item.partitions) > 1)
    only_reading = all(isinstance(item, Idle | Clock) for item in epoch.items)
    _note_if(
        IDLE_MOVED, only_reading and before is not None and epoch.watermark != before.watermark
    )
    assigned = [p for p in epoch.partitions if p.assigned]
    _note_if(ALL_IDLE, bool(assigned) and all(p.idle for p in assigned))
    _note_if(IDLE_REMOVED, any(p.idle and not p.assigned for p in epoch.partitions))
    earlier = {p.partition: p for p in before.partitions} if before else {}
    invalid = {(r.partition, r.offset) for r in epoch.invalid}
    for p in epoch.partitions:
        old = earlier.get(p.partition)
        first = next(
            (i for i in epoch.items if isinstance(i, Rows) and i.partition == p.partition), None
        )
        if old is not None and old.idle and first is not None:
            note(WOKEN)
            _note_if(WOKEN_BY_INVALID, (p.partition, first.first) in invalid)
        _note_if(MISSED, p.late_window_drops > (old.late_window_drops if old else 0))
        _note_if(FILTERED, p.filtered > (old.filtered if old else 0))
        _note_if(REPEATED, p.repeated > (old.repeated if old else 0))
    _note_if(FORGOTTEN, before is not None and len(before.seen) > len(epoch.seen))
    if before is not None:
        times = [row.event_time for row in _admitted(epoch, rows) if row.passes is not True]
        _note_if(FILTERED_LATE, any(isinstance(t, int) and t < before.watermark for t in times))


def _end_of(config: Config, state: WindowState) -> int:
    """Where an open window ends; a calendar's, which its start does not say, at its start."""
    return state.end_ms or state.start_ms + config.window.size_ms


def _note_if(situation: str, seen: bool) -> None:
    if seen:
        note(situation)
