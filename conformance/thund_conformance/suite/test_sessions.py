"""Sessions: covers that overlap are one window, whatever the order, the cut and the deaths."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given

from thund_conformance import judge, strategies
from thund_conformance.definition import sessions_of
from thund_conformance.scripts import config, last, log, row, scenario, session
from thund_contract.engine import Outcome
from thund_contract.scenario import Barrier, Deliver, DrainAll, Restart, Scenario
from thund_contract.vocabulary import (
    COMPLETE,
    SESSION,
    UPDATE,
    WINDOW_RULE,
    Delete,
    EpochRecord,
    Put,
)

few = strategies.share(4)
WIDE = config(window=session(10), delay_ms=1000)
"""A gap of 10, and nothing closes before the drain."""


def spans(outcome: Outcome) -> list[tuple[int, int, object]]:
    """(start, end, first value) of the table."""
    return sorted((p.start_ms, p.end_ms, p.values[0]) for p in outcome.table)


def shown(epoch: EpochRecord) -> list[tuple[int, int]]:
    """The spans that an epoch's outbox puts."""
    return sorted((p.start_ms, p.end_ms) for p in epoch.outbox if isinstance(p, Put))


# ---- G3 -----------------------------------------------------------------------------------------


@pytest.mark.law("G3")
@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ((0,), [(0, 10, 1)]),
        ((0, 9), [(0, 19, 2)]),
        ((0, 10), [(0, 10, 1), (10, 20, 1)]),
        ((0, 11), [(0, 10, 1), (11, 21, 1)]),
        ((-5, 4, 13), [(-5, 23, 3)]),
        ((-20, -10), [(-20, -10, 1), (-10, 0, 1)]),
        ((0, 18, 9), [(0, 28, 3)]),
        ((0, 12, 24, 6, 18), [(0, 34, 5)]),
        ((7, 7, 7), [(7, 17, 3)]),
    ],
)
def test_required_rows_within_the_gap_are_one_session(
    engine_name: str, times: tuple[int, ...], expected: list[tuple[int, int, int]]
) -> None:
    """A row covers [time, time + gap); time = end starts a new session. In each order of the rows."""
    for order in sorted(set(permutations(times)))[:24]:
        steps = [step for _ in order for step in (Deliver("p0", 1), Barrier())]
        for s in (
            scenario(WIDE, [log("p0", *order)], DrainAll()),
            scenario(replace(WIDE, output=UPDATE), [log("p0", *order)], *steps, DrainAll()),
        ):
            assert spans(judge.run_on(engine_name, s)) == expected, order


@pytest.mark.law("G3")
def test_required_sessions_of_two_keys_know_nothing_of_each_other(engine_name: str) -> None:
    rows = (
        row("p0", 0, 0, "a"),
        row("p0", 1, 5, "b"),
        row("p0", 2, 12, "a"),
        row("p0", 3, 14, "b"),
    )
    s = scenario(WIDE, [("p0", rows)], DrainAll())
    found = {(p.key[0], p.start_ms, p.end_ms) for p in judge.run_on(engine_name, s).table}
    assert found == {("a", 0, 10), ("a", 12, 22), ("b", 5, 24)}


@pytest.mark.law("G3")
@pytest.mark.law("F1")
@pytest.mark.law("F3")
@pytest.mark.parametrize(("watermark", "is_open"), [(18, True), (19, False), (20, False)])
def test_required_a_session_closes_a_gap_after_its_last_row(
    engine_name: str, watermark: int, *, is_open: bool
) -> None:
    """[0, 19) is open while W < 19: a row could still come at 18."""
    rows = (row("p0", 0, 0), row("p0", 1, 9), row("p0", 2, watermark, "b"))
    s = scenario(config(window=session(10)), [("p0", rows)], Deliver("p0", 3), Barrier())
    epoch = last(judge.run_on(engine_name, s))
    assert (("a",) in {w.key for w in epoch.state}) == is_open
    assert shown(epoch) == ([] if is_open else [(0, 19)])


@pytest.mark.law("G3")
@pytest.mark.law("E2")
@pytest.mark.law("R1")
def test_required_a_session_goes_on_after_a_restart(engine_name: str) -> None:
    """Two sessions in the checkpoint, and the row that joins them in the next life."""
    s = scenario(
        replace(WIDE, output=UPDATE), [log("p0", 0, 18, 9)], Deliver("p0", 2), Barrier(), Restart(),
        Deliver("p0", 1), Barrier(),
    )  # fmt: skip
    outcome = judge.run_on(engine_name, s)
    assert spans(outcome) == [(0, 28, 3)]
    assert [w.end_ms for w in last(outcome).state] == [28]


@pytest.mark.law("G3")
@pytest.mark.law("F3")
@few
@given(s=strategies.scenarios(strategies.Shape(windows=(SESSION,), crashes=True, several=False)))
def test_required_sessions_of_a_key_never_overlap(slow_engine_name: str, s: Scenario) -> None:
    """In the state of each epoch, and in the table; and the state has open ones only."""
    outcome = judge.run_on(slow_engine_name, s)
    kept = [[(repr(p.key), p.start_ms, p.end_ms) for p in outcome.table]]
    for epoch in outcome.epochs:
        found = [(repr(w.key), w.start_ms, w.end_ms or 0) for w in epoch.state]
        assert all(end + s.config.grace_ms > epoch.watermark for _, _, end in found)
        kept.append(found)
    for found in kept:
        for key in {key for key, _, _ in found}:
            own = sorted((start, end) for k, start, end in found if k == key)
            assert sessions_of(own) == own


# ---- E2, E3: what was shown and is gone is taken back ----------------------------------------------


@pytest.mark.law("E2")
@pytest.mark.law("G3")
def test_required_a_merge_takes_back_the_rows_that_it_replaces(engine_name: str) -> None:
    """Epoch 1 shows three sessions; epoch 2 one, and two tombstones under their identities."""
    s = scenario(
        replace(WIDE, output=UPDATE), [log("p0", 0, 12, 24, 6, 18)], Deliver("p0", 3), Barrier(),
        Deliver("p0", 2), Barrier(),
    )  # fmt: skip
    outcome = judge.run_on(engine_name, s)
    ids = {p.start_ms: p.id for p in outcome.epochs[0].outbox if isinstance(p, Put)}
    gone = {p.id for p in outcome.epochs[1].outbox if isinstance(p, Delete)}
    assert gone == {ids[12], ids[24]}
    assert [p.id for p in outcome.table] == [ids[0]]
    assert all(p.version == 2 for p in outcome.epochs[1].outbox)


@pytest.mark.law("E2")
@pytest.mark.law("E3")
@pytest.mark.parametrize("mode", [UPDATE, COMPLETE])
def test_required_an_earlier_start_is_another_identity(engine_name: str, mode: str) -> None:
    """A session that was never shown leaves no tombstone: 45 starts, and moves to 40 in one epoch."""
    s = scenario(
        replace(WIDE, output=mode), [log("p0", 50, 45, 40)], Deliver("p0", 1), Barrier(),
        Deliver("p0", 2), Barrier(),
    )  # fmt: skip
    first, second = judge.run_on(engine_name, s).epochs
    (put,) = first.outbox
    assert [p.id for p in second.outbox if isinstance(p, Delete)] == [put.id]
    assert shown(second) == [(40, 60)]


@pytest.mark.law("E2")
def test_required_a_closed_session_is_never_taken_back(engine_name: str) -> None:
    """[0, 10) closes in the epoch in which a new session of its key starts."""
    s = scenario(
        config(window=session(10), output=UPDATE), [log("p0", 0, 30, 31)], Deliver("p0", 1),
        Barrier(), Deliver("p0", 2), Barrier(),
    )  # fmt: skip
    outcome = judge.run_on(engine_name, s)
    assert [type(p) for e in outcome.epochs for p in e.outbox] == [Put, Put]
    assert spans(outcome) == [(0, 10, 1), (30, 41, 2)]


@pytest.mark.law("E4")
@few
@given(s=strategies.scenarios(strategies.Shape(windows=(SESSION,), idle=False, guard=False)))
def test_required_all_modes_end_with_the_same_sessions(slow_engine_name: str, s: Scenario) -> None:
    found = []
    for mode in ("append", UPDATE, COMPLETE):
        one = replace(s, config=replace(s.config, output=mode, panes=""))
        table = judge.run_on(slow_engine_name, one).table
        found.append(sorted((p.id, p.start_ms, p.end_ms, repr(p.values)) for p in table))
    assert found[0] == found[1] == found[2]


# ---- A2 -----------------------------------------------------------------------------------------


@pytest.mark.law("A2")
@pytest.mark.parametrize(
    ("time", "key", "is_late"),
    [(8, "a", False), (14, "a", False), (0, "a", False), (-1, "a", True), (8, "b", True), (12, "b", False)],
)  # fmt: skip
def test_required_the_window_rule_admits_to_an_open_session(
    engine_name: str, time: int, key: str, *, is_late: bool
) -> None:
    """W = 12 and key a has [0, 15): a row inside it joins, one outside and before W is late."""
    rows = (row("p0", 0, 0), row("p0", 1, 5), row("p0", 2, 12, "c"), row("p0", 3, time, key))
    s = scenario(
        config(window=session(10), late_rule=WINDOW_RULE),
        [("p0", rows)],
        Deliver("p0", 4),
        Barrier(),
    )
    assert [r.offset for r in last(judge.run_on(engine_name, s)).late] == ([3] if is_late else [])


@pytest.mark.law("A2")
def test_required_a_closed_session_admits_nothing(engine_name: str) -> None:
    """The session of 0 closes at W = 10, in the middle of an epoch; 5 is late, whatever the cut."""
    rows = (row("p0", 0, 0), row("p0", 1, 10, "c"), row("p0", 2, 5))
    s = scenario(
        config(window=session(10), late_rule=WINDOW_RULE),
        [("p0", rows)],
        Deliver("p0", 3),
        Barrier(),
    )
    cut = replace(s, steps=(*(Deliver("p0", 1), Barrier()) * 3,))
    for each in (s, cut):
        outcome = judge.run_on(engine_name, each)
        assert [r.offset for e in outcome.epochs for r in e.late] == [2]
        assert spans(outcome) == [(0, 10, 1)]


@pytest.mark.law("A2")
def test_required_a_row_may_stretch_an_open_session_and_bring_in_the_next_one(
    engine_name: str,
) -> None:
    """Grace 5, W = 12: 8 is inside [0, 15) and covers [8, 18), which meets [16, 26)."""
    rows = (
        row("p0", 0, 0), row("p0", 1, 5), row("p0", 2, 12, "c"), row("p0", 3, 16), row("p0", 4, 8),
    )  # fmt: skip
    s = scenario(
        config(window=session(10), late_rule=WINDOW_RULE, delay_ms=4, output=UPDATE),
        [("p0", rows)], Deliver("p0", 4), Barrier(), Deliver("p0", 1), Barrier(),
    )  # fmt: skip
    outcome = judge.run_on(engine_name, s)
    assert [p.late for p in last(outcome).partitions] == [0]
    assert (0, 26, 4) in spans(outcome)
