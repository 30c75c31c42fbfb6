"""The laws of admission: late rows, invalid rows, and that each row is counted once."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given

from thund_conformance import judge, strategies
from thund_conformance.scripts import config, drained, last, log, row, scenario, state_of
from thund_contract.scenario import (
    Barrier,
    Deliver,
    Scenario,
    Tick,
)
from thund_contract.vocabulary import (
    MAX_EVENT_TIME,
    MIN_EVENT_TIME,
    InvalidRow,
    LateRow,
    PartitionState,
    Rows,
)

few = strategies.share(4)


@pytest.mark.law("A1")
@pytest.mark.parametrize(("time", "is_late"), [(11, False), (10, False), (9, True), (-5, True)])
def test_required_a_row_is_late_strictly_below_the_watermark(
    engine_name: str, time: int, *, is_late: bool
) -> None:
    """W stands at 10.

    et   9    10   11
    late |    on time…
    """
    s = scenario(config(), [log("p0", 10, time)], Deliver("p0", 2), Barrier())
    assert [r.offset for r in last(judge.run_on(engine_name, s)).late] == ([1] if is_late else [])


@pytest.mark.law("A1")
def test_required_a_row_is_judged_before_it_moves_the_watermark(engine_name: str) -> None:
    """Two equal rows that both move W are both on time."""
    s = scenario(config(), [log("p0", 1, 30, 30)], Deliver("p0", 3), Barrier())
    assert last(judge.run_on(engine_name, s)).late == ()


@pytest.mark.law("A1")
def test_required_the_delay_lets_rows_in_up_to_its_length(engine_name: str) -> None:
    """Delay 5: after 20, W is 15; 15 is on time, 14 is late."""
    s = scenario(config(delay_ms=5), [log("p0", 20, 15, 14)], Deliver("p0", 3), Barrier())
    assert last(judge.run_on(engine_name, s)).late == (LateRow("p0", 2, 14, 15),)


@pytest.mark.law("A4")
@pytest.mark.parametrize(
    ("time", "reason"),
    [
        (None, "null"),
        (math.nan, "nan"),
        ("yesterday, more or less", "undecodable"),
        (MAX_EVENT_TIME + 1, "out_of_range"),
        (MIN_EVENT_TIME - 1, "out_of_range"),
    ],
)
def test_required_an_unusable_time_is_quarantined_and_moves_nothing(
    engine_name: str, time: object, reason: str
) -> None:
    """The rows before and after it count as if it were not there; its offset is passed."""
    s = scenario(config(), [log("p0", 5, time, 4, 6)], Deliver("p0", 4), Barrier())
    epoch = last(judge.run_on(engine_name, s))
    assert epoch.invalid == (InvalidRow("p0", 1, reason, 5),)
    assert [r.offset for r in epoch.late] == [2]
    assert epoch.partitions == (PartitionState("p0", True, 3, 6, 4, 2, 1, 1),)
    assert epoch.watermark == 6


@pytest.mark.law("A4")
@pytest.mark.parametrize("time", [MAX_EVENT_TIME, MIN_EVENT_TIME])
def test_required_the_ends_of_the_declared_range_are_good(engine_name: str, time: int) -> None:
    s = scenario(config(), [log("p0", time)], Deliver("p0", 1), Barrier())
    epoch = last(judge.run_on(engine_name, s))
    assert (epoch.invalid, epoch.watermark) == ((), time)


@pytest.mark.law("A4")
def test_required_the_guard_compares_with_the_last_clock_reading(engine_name: str) -> None:
    """Clock 0, guard 10: 10 is good and 11 is not; after a tick of 5, 15 is good and 16 is not."""
    times = [10, 11, 15, 16]
    s = scenario(
        config(max_future_ms=10),
        [log("p0", *times)],
        Deliver("p0", 2),
        Tick(5),
        Deliver("p0", 2),
        Barrier(),
    )
    epoch = last(judge.run_on(engine_name, s))
    assert epoch.invalid == (
        InvalidRow("p0", 1, "too_far_ahead", 10),
        InvalidRow("p0", 3, "too_far_ahead", 15),
    )
    assert epoch.watermark == 15


@pytest.mark.law("A4")
def test_required_each_epoch_reads_the_clock_once_at_its_start(engine_name: str) -> None:
    """The clock moved between two epochs; no tick is needed for the second one to see it."""
    s = scenario(
        config(max_future_ms=0),
        [log("p0", 0, 7)],
        Deliver("p0", 1),
        Barrier(),
        Tick(7),
        Deliver("p0", 1),
        Barrier(),
    )
    outcome = judge.run_on(engine_name, s)
    assert all(e.invalid == () for e in outcome.epochs)


@pytest.mark.law("A5")
@pytest.mark.parametrize("lane", [True, False])
def test_required_rows_are_counted_once_each(engine_name: str, *, lane: bool) -> None:
    logs = [log("p0", 5, None, 30, 2, 31, None), log("p1", 99)]
    s = drained(config(late_lane=lane), *logs)
    s = replace(s, steps=(Deliver("p1", 1), Deliver("p0", 6), Barrier()))
    epoch = last(judge.run_on(engine_name, s))
    p0, p1 = epoch.partitions
    assert (p0.accepted, p0.admitted, p0.late, p0.invalid) == (6, 3, 1, 2)
    assert (p1.accepted, p1.admitted, p1.late, p1.invalid) == (1, 1, 0, 0)


@pytest.mark.law("A5")
@few
@given(s=strategies.scenarios(strategies.PLAIN))
def test_required_each_accepted_row_is_counted_once(slow_engine_name: str, s: Scenario) -> None:
    """Per partition, against the items and the lanes of all epochs so far."""
    accepted: dict[str, int] = {}
    for epoch in judge.run_on(slow_engine_name, s).epochs:
        for item in epoch.items:
            if isinstance(item, Rows):
                accepted[item.partition] = accepted.get(item.partition, 0) + item.rows
        for p in epoch.partitions:
            assert p.accepted == p.admitted + p.late + p.invalid + p.filtered + p.repeated
            assert p.accepted == accepted.get(p.partition, 0)


@pytest.mark.law("A6")
def test_required_late_rows_are_kept_under_their_identity(engine_name: str) -> None:
    """Offsets with holes; W as it stood just before each row."""
    rows = (row("p0", 3, 20), row("p0", 7, 8), row("p0", 8, 25), row("p0", 20, 24))
    s = scenario(config(), [("p0", rows)], Deliver("p0", 4), Barrier())
    assert last(judge.run_on(engine_name, s)).late == (
        LateRow("p0", 7, 8, 20),
        LateRow("p0", 20, 24, 25),
    )


@pytest.mark.law("A6")
def test_required_late_rows_without_a_lane_are_counted(engine_name: str) -> None:
    s = scenario(config(late_lane=False), [log("p0", 20, 8, 9)], Deliver("p0", 3), Barrier())
    epoch = last(judge.run_on(engine_name, s))
    assert epoch.late == ()
    assert state_of(epoch, "p0").late == 2


@pytest.mark.law("A6")
def test_required_late_rows_stay_with_their_epoch(engine_name: str) -> None:
    """The lane is part of the outbox: an epoch shows its own late rows, once."""
    s = scenario(
        config(), [log("p0", 20, 8, 9)], Deliver("p0", 2), Barrier(), Deliver("p0", 1), Barrier()
    )
    assert [[r.offset for r in e.late] for e in judge.run_on(engine_name, s).epochs] == [[1], [2]]
