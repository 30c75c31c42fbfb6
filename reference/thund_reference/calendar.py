"""Windows that follow the local time of a zone: days of 23 and 25 hours, skipped and repeated midnights.

It is slow and plain: distances from UTC are asked for one instant at a time. It knows no watermark.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from thund_contract.vocabulary import DAY, HOUR, MONTH, WEEK

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
CYCLE_DAYS = 146_097
"""400 years of the Gregorian calendar, a whole number of weeks."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST, LAST = -719_000 * DAY_MS, 2_932_000 * DAY_MS
"""Within the years 1 to 9999. Law: G5."""
REACH = 26 * HOUR_MS
"""No zone was ever farther from UTC."""

Span = tuple[int, int]


@lru_cache(65536)
def distance(zone: str, instant: int) -> int:
    """Local time less UTC, in ms; outside the years 1 to 9999 that of 400 years nearer. Law: G5."""
    cycle = CYCLE_DAYS * DAY_MS
    if instant < FIRST:
        instant += -(-(FIRST - instant) // cycle) * cycle
    if instant > LAST:
        instant -= -(-(instant - LAST) // cycle) * cycle
    offset = (EPOCH + timedelta(milliseconds=instant)).astimezone(ZoneInfo(zone)).utcoffset()
    assert offset is not None
    return offset // timedelta(milliseconds=1)


def stretches(zone: str, low: int, high: int) -> Iterator[Span]:
    """[low, high) cut where the distance from UTC changes; two changes are an hour apart or more."""
    begin = at = low
    while at < high:
        step = min(at + HOUR_MS, high)
        if distance(zone, at) != distance(zone, step):
            change, after = at, step
            while after - change > 1:
                middle = (change + after) // 2
                same = distance(zone, middle) == distance(zone, at)
                change, after = (middle, after) if same else (change, middle)
            if after < high:
                yield begin, after
                begin = after
        at = step
    yield begin, high


def unit_start(unit: str, day: int) -> int:
    """The first day of the day's unit, in days since 1970. Law: G5."""
    if unit == DAY:
        return day
    if unit == WEEK:
        return day - (day + 3) % 7
    assert unit == MONTH
    turns, rest = divmod(day + 719_162, CYCLE_DAYS)  # days since 0001-01-01
    first = date.fromordinal(rest + 1).replace(day=1)
    return turns * CYCLE_DAYS + first.toordinal() - 1 - 719_162


def next_unit(unit: str, first: int) -> int:
    """The first day of the unit that follows."""
    return unit_start(unit, first + {DAY: 1, WEEK: 7, MONTH: 31}[unit])


@lru_cache(65536)
def reached(zone: str, local: int) -> int:
    """The first instant whose local time has reached `local`. Law: G5."""
    for low, high in stretches(zone, local - REACH, local + REACH):
        at = max(low, local - distance(zone, low))
        if at < high:
            return at
    raise AssertionError(f"{zone} never reaches {local}")


def window(unit: str, zone: str, offset_ms: int, event_time: int) -> Span:
    """The window that holds the time. Law: G5."""
    local = event_time + distance(zone, event_time) - offset_ms
    if unit == HOUR:
        low = event_time - local % HOUR_MS
        spans = stretches(zone, low, low + HOUR_MS)
        return next(span for span in spans if span[0] <= event_time < span[1])
    first = unit_start(unit, local // DAY_MS)
    after = next_unit(unit, first)
    while reached(zone, after * DAY_MS + offset_ms) <= event_time:
        first, after = after, next_unit(unit, after)
    span = tuple(reached(zone, day * DAY_MS + offset_ms) for day in (first, after))
    assert span[0] <= event_time < span[1]
    return span[0], span[1]
