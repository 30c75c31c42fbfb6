"""Calendar windows: the hours, days, weeks and months of the local time of an IANA zone.

A year of 365.2425 days, counted from 1970, has the starts of its windows in one sorted table, made
when it is first needed. Zones keep their first distance from UTC before 1600, and repeat with the
calendar every 400 years from 2400 on: far years are looked up in the 400 nearest ones that repeat.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from thund.grid import Sorter, Stretch, bounds_of
from thund_contract import vocabulary as v
from thund_contract.errors import CallerError

Times = NDArray[np.int64]

CYCLE_MS = 12_622_780_800_000
"""400 years, to the millisecond; a whole number of weeks."""

_YEARS = 400
_YEAR_MS = CYCLE_MS // _YEARS
_FIRST_YEAR, _LAST_YEAR = 1600 - 1970, 2400 - 1970
_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000
_MONDAY_MS = 4 * _DAY_MS
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_STEP_MS = _DAY_MS
"""Between two looks at a zone's distance from UTC: in tzdata two changes are six days apart."""

_MARGIN_MS = 40 * _DAY_MS
"""Beside a year: more than a month and the largest distance from UTC, twice."""

_NEAR_YEARS = 3
"""Years that a batch may span for its windows to be numbered, and its rows sorted by counting."""

_KEPT = 256
"""Years whose tables are kept."""


class Calendar:
    """The grid of calendar windows.

    Law: G5.
    Raises: CallerError for an unknown zone or unit.
    """

    def __init__(self, zone: str, unit: str, offset_ms: int) -> None:
        _check(zone, unit)
        self._zone, self._unit, self._offset = zone, unit, offset_ms
        self._sorter = Sorter()
        self._near = (0, -1, np.empty(0, np.int64))

    def cells(self, event_time: Times, rows: NDArray[np.uint32]) -> list[Stretch]:
        """The windows that some rows are in, and their rows; rows: which, or none for all.

        Cost: 5 to 20 ns a row where a batch spans several windows.
        """
        times = np.ascontiguousarray(event_time[rows] if len(rows) else event_time)
        low, high = bounds_of(times, rows[:0])
        if high // _YEAR_MS - low // _YEAR_MS >= _NEAR_YEARS:
            starts, _ = self.windows_of(times)
            return self._sorter.by_cell(
                starts, rows, first=int(starts.min()), last=int(starts.max())
            )
        table = self._table(low // _YEAR_MS, high // _YEAR_MS)
        first, last = (np.searchsorted(table, [low, high], "right") - 1).tolist()
        if first == last:
            return [(int(table[first]), rows, 0, len(times))]
        table = table[first : last + 1]
        numbers = np.searchsorted(table, times, "right") - 1
        found = self._sorter.by_cell(numbers, rows, first=0, last=last - first)
        return [(int(table[number]), order, lo, hi) for number, order, lo, hi in found]

    def is_cell(self, start: int) -> bool:
        """Whether a window starts there."""
        return self.window(start)[0] == start

    def windows(self, cell: int, *, after: int = v.NEVER) -> list[tuple[int, int]]:
        """Start and end of the window that starts there, if it ends after a time."""
        window = self.window(cell)
        return [window] if window[1] > after else []

    def last_window(self, cell: int) -> tuple[int, int]:
        """Start and end of the window that starts there."""
        return self.window(cell)

    def window(self, time: int) -> tuple[int, int]:
        """Start and end of the window that holds a time."""
        year = time // _YEAR_MS
        table = self._table(year, year)
        place = int(np.searchsorted(table, time, "right"))
        return int(table[place - 1]), int(table[place])

    def windows_of(self, times: Times) -> tuple[Times, Times]:
        """Starts and ends of the windows that hold some times, over however many years."""
        home, shift = _at_home(times)
        starts, ends = np.empty_like(times), np.empty_like(times)
        by = np.argsort(home, kind="stable")
        cuts = np.flatnonzero(np.diff(home[by])) + 1
        for rows in np.split(by, cuts):
            table = _starts(self._zone, self._unit, self._offset, int(home[rows[0]]))
            places = np.searchsorted(table, times[rows] - shift[rows], "right")
            starts[rows] = table[places - 1] + shift[rows]
            ends[rows] = table[places] + shift[rows]
        return starts, ends

    def _table(self, first: int, last: int) -> Times:
        """The starts of the windows over some years in a row, from at most their first instant."""
        if self._near[:2] != (first, last):
            tables = [self._year(year) for year in range(first, last + 1)]
            table = tables[0] if first == last else np.unique(np.concatenate(tables))
            self._near = (first, last, table)
        return self._near[2]

    def _year(self, year: int) -> Times:
        home, shift = _at_home(np.array([year * _YEAR_MS]))
        return _starts(self._zone, self._unit, self._offset, int(home[0])) + shift


def _check(zone: str, unit: str) -> None:
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError) as error:
        raise CallerError(
            f"no time zone {zone!r}",
            allowed="an IANA name, for example Europe/Berlin or UTC",
            where="window zone",
            action="choose one of these names",
        ) from error
    if unit not in v.UNITS:
        raise CallerError(
            f"calendar unit {unit!r}",
            allowed=", ".join(v.UNITS),
            where="window unit",
            action="choose one of these",
        )


def _at_home(times: Times) -> tuple[Times, Times]:
    """The year in whose table a time is looked up, and how much later the time is."""
    year = times // _YEAR_MS
    early = (year - _FIRST_YEAR) % _YEARS + _FIRST_YEAR - _YEARS
    late = (year - _LAST_YEAR) % _YEARS + _LAST_YEAR
    home = np.where(year < _FIRST_YEAR, early, np.where(year < _LAST_YEAR, year, late))
    return home, (year - home) * _YEAR_MS


@lru_cache(_KEPT)
def _starts(zone: str, unit: str, offset_ms: int, year: int) -> Times:
    """The starts of the windows over a year, from the one that holds its first instant.

    The last one is where the window that holds its last instant ends.

    Law: G5.
    """
    low, high = year * _YEAR_MS, (year + 1) * _YEAR_MS
    changes, distances = _distances(zone, low - _MARGIN_MS, high + _MARGIN_MS)
    if unit == v.HOUR:
        starts = _hours(changes, distances, high + _MARGIN_MS, offset_ms)
    else:
        local = _local_starts(unit, low - _MARGIN_MS - offset_ms, high + _MARGIN_MS - offset_ms)
        starts = _reached(local + offset_ms, changes, distances)
    first = int(np.searchsorted(starts, low, "right")) - 1
    last = int(np.searchsorted(starts, high, "left"))
    out = starts[first : last + 1].copy()
    assert out[0] <= low
    assert out[-1] >= high
    return out


def _local_starts(unit: str, low: int, high: int) -> Times:
    """The local times from low to high at which a day, a week or a month starts."""
    if unit == v.MONTH:
        first_month, last_month = np.array([low, high]).astype("M8[ms]").astype("M8[M]")
        months = np.arange(first_month, last_month + 1)
        return months[1:].astype("M8[ms]").view(np.int64)
    size, first = (_DAY_MS, 0) if unit == v.DAY else (7 * _DAY_MS, _MONDAY_MS)
    return np.arange(-((first - low) // size) * size + first, high, size, dtype=np.int64)


def _reached(local: Times, changes: Times, distances: Times) -> Times:
    """The first instants at which the local time has reached some local times.

    Before the change i + 1 the local time has never reached changes[i + 1] + distances[i], nor
    what it came to before an earlier change. Two local times that the clock jumps over give one
    instant: no window starts and ends there.

    Law: G5.
    """
    heights = np.maximum.accumulate(changes[1:] + distances[:-1])
    at = np.searchsorted(heights, local, "right")
    return np.unique(np.maximum(changes[at], local - distances[at]))


def _hours(changes: Times, distances: Times, high: int, offset_ms: int) -> Times:
    """The instants at which a local hour starts, or the distance from UTC changes.

    Law: G5.
    """
    pieces = []
    for since, until, distance in zip(
        changes.tolist(), [*changes[1:].tolist(), high], distances.tolist(), strict=True
    ):
        first = since + (offset_ms - distance - since) % _HOUR_MS
        pieces += [np.array([since]), np.arange(first, until, _HOUR_MS)]
    return np.unique(np.concatenate(pieces))


def _distances(zone: str, low: int, high: int) -> tuple[Times, Times]:
    """The instants at which a zone's distance from UTC changes, from low on, and what it is then.

    Shape: the first instant is low itself.
    """
    info = ZoneInfo(zone)
    changes, distances = [low], [_distance(info, low)]
    for at in range(low + _STEP_MS, high + _STEP_MS, _STEP_MS):
        distance = _distance(info, at)
        if distance != distances[-1]:
            changes.append(_first_at(info, at - _STEP_MS, at))
            distances.append(distance)
    return np.array(changes), np.array(distances)


def _first_at(info: ZoneInfo, before: int, after: int) -> int:
    """The instant at which the distance from UTC becomes what it is at `after`."""
    wanted = _distance(info, after)
    while after - before > 1:
        middle = (before + after) // 2
        if _distance(info, middle) == wanted:
            after = middle
        else:
            before = middle
    return after


def _distance(info: ZoneInfo, at: int) -> int:
    """The distance of local time from UTC at an instant, in milliseconds."""
    local = (_EPOCH + timedelta(milliseconds=at)).astimezone(info)
    distance = local.utcoffset()
    assert distance is not None
    return distance // timedelta(milliseconds=1)
