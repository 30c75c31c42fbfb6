"""The laws of the watermark, on scenarios written by hand and drawn ones."""

from __future__ import annotations

import pytest
from hypothesis import given

from thund_conformance import judge, link, strategies
from thund_conformance.definition import history
from thund_conformance.scripts import config, counts, drained, last, log, scenario, state_of
from thund_contract.scenario import (
    AddPartition,
    Barrier,
    Deliver,
    DrainAll,
    RemovePartition,
    Restart,
    Scenario,
)
from thund_contract.vocabulary import BY_EPOCH, END, NEVER, LateRow

few = strategies.share(4)


@pytest.mark.law("W1")
def test_required_each_partition_keeps_its_largest_valid_event_time(engine_name: str) -> None:
    """A late row and a smaller one do not lower it; invalid ones do not touch it."""
    s = scenario(
        config(),
        [log("p0", 5, 30, 2, None, 7), log("p1", -4)],
        Deliver("p0", 5),
        Deliver("p1", 1),
        Barrier(),
        RemovePartition("p1"),
        Barrier(),
    )
    outcome = judge.run_on(engine_name, s)
    assert [state_of(e, "p0").max_event_time for e in outcome.epochs] == [30, 30]
    assert [state_of(e, "p1").max_event_time for e in outcome.epochs] == [-4, -4]
    assert not state_of(last(outcome), "p1").assigned


@pytest.mark.law("W1")
def test_required_the_largest_event_time_survives_a_restart(engine_name: str) -> None:
    """p0 stood at 30 before the restart; p1 then reaches 40, and W is 30, not NEVER."""
    s = scenario(
        config(),
        [log("p0", 30), log("p1", 20, 40)],
        Deliver("p0", 1),
        Deliver("p1", 1),
        Barrier(),
        Restart(),
        Deliver("p1", 1),
        Barrier(),
    )
    assert [e.watermark for e in judge.run_on(engine_name, s).epochs] == [20, 30]


@pytest.mark.law("W2")
@pytest.mark.parametrize(
    ("first", "second", "delay", "expected"),
    [((10,), (4,), 0, 4), ((10,), (4,), 3, 1), ((10, 12), (11,), 5, 6), ((-1,), (-9,), 2, -11)],
)
def test_required_watermark_is_the_least_of_the_largest_less_the_delay(
    engine_name: str, first: tuple[int, ...], second: tuple[int, ...], delay: int, expected: int
) -> None:
    logs = [log("p0", *first), log("p1", *second)]
    s = scenario(config(delay_ms=delay), logs, Deliver("p0", 9), Deliver("p1", 9), Barrier())
    assert last(judge.run_on(engine_name, s)).watermark == expected


@pytest.mark.law("W2")
def test_required_a_partition_without_a_valid_row_holds_the_watermark(engine_name: str) -> None:
    """p1 is assigned, and its one row is invalid: no bound can be given yet."""
    logs = [log("p0", 10, 99), log("p1", None)]
    s = scenario(config(), logs, Deliver("p0", 2), Deliver("p1", 1), Barrier())
    assert last(judge.run_on(engine_name, s)).watermark == NEVER


@pytest.mark.law("W2")
def test_required_no_active_partition_leaves_the_watermark(engine_name: str) -> None:
    s = scenario(config(), [log("p0", 10)], Deliver("p0", 1), RemovePartition("p0"), Barrier())
    assert last(judge.run_on(engine_name, s)).watermark == 10


@pytest.mark.law("W3")
def test_required_watermark_never_falls(engine_name: str) -> None:
    """p1 comes with an older time after W has moved."""
    s = scenario(
        config(),
        [log("p0", 50), log("p1", 7)],
        Deliver("p0", 1),
        Barrier(),
        AddPartition("p1"),
        Barrier(),
        Deliver("p1", 1),
        Barrier(),
        assigned=["p0"],
    )
    assert [e.watermark for e in judge.run_on(engine_name, s).epochs] == [50, 50, 50]


@pytest.mark.law("W3")
@pytest.mark.parametrize("cut", [False, True])
def test_required_watermark_moves_with_each_row_and_no_cut_shows(
    engine_name: str, *, cut: bool
) -> None:
    """The second row is late because of the first one, in the same epoch too."""
    between = [Barrier()] if cut else []
    s = scenario(
        config(), [log("p0", 9, 3)], Deliver("p0", 1), *between, Deliver("p0", 1), Barrier()
    )
    late = [r for e in judge.run_on(engine_name, s).epochs for r in e.late]
    assert late == [LateRow("p0", 1, 3, 9)]


@pytest.mark.law("W3")
def test_required_watermark_moves_inside_one_batch(engine_name: str) -> None:
    """9 makes 3 late, 12 makes 11 late; 12 itself and 15 are on time."""
    s = scenario(config(), [log("p0", 9, 3, 12, 11, 12, 15)], Deliver("p0", 6), Barrier())
    assert [(r.offset, r.watermark) for r in last(judge.run_on(engine_name, s)).late] == [
        (1, 9),
        (3, 12),
    ]


@pytest.mark.law("W3")
def test_required_watermark_moves_when_its_holder_goes(engine_name: str) -> None:
    """Nothing but the removal happens in the second epoch, and W goes from 0 to 9."""
    s = scenario(
        config(),
        [log("p0", 9), log("p1", 0)],
        Deliver("p0", 1),
        Deliver("p1", 1),
        Barrier(),
        RemovePartition("p1"),
        Barrier(),
    )
    assert [e.watermark for e in judge.run_on(engine_name, s).epochs] == [0, 9]


@pytest.mark.law("W3")
@few
@given(s=strategies.scenarios(strategies.Shape(windows=strategies.GRIDS)))
def test_required_watermark_is_what_the_definition_says(slow_engine_name: str, s: Scenario) -> None:
    """Every epoch's W, and the W that each invalid row saw, from the items alone."""
    outcome = judge.run_on(slow_engine_name, s)
    laws = history(s, outcome)
    assert tuple(e.watermark for e in outcome.epochs) == laws.ends
    invalid = [(r.partition, r.offset, r.watermark) for e in outcome.epochs for r in e.invalid]
    assert sorted(invalid) == sorted(laws.invalid)


@pytest.mark.law("W3")
def test_required_rows_move_the_watermark_at_the_epochs_end_where_asked(engine_name: str) -> None:
    """watermark_update "epoch": 9 does not make 3 late; in the next epoch W = 9, and 8 is late.

    W    NEVER      9         12
    row    9   3  |   8   12  |  8
                      late       late
    """
    s = scenario(
        config(watermark_update=BY_EPOCH), [log("p0", 9, 3, 8, 12, 8)], Deliver("p0", 2), Barrier(),
        Deliver("p0", 2), Barrier(), Deliver("p0", 1), Barrier(),
    )  # fmt: skip
    outcome = judge.run_on(engine_name, s)
    assert [e.watermark for e in outcome.epochs] == [9, 12, 12]
    assert [e.late for e in outcome.epochs] == [
        (),
        (LateRow("p0", 2, 8, 9),),
        (LateRow("p0", 4, 8, 12),),
    ]


@pytest.mark.law("W3")
@pytest.mark.law("F1")
def test_required_what_the_epochs_end_closes_is_shown_by_that_epoch(engine_name: str) -> None:
    """W moves before the outbox is made: [0, 10) has all its rows, and is no longer in the state."""
    s = scenario(
        config(watermark_update=BY_EPOCH), [log("p0", 1, 15, 9)], Deliver("p0", 3), Barrier()
    )
    epoch = last(judge.run_on(engine_name, s))
    assert counts(epoch.outbox) == {("a", 0): 2}
    assert [w.start_ms for w in epoch.state] == [10]


@pytest.mark.law("W3")
def test_required_a_change_of_the_partitions_moves_the_watermark_inside_an_epoch(
    engine_name: str,
) -> None:
    """Rows do not move W before the epoch's end, but when p1 goes, W is 9 at once, and 3 is late."""
    s = scenario(
        config(watermark_update=BY_EPOCH), [log("p0", 9, 3, 11, 10), log("p1", 0)],
        Deliver("p0", 1), Deliver("p1", 1), RemovePartition("p1"), Deliver("p0", 3), Barrier(),
    )  # fmt: skip
    epoch = last(judge.run_on(engine_name, s))
    assert epoch.late == (LateRow("p0", 1, 3, 9),)
    assert epoch.watermark == 11


@pytest.mark.law("W3")
def test_required_a_lost_epoch_does_not_move_the_watermark(engine_name: str) -> None:
    """The process dies before the epoch's end; the next one takes 9 and 3 in one epoch again."""
    s = scenario(
        config(watermark_update=BY_EPOCH), [log("p0", 9, 3)], Deliver("p0", 1), Restart(),
        Deliver("p0", 2), Barrier(),
    )  # fmt: skip
    epoch = last(judge.run_on(engine_name, s))
    assert (epoch.late, epoch.watermark) == ((), 9)


@pytest.mark.law("W6")
def test_required_a_drain_ends_time_at_once_also_where_rows_do_not_move_it(
    engine_name: str,
) -> None:
    s = drained(config(watermark_update=BY_EPOCH), log("p0", 15, 5, 25))
    outcome = judge.run_on(engine_name, s)
    assert (last(outcome).watermark, last(outcome).late) == (END, ())
    assert counts(outcome.table) == {("a", 0): 1, ("a", 10): 1, ("a", 20): 1}


@pytest.mark.law("W5")
def test_required_an_added_partition_never_lowers_the_watermark(engine_name: str) -> None:
    s = scenario(
        config(),
        [log("p0", 50), log("p1", 1)],
        Deliver("p0", 1),
        AddPartition("p1"),
        Barrier(),
        assigned=["p0"],
    )
    assert last(judge.run_on(engine_name, s)).watermark == 50


@pytest.mark.law("W5")
def test_required_a_partition_added_again_goes_on_where_it_was(engine_name: str) -> None:
    """p1 comes back with its 9: p0 at 5 then moves W to 5 at once, and 3 is late."""
    s = scenario(
        config(),
        [log("p0", 1, 5, 3), log("p1", 9, 12)],
        Deliver("p0", 1),
        Deliver("p1", 1),
        RemovePartition("p1"),
        Barrier(),
        AddPartition("p1"),
        Deliver("p0", 2),
        Deliver("p1", 1),
        Barrier(),
    )
    outcome = judge.run_on(engine_name, s)
    assert last(outcome).late == (LateRow("p0", 2, 3, 5),)
    again = state_of(last(outcome), "p1")
    assert (again.last, again.max_event_time, again.accepted, again.assigned) == (1, 12, 2, True)


@pytest.mark.law("W5")
def test_required_a_removed_partition_drops_what_was_held(engine_name: str) -> None:
    """Row 1 waits for row 0 when the partition goes; added again, both are sent once more."""
    s = scenario(config(), [log("p0", 1, 2)], assigned=["p0"])
    own = link.Link(judge.maker(engine_name, s), s)
    life = own.alive
    life.send("p0", 2)
    life.deliver(s.logs[0][1][1], 0)
    life.remove("p0")
    life.add("p0")
    assert life.position("p0") == -1
    assert life.credit("p0") == s.config.credits
    life.send("p0", 1)
    life.deliver(s.logs[0][1][0], -1)
    assert life.position("p0") == 0, "the row that was held is gone, and has to be sent again"


@pytest.mark.law("W6")
def test_required_a_drain_ends_time_and_closes_every_window(engine_name: str) -> None:
    outcome = judge.run_on(engine_name, drained(config(delay_ms=100), log("p0", 5, 15, 25)))
    assert last(outcome).watermark == END
    assert last(outcome).drained
    assert last(outcome).state == ()
    assert counts(outcome.table) == {("a", 0): 1, ("a", 10): 1, ("a", 20): 1}


@pytest.mark.law("W6")
def test_required_nothing_but_a_drain_ends_time(engine_name: str) -> None:
    """The log has ended and the epoch is published, yet the last window stays open."""
    s = scenario(config(), [log("p0", 5, 15)], Deliver("p0", 2), Barrier(), Restart(), Barrier())
    outcome = judge.run_on(engine_name, s)
    assert last(outcome).watermark == 15
    assert not any(e.drained for e in outcome.epochs)
    assert counts(outcome.table) == {("a", 0): 1}


@pytest.mark.law("W6")
def test_required_rows_after_a_drain_stop_the_run(engine_name: str) -> None:
    """The source has grown; in a later life, too, this is said and not swallowed."""
    s = scenario(
        config(),
        [log("p0", 5), log("p1", 6)],
        DrainAll(),
        Restart(),
        AddPartition("p1"),
        Deliver("p1", 1),
        Barrier(),
        assigned=["p0"],
    )
    outcome = judge.run_on(engine_name, s)
    assert outcome.fault == "drained"
    assert counts(outcome.table) == {("a", 0): 1}
