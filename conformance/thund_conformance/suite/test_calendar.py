"""Windows of local time: each instant is in one, and days have the hours that they have."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from thund_conformance import judge
from thund_conformance.scripts import calendar, config, drained, last, log, scenario
from thund_contract.scenario import Barrier, Deliver, DrainAll, Restart
from thund_contract.vocabulary import (
    DAY,
    HOUR,
    MAX_EVENT_TIME,
    MIN_EVENT_TIME,
    MONTH,
    UPDATE,
    WEEK,
    WINDOW_RULE,
    WindowSpec,
)

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def ms(text: str) -> int:
    """An instant of UTC."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1000


CASES = [
    (calendar(DAY, "UTC", 0), "2026-11-29T12:00", ("2026-11-29T00:00", "2026-11-30T00:00")),
    (
        calendar(DAY, "Europe/Berlin", 0),
        "2026-03-29T01:30",
        ("2026-03-28T23:00", "2026-03-29T22:00"),
    ),
    (
        calendar(DAY, "Europe/Berlin", 0),
        "2026-10-25T01:30",
        ("2026-10-24T22:00", "2026-10-25T23:00"),
    ),
    (
        calendar(DAY, "America/New_York", 0),
        "2026-11-01T06:30",
        ("2026-11-01T04:00", "2026-11-02T05:00"),
    ),
    (
        calendar(DAY, "Asia/Kolkata", 0),
        "2026-05-05T18:29",
        ("2026-05-04T18:30", "2026-05-05T18:30"),
    ),
    (
        calendar(DAY, "Europe/Berlin", 6 * HOUR_MS),
        "2026-03-29T03:59",
        ("2026-03-28T05:00", "2026-03-29T04:00"),
    ),
    (
        calendar(DAY, "America/Sao_Paulo", 0),
        "2018-11-04T02:59",
        ("2018-11-03T03:00", "2018-11-04T03:00"),
    ),
    (
        calendar(DAY, "America/Sao_Paulo", 0),
        "2018-11-04T03:00",
        ("2018-11-04T03:00", "2018-11-05T02:00"),
    ),
    (
        calendar(DAY, "America/St_Johns", 0),
        "2006-10-29T02:31",
        ("2006-10-29T02:30", "2006-10-30T03:30"),
    ),
    (
        calendar(DAY, "Pacific/Apia", 0),
        "2011-12-30T09:59",
        ("2011-12-29T10:00", "2011-12-30T10:00"),
    ),
    (
        calendar(DAY, "Pacific/Apia", 0),
        "2011-12-30T10:00",
        ("2011-12-30T10:00", "2011-12-31T10:00"),
    ),
    (calendar(WEEK, "UTC", 0), "1970-01-01T00:00", ("1969-12-29T00:00", "1970-01-05T00:00")),
    (
        calendar(WEEK, "Europe/Berlin", 0),
        "2026-03-29T12:00",
        ("2026-03-22T23:00", "2026-03-29T22:00"),
    ),
    (calendar(WEEK, "UTC", -DAY_MS), "2026-11-29T00:00", ("2026-11-29T00:00", "2026-12-06T00:00")),
    (calendar(MONTH, "UTC", 0), "1969-12-31T23:59", ("1969-12-01T00:00", "1970-01-01T00:00")),
    (calendar(MONTH, "UTC", 0), "2024-02-29T00:00", ("2024-02-01T00:00", "2024-03-01T00:00")),
    (
        calendar(MONTH, "America/New_York", 0),
        "2026-11-30T12:00",
        ("2026-11-01T04:00", "2026-12-01T05:00"),
    ),
    (
        calendar(HOUR, "Asia/Kolkata", 0),
        "2026-05-05T12:29",
        ("2026-05-05T11:30", "2026-05-05T12:30"),
    ),
    (
        calendar(HOUR, "America/New_York", 0),
        "2026-11-01T05:59",
        ("2026-11-01T05:00", "2026-11-01T06:00"),
    ),
    (
        calendar(HOUR, "America/New_York", 0),
        "2026-11-01T06:01",
        ("2026-11-01T06:00", "2026-11-01T07:00"),
    ),
    (
        calendar(HOUR, "Australia/Lord_Howe", 0),
        "2026-04-04T14:59",
        ("2026-04-04T14:00", "2026-04-04T15:00"),
    ),
    (
        calendar(HOUR, "Australia/Lord_Howe", 0),
        "2026-04-04T15:29",
        ("2026-04-04T15:00", "2026-04-04T15:30"),
    ),
    (
        calendar(HOUR, "America/St_Johns", 0),
        "2006-10-29T02:30",
        ("2006-10-29T02:30", "2006-10-29T02:31"),
    ),
    (
        calendar(HOUR, "America/St_Johns", 0),
        "2006-10-29T02:31",
        ("2006-10-29T02:31", "2006-10-29T03:30"),
    ),
]
"""Windows, an instant, and the one that it is in, in UTC."""


@pytest.mark.law("G5")
@pytest.mark.parametrize(("window", "time", "span"), CASES)
def test_required_a_time_is_in_the_window_of_its_local_clock(
    engine_name: str, window: WindowSpec, time: str, span: tuple[str, str]
) -> None:
    """Days of 23 and 25 hours, midnights that are skipped or come twice, half hours, a lost day."""
    s = drained(config(window=window), log("p0", ms(time)))
    (put,) = judge.run_on(engine_name, s).table
    assert (put.start_ms, put.end_ms) == (ms(span[0]), ms(span[1]))


@pytest.mark.law("G5")
@pytest.mark.parametrize("unit", [HOUR, DAY, WEEK, MONTH])
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "Pacific/Apia"])
def test_required_windows_follow_each_other_without_a_gap(
    engine_name: str, unit: str, zone: str
) -> None:
    """Rows at the first instant of a window and at the last: the next one starts where it ends."""
    base = {"Europe/Berlin": "2026-03-28T12:00", "America/St_Johns": "2006-10-28T12:00"}
    time = ms(base.get(zone, "2011-12-29T00:00"))
    for _ in range(40 if unit == HOUR else 3):
        window = config(window=calendar(unit, zone), delay_ms=80 * DAY_MS)
        (put,) = judge.run_on(engine_name, drained(window, log("p0", time))).table
        edges = drained(window, log("p0", put.start_ms, put.end_ms - 1, put.end_ms))
        table = sorted(judge.run_on(engine_name, edges).table, key=lambda p: p.start_ms)
        assert [(p.start_ms, p.values[0]) for p in table] == [(put.start_ms, 2), (put.end_ms, 1)]
        time = put.end_ms


@pytest.mark.law("G5")
@pytest.mark.parametrize("unit", [HOUR, DAY, WEEK, MONTH])
def test_required_the_calendar_holds_at_the_ends_of_the_declared_range(
    engine_name: str, unit: str
) -> None:
    """Beyond the years 1 to 9999 it repeats every 400 years, to the millisecond."""
    cycle = 146_097 * DAY_MS
    window = config(window=calendar(unit, "Europe/Berlin"), delay_ms=0)
    for far in (MIN_EVENT_TIME, MAX_EVENT_TIME):
        turns = (far - ms("1600-01-01" if far < 0 else "2400-01-01")) // cycle
        near = far - turns * cycle
        pairs = []
        for time in (far, near):
            (put,) = judge.run_on(engine_name, drained(window, log("p0", time))).table
            pairs.append((put.start_ms - time, put.end_ms - time))
        assert pairs[0] == pairs[1]


@pytest.mark.law("G5")
@pytest.mark.law("A2")
@pytest.mark.parametrize(("moved_to", "is_late"), [("2026-03-29T21:59", False), ("2026-03-29T22:00", True)])  # fmt: skip
def test_required_a_short_day_closes_an_hour_sooner(
    engine_name: str, moved_to: str, *, is_late: bool
) -> None:
    """Window rule in Berlin: 29 March 2026 ends at 22:00 UTC, 23 hours after it began."""
    s = scenario(
        config(window=calendar(DAY, "Europe/Berlin"), late_rule=WINDOW_RULE),
        [log("p0", ms(moved_to), ms("2026-03-29T12:00"))], Deliver("p0", 2), Barrier(),
    )  # fmt: skip
    assert [r.offset for r in last(judge.run_on(engine_name, s)).late] == ([1] if is_late else [])


@pytest.mark.law("G5")
@pytest.mark.law("R1")
def test_required_a_local_day_goes_on_after_a_restart(engine_name: str) -> None:
    s = scenario(
        config(window=calendar(DAY, "Europe/Berlin"), output=UPDATE, delay_ms=DAY_MS),
        [log("p0", ms("2026-03-29T12:00"), ms("2026-03-28T23:00"))], Deliver("p0", 1), Barrier(),
        Restart(), Deliver("p0", 1), Barrier(), DrainAll(),
    )  # fmt: skip
    assert [(p.start_ms, p.values[0]) for p in judge.run_on(engine_name, s).table] == [
        (ms("2026-03-28T23:00"), 2)
    ]
