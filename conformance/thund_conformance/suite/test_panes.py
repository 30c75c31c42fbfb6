"""Panes: what an append-only sink needs so that its own fold is the table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given

from thund_conformance import compare, judge, strategies
from thund_conformance.scripts import ROWS, config, last, log, scenario, session, valued
from thund_contract.engine import Outcome
from thund_contract.scenario import Barrier, Deliver, DrainAll, Restart, Scenario
from thund_contract.vocabulary import (
    ACCUMULATING,
    DISCARDING,
    EARLY,
    LATE,
    ON_TIME,
    PANES,
    RETRACTING,
    SUM,
    UPDATE,
    WINDOW_RULE,
    Aggregate,
    Pane,
    Put,
)

few = strategies.share(4)
TOTAL = Aggregate("total", SUM, "x")


def panes(outcome: Outcome) -> list[Pane]:
    """Of all epochs, in order; inside an epoch by id and number, what is taken back first."""
    order = [
        sorted(e.panes, key=lambda p: (p.id, p.number, not p.retraction)) for e in outcome.epochs
    ]
    return [pane for epoch in order for pane in epoch]


def story(panes_: str) -> Scenario:
    """One window: an early pane of two rows, one on time in the grace, and a late one."""
    rows = [(1, None, 5), (2, None, 2), (12, None, 7), (9, None, 1), (8, None, 4), (40, None, 0)]
    return scenario(
        config(
            output=UPDATE, panes=panes_, late_rule=WINDOW_RULE, grace_ms=10, aggregates=(ROWS, TOTAL)
        ),
        [valued("p0", rows)], Deliver("p0", 2), Barrier(), *(Deliver("p0", 1), Barrier()) * 4,
        DrainAll(),
    )  # fmt: skip


EXPECTED = {
    ACCUMULATING: [(0, EARLY, False, 2, 7), (1, ON_TIME, False, 3, 8), (2, LATE, False, 4, 12)],
    DISCARDING: [(0, EARLY, False, 2, 7), (1, ON_TIME, False, 1, 1), (2, LATE, False, 1, 4)],
    RETRACTING: [
        (0, EARLY, False, 2, 7),
        (0, EARLY, True, 2, 7),
        (1, ON_TIME, False, 3, 8),
        (1, ON_TIME, True, 3, 8),
        (2, LATE, False, 4, 12),
    ],
}


@pytest.mark.law("E6")
@pytest.mark.parametrize("kind", PANES)
@pytest.mark.parametrize("restart", [False, True])
def test_required_panes_are_numbered_and_timed(
    engine_name: str, kind: str, *, restart: bool
) -> None:
    """Of [0, 10): two rows while W < 10, one at W = 12, one more, and a restart that changes nothing."""
    s = story(kind)
    if restart:
        steps = [step for x in s.steps for step in ((x, Restart()) if x == Barrier() else (x,))]
        s = replace(s, steps=tuple(steps))
    found = [
        (p.number, p.timing, p.retraction, *p.values)
        for p in panes(judge.run_on(engine_name, s))
        if p.start_ms == 0
    ]
    assert found == EXPECTED[kind]


@pytest.mark.law("E6")
def test_required_a_window_first_shown_after_its_end_is_on_time(engine_name: str) -> None:
    """It opens and closes in one epoch, or is shown first at the drain."""
    s = scenario(
        config(output=UPDATE, panes=ACCUMULATING), [log("p0", 1, 15)], Deliver("p0", 2), Barrier()
    )
    found = {(p.start_ms, p.number, p.timing) for p in panes(judge.run_on(engine_name, s))}
    assert found == {(0, 0, ON_TIME), (10, 0, EARLY)}


@pytest.mark.law("E6")
@pytest.mark.law("F3")
def test_required_the_pane_of_a_closed_window_is_kept_no_longer(engine_name: str) -> None:
    s = scenario(
        config(output=UPDATE, panes=ACCUMULATING), [log("p0", 1, 15)],
        *(Deliver("p0", 1), Barrier()) * 2,
    )  # fmt: skip
    found = last(judge.run_on(engine_name, s)).state
    assert [(w.start_ms, w.panes, w.timing) for w in found] == [(10, 1, EARLY)]


@pytest.mark.law("E6")
@pytest.mark.parametrize("kind", [ACCUMULATING, RETRACTING])
def test_required_a_merged_session_takes_its_parts_back(engine_name: str, kind: str) -> None:
    """[0, 10) and [15, 25) were shown; 8 joins them under the first identity."""
    s = scenario(
        config(window=session(10), output=UPDATE, panes=kind, delay_ms=99), [log("p0", 0, 15, 8)],
        Deliver("p0", 2), Barrier(), Deliver("p0", 1), Barrier(),
    )  # fmt: skip
    epoch = last(judge.run_on(engine_name, s))
    found = {(p.start_ms, p.end_ms, p.number, p.retraction, *p.values) for p in epoch.panes}
    taken = {(15, 25, 0, True, 1)} | ({(0, 10, 0, True, 1)} if kind == RETRACTING else set())
    assert found == {(0, 25, 1, False, 3), *taken}


@pytest.mark.law("E6")
@few
@given(s=strategies.scenarios(strategies.Shape(crashes=True, outputs=(UPDATE,), several=False)))
def test_required_the_fold_of_all_panes_is_the_table(slow_engine_name: str, s: Scenario) -> None:
    """Accumulating: the newest pane of an id, unless it is taken back. Retracting: those that are not."""
    for kind in (ACCUMULATING, RETRACTING):
        one = replace(s, config=replace(s.config, panes=kind))
        outcome = judge.run_on(slow_engine_name, one)
        table = {p.id: (p.start_ms, p.end_ms, p.values) for p in outcome.table}
        left = folded(panes(outcome))
        assert left.keys() == table.keys()
        assert all(compare.same(left[id_], table[id_]) for id_ in table)


def folded(all_panes: Iterable[Pane]) -> dict[str, tuple[object, ...]]:
    """What an append-only reader makes of the panes."""
    left: dict[str, Pane] = {}
    for pane in all_panes:
        before = left.get(pane.id)
        if pane.retraction:
            assert before is not None
            assert compare.same(before, replace(pane, retraction=False))
            del left[pane.id]
            continue
        left[pane.id] = pane
    return {id_: (p.start_ms, p.end_ms, p.values) for id_, p in left.items()}


@pytest.mark.law("E6")
@few
@given(s=strategies.scenarios(strategies.Shape(crashes=True, outputs=(UPDATE,), windows=strategies.GRIDS[:2], several=False)))  # fmt: skip
def test_required_discarded_panes_add_up(slow_engine_name: str, s: Scenario) -> None:
    """Counts of the panes of an id are the count of its row, and no pane is empty."""
    plain = tuple((name, tuple(replace(r, values=(None,)) for r in part)) for name, part in s.logs)
    s = replace(s, logs=plain, config=replace(s.config, panes=DISCARDING, aggregates=(ROWS,)))
    outcome = judge.run_on(slow_engine_name, s)
    counted: dict[str, int] = {}
    for pane in panes(outcome):
        (rows,) = pane.values
        assert isinstance(rows, int)
        assert rows > 0
        counted[pane.id] = counted.get(pane.id, 0) + rows
    assert counted == {p.id: p.values[0] for p in outcome.table}


@pytest.mark.law("E6")
def test_required_there_are_none_where_none_are_asked_for(engine_name: str) -> None:
    s = scenario(config(output=UPDATE), [log("p0", 1, 15)], Deliver("p0", 2), Barrier())
    outcome = judge.run_on(engine_name, s)
    assert panes(outcome) == []
    assert all(isinstance(p, Put) for e in outcome.epochs for p in e.outbox)
