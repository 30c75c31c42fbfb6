"""Calendar windows against the local time of each minute or second, as Arrow tells it."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from itertools import product
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from numpy.typing import NDArray

from thund.calendar import _STEP_MS, CYCLE_MS, Calendar, _at_home
from thund_contract import vocabulary as v

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = 86_400

YEARS = [
    ("America/New_York", 2024),
    ("Europe/Berlin", 1980),
    ("Australia/Lord_Howe", 2023),
    ("America/St_Johns", 1988),
    ("America/St_Johns", 2011),
    ("Pacific/Apia", 2011),
    ("America/Sao_Paulo", 2018),
    ("Asia/Kolkata", 2024),
    ("Africa/Casablanca", 2024),
    ("UTC", 2024),
]

MOMENTS = [
    ("America/Juneau", 1867, 10, 18),  # a whole day came twice
    ("Asia/Manila", 1844, 12, 31),  # a day did not come
    ("Europe/Amsterdam", 1937, 7, 1),  # half a minute
    ("Africa/Monrovia", 1972, 1, 7),  # 44 minutes and 30 seconds
    ("America/St_Johns", 2006, 10, 29),  # at one minute past midnight back to the day before
]


def seconds(year: int, month: int = 1, day: int = 1) -> int:
    return (datetime(year, month, day, tzinfo=UTC) - EPOCH) // timedelta(seconds=1)


def local_times(zone: str, at: NDArray[np.int64]) -> NDArray[np.int64]:
    """The local time at some seconds, by Arrow's own reading of the time zones."""
    naive = pc.local_timestamp(pa.array(at).cast(pa.timestamp("s", zone)))
    return np.asarray(naive.cast(pa.int64()).to_numpy())


def units(unit: str, local: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of the day, week or month of some local times."""
    if unit == v.MONTH:
        return local.astype("M8[s]").astype("M8[M]").astype(np.int64)
    return local // DAY if unit == v.DAY else (local // DAY + 3) // 7


def boundaries(
    unit: str, offset: int, at: NDArray[np.int64], local: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Where windows start among some seconds in a row, by the words of law G5."""
    if unit == v.HOUR:
        hours, distance = (local - offset) // 3600, local - at
        new = (np.diff(hours) != 0) | (np.diff(distance) != 0)
    else:
        new = np.diff(units(unit, np.maximum.accumulate(local) - offset)) > 0
    return at[1:][new]


def check(zone: str, at: NDArray[np.int64]) -> None:
    """Starts and ends of the windows over some seconds; the first two days only lead up to them."""
    local, inner = local_times(zone, at), 1000 * at[at >= at[0] + 2 * DAY]
    for unit, offset in product(v.UNITS, (0, -90 * 60)):
        calendar = Calendar(zone, unit, 1000 * offset)
        wanted = 1000 * boundaries(unit, offset, at, local)
        wanted = wanted[wanted > inner[0]]
        starts, ends = calendar.windows_of(inner)
        assert (starts <= inner).all()
        assert (ends > inner).all()
        found = starts[np.flatnonzero(np.diff(starts)) + 1]
        assert found.tolist() == wanted.tolist()
        assert ends[np.flatnonzero(np.diff(ends))].tolist() == wanted.tolist()


@pytest.mark.parametrize(("zone", "year"), YEARS)
def test_required_a_year_of_each_zone_is_cut_as_its_clocks_say(zone: str, year: int) -> None:
    """Each minute of a year: days of 23 and 25 hours, midnights skipped or shown twice."""
    check(zone, np.arange(seconds(year) - 5 * DAY, seconds(year + 1) + 5 * DAY, 60))


@pytest.mark.parametrize("moment", MOMENTS)
def test_required_the_second_of_a_change_is_found(moment: tuple[str, int, int, int]) -> None:
    """Old distances from UTC have seconds, and once a day came twice."""
    zone, *day = moment
    middle = seconds(*day)
    check(zone, np.arange(middle - 5 * DAY, middle + 4 * DAY))


def test_required_a_day_that_did_not_come_has_no_window() -> None:
    """In Apia the 29th of December 2011 was followed by the 31st."""
    calendar = Calendar("Pacific/Apia", v.DAY, 0)
    change = 1000 * (seconds(2011, 12, 30) + 10 * 3600)
    assert calendar.window(change - 1) == (change - 1000 * DAY, change)
    assert calendar.window(change) == (change, change + 1000 * DAY)
    assert not calendar.is_cell(change + 1)


def test_required_an_offset_in_milliseconds_moves_the_start() -> None:
    """The offset is of local time, to the millisecond."""
    calendar = Calendar("Europe/Berlin", v.DAY, 1)
    midnight = 1000 * (seconds(2024, 7, 1) - 2 * 3600)
    assert calendar.window(midnight)[1] == midnight + 1
    assert calendar.windows(midnight + 1) == [(midnight + 1, midnight + 1 + 1000 * DAY)]


@pytest.mark.parametrize("zone", ["America/New_York", "Africa/Casablanca", "Asia/Manila"])
def test_required_far_years_repeat_every_400_years(zone: str) -> None:
    """What zoneinfo says of a far year, it says of the year in whose table it is looked up."""
    rng, info = np.random.default_rng(1), ZoneInfo(zone)
    low, high = 1000 * seconds(1, 1, 3), 1000 * seconds(9999, 12, 28)
    times = rng.integers(low, high, 3000)
    _, shift = _at_home(times)
    assert set((shift % CYCLE_MS).tolist()) == {0}

    def distance(at: int) -> Any:
        return (EPOCH + timedelta(milliseconds=at)).astimezone(info).utcoffset()

    for time, near in zip(times.tolist(), (times - shift).tolist(), strict=True):
        assert distance(time) == distance(near)
    for unit in v.UNITS:
        calendar = Calendar(zone, unit, 0)
        start, end = calendar.window(v.MAX_EVENT_TIME)
        assert start <= v.MAX_EVENT_TIME < end
        nearer = v.MAX_EVENT_TIME - 300 * CYCLE_MS
        assert calendar.window(nearer) == (start - 300 * CYCLE_MS, end - 300 * CYCLE_MS)
        assert calendar.window(v.MIN_EVENT_TIME)[0] <= v.MIN_EVENT_TIME


@pytest.mark.parametrize("reach", [1, DAY, 40 * DAY, 900 * DAY, 40_000 * DAY, 40_000_000 * DAY])
@pytest.mark.parametrize("unit", [v.HOUR, v.DAY, v.MONTH])
def test_required_each_row_of_a_batch_goes_to_its_own_window(unit: str, reach: int) -> None:
    """Batches within one window, over a few years, and over the whole declared range."""
    rng = np.random.default_rng(reach)
    calendar = Calendar("America/Sao_Paulo", unit, 0)
    for rows in (np.empty(0, np.uint32), np.flatnonzero(rng.random(200) < 0.3).astype(np.uint32)):
        middle = 1000 * seconds(2018, 11, 4)
        times = middle + rng.integers(-1000 * reach, 1000 * reach, 200)
        got = {}
        for start, order, lo, hi in calendar.cells(times, rows):
            picked = order[lo:hi] if len(order) else np.arange(lo, hi)
            got.update(dict.fromkeys(picked.tolist(), start))
        wanted = rows.tolist() if len(rows) else range(200)
        assert got == {row: calendar.window(int(times[row]))[0] for row in wanted}
        for start in set(got.values()):
            assert calendar.is_cell(start)


def changes(zone: str) -> list[int]:
    """The instants at which a zone's distance from UTC changes, from the second part of its file."""
    data = files("tzdata.zoneinfo").joinpath(zone).read_bytes()
    kinds, standards, leaps, count, types, names = struct.unpack(">6l", data[20:44])
    data = data[44 + 5 * count + 6 * types + names + 8 * leaps + standards + kinds :]
    count, types = struct.unpack(">2l", data[32:40])
    times = struct.unpack(f">{count}q", data[44 : 44 + 8 * count])
    indices = data[44 + 8 * count : 44 + 9 * count]
    lines = data[44 + 9 * count :]
    distances = [struct.unpack(">l", lines[6 * i : 6 * i + 4])[0] for i in range(types)]
    told = [distances[0], *(distances[i] for i in indices)]
    return [at for at, old, new in zip(times, told, told[1:], strict=False) if old != new]


def test_required_no_zone_changes_twice_between_two_looks() -> None:
    """A table is made from one look at a zone per step; it would miss a change taken back sooner."""
    least, earliest = 10**12, 0
    for zone in available_timezones() - {"localtime"}:
        found = changes(zone)
        least = min([least, *np.diff(found).tolist()])
        earliest = min([earliest, *found])
    assert 1000 * least > 2 * _STEP_MS
    assert seconds(1600) < earliest < seconds(1860)
