"""The theorems: what follows from the laws, tried on drawn scenarios."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thund_conformance import compare, engines, judge, strategies
from thund_conformance.crashes import timeless
from thund_conformance.oracle import admitted_rows, group_by
from thund_conformance.replay import replay
from thund_conformance.scripts import config, log, scenario
from thund_contract.engine import Outcome
from thund_contract.scenario import (
    AddPartition,
    Barrier,
    Deliver,
    DrainAll,
    Duplicate,
    RemovePartition,
    Reorder,
    Restart,
    Scenario,
    Step,
    Tick,
)
from thund_contract.vocabulary import HOPPING, ROW_RULE, Row

few = strategies.share(4)


def totals(outcome: Outcome) -> object:
    """W and the counters at the end, and both lanes of all epochs as bags."""
    last = outcome.epochs[-1]
    late = sorted((r for e in outcome.epochs for r in e.late), key=repr)
    invalid = sorted((r for e in outcome.epochs for r in e.invalid), key=repr)
    return last.watermark, last.partitions, late, invalid


# ---- T1 -----------------------------------------------------------------------------------------


@pytest.mark.law("T1")
@pytest.mark.parametrize("mode", ["append", "update", "complete"])
def test_required_no_cut_shows_in_the_table(engine_name: str, mode: str) -> None:
    """The same six rows in one epoch and in six."""
    rows = [log("p0", 1, 15, 3, 12, 31, 30)]
    one = scenario(config(output=mode, delay_ms=4), rows, Deliver("p0", 6), DrainAll())
    six = replace(one, steps=(*(Deliver("p0", 1), Barrier()) * 6, DrainAll()))
    left, right = judge.run_on(engine_name, one), judge.run_on(engine_name, six)
    assert timeless(left.table) == timeless(right.table)
    assert totals(left) == totals(right)
    assert len(right.epochs) == 7


@pytest.mark.law("T1")
@few
@given(
    s=strategies.scenarios(
        strategies.Shape(guard=False, idle=False, updates=strategies.MOVED_BY_ROWS)
    ),
    data=st.data(),
)
def test_required_no_cut_shows_in_anything_drawn(
    slow_engine_name: str, s: Scenario, data: st.DataObject
) -> None:
    """Without its Barriers, with other ones: the same items, under each late rule."""
    s = replace(s, config=replace(s.config, credits=1_048_576))
    plain = [step for step in s.steps if not isinstance(step, Barrier)]
    places = data.draw(st.sets(st.integers(0, len(plain)), max_size=4))
    cut = [
        x for i, step in enumerate(plain) for x in ((Barrier(), step) if i in places else (step,))
    ]
    left = judge.run_on(slow_engine_name, replace(s, steps=tuple(plain)))
    right = judge.run_on(slow_engine_name, replace(s, steps=tuple(cut)))
    assert compare.same(timeless(left.table), timeless(right.table))
    assert compare.same(totals(left), totals(right))


# ---- T5 -----------------------------------------------------------------------------------------


def bounded_disorder(s: Scenario) -> Scenario:
    """The same scenario with a delay that covers the disorder of every partition."""
    worst = 0
    for _, part in s.logs:
        times = [int(row.event_time) for row in part]  # type: ignore[call-overload]
        highest = [max(times[: i + 1]) for i in range(len(times))]
        worst = max([worst, *(h - t for h, t in zip(highest, times, strict=True))])
    return replace(s, config=replace(s.config, delay_ms=worst))


@pytest.mark.law("T5")
def test_required_disorder_within_the_delay_loses_nothing(engine_name: str) -> None:
    """Each row is at most 5 behind its own partition; p1 is far behind p0, which is no matter."""
    logs = [log("p0", 50, 45, 51, 46), log("p1", 5, 0, 3)]
    s = scenario(
        config(delay_ms=5), logs, Deliver("p0", 2), Deliver("p1", 1), Deliver("p0", 2), DrainAll()
    )
    outcome = judge.run_on(engine_name, s)
    assert [p.late for p in outcome.epochs[-1].partitions] == [0, 0]
    assert sum(p.values[0] for p in outcome.table) == 7  # type: ignore[misc]


@pytest.mark.law("T5")
@few
@given(
    s=strategies.scenarios(
        replace(strategies.FIXED, invalid=False, windows=strategies.GRIDS, several=False)
    )
)
def test_required_bounded_disorder_gives_the_batch_answer(
    slow_engine_name: str, s: Scenario
) -> None:
    s = bounded_disorder(s)
    s = replace(s, config=replace(s.config, filter=None))
    every = [row for _, part in s.logs for row in part]
    outcome = judge.run_on(slow_engine_name, s)
    assert [p.late for p in outcome.epochs[-1].partitions] == [0] * len(s.logs)
    assert compare.same(group_by(s.config, every), judge.results(outcome.table))


# ---- T6 -----------------------------------------------------------------------------------------


@pytest.mark.law("T6")
def test_required_duplicates_change_nothing_but_their_counter(engine_name: str) -> None:
    rows = [log("p0", 5, 30, 2, 31)]
    once = scenario(config(), rows, Deliver("p0", 3), Barrier(), Deliver("p0", 1), DrainAll())
    again: tuple[Step, ...] = (
        Deliver("p0", 3), Duplicate("p0", 0), Duplicate("p0", 2), Barrier(), Duplicate("p0", 1),
        Deliver("p0", 1), Duplicate("p0", 3), DrainAll(),
    )  # fmt: skip
    left = judge.run_on(engine_name, once)
    right = judge.run_on(engine_name, replace(once, steps=again))
    assert (left.duplicates, right.duplicates) == (0, 4)
    judge.expect_same_epochs(left.epochs, right.epochs, ("once", "again"))
    assert left.table == right.table
    assert left.credits == right.credits


@pytest.mark.law("T6")
@few
@given(s=strategies.scenarios(strategies.PLAIN))
def test_required_duplicates_and_disorder_of_the_link_do_not_show(
    slow_engine_name: str, s: Scenario
) -> None:
    """Every Duplicate taken out and every Reorder put right."""
    calm = tuple(
        Deliver(step.partition, step.rows) if isinstance(step, Reorder) else step
        for step in s.steps
        if not isinstance(step, Duplicate)
    )
    left, right = (
        judge.run_on(slow_engine_name, replace(s, steps=calm)),
        judge.run_on(slow_engine_name, s),
    )
    judge.expect_same_epochs(left.epochs, right.epochs, ("calm link", "as drawn"))
    assert compare.same(left.table, right.table)


# ---- T7 -----------------------------------------------------------------------------------------


def expect_replay(name: str, s: Scenario) -> None:
    """The reference, over the items that an engine recorded, finds the same epochs."""
    outcome = judge.run_on(name, s)
    reference = engines.make(engines.REFERENCE, s)
    world = replay(reference, s.config, dict(s.logs), outcome.epochs)
    judge.expect_same_epochs(world.epochs(), outcome.epochs, ("reference, again", name))


@pytest.mark.law("T7")
def test_required_every_reading_of_the_clock_can_be_run_again(engine_name: str) -> None:
    """Row 5 is too far ahead at clock 0 and good at clock 5, in the same epoch."""
    s = scenario(
        config(max_future_ms=0), [log("p0", 5, 5, 4)], Deliver("p0", 1), Tick(5), Deliver("p0", 2),
        DrainAll(),
    )  # fmt: skip
    expect_replay(engine_name, s)


@pytest.mark.law("T7")
def test_required_interleavings_and_changes_can_be_run_again(engine_name: str) -> None:
    """Two partitions take turns, one goes and comes, a process dies with rows not committed."""
    logs = [log("p0", 5, 21, 3, 33, 40), log("p1", 9, 2, 30, 31)]
    turns = (Deliver("p0", 1), Deliver("p1", 1)) * 2
    s = scenario(
        config(output="update"), logs, *turns, RemovePartition("p1"), Barrier(), Deliver("p0", 1),
        Restart(), AddPartition("p1"), Deliver("p1", 1), Deliver("p0", 1), DrainAll(),
    )  # fmt: skip
    expect_replay(engine_name, s)


@pytest.mark.law("T7")
@pytest.mark.law("K3")
@few
@given(s=strategies.scenarios(strategies.WITH_CRASHES))
def test_required_history_can_be_run_again_from_its_items(
    slow_engine_name: str, s: Scenario
) -> None:
    expect_replay(slow_engine_name, s)


# ---- the oracle ---------------------------------------------------------------------------------


@pytest.mark.law("T2")
@pytest.mark.law("G4")
@few
@given(
    s=strategies.scenarios(
        replace(strategies.WITH_CRASHES, windows=strategies.GRIDS, repeats=False, several=False)
    )
)
def test_required_the_drained_table_is_the_group_by_of_the_admitted_rows(
    slow_engine_name: str, s: Scenario
) -> None:
    """Written in the suite with fractions and no code of either side.

    Where windows overlap, a row may miss some of them under the window rule.
    """
    rule = ROW_RULE if s.config.window.kind == HOPPING else s.config.late_rule
    s = replace(s, config=replace(s.config, late_lane=True, late_rule=rule))
    outcome = judge.run_on(slow_engine_name, s)
    rows: list[Row] = admitted_rows(s, outcome)
    assert compare.same(group_by(s.config, rows), judge.results(outcome.table))
