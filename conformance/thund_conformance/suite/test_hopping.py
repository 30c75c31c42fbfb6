"""Hopping windows: a row is in every window of the grid that holds it, and closed ones miss it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thund_conformance import judge, strategies
from thund_conformance.definition import windows_of
from thund_conformance.scripts import (
    ROWS,
    config,
    drained,
    hopping,
    last,
    log,
    scenario,
    state_of,
    valued,
)
from thund_contract.scenario import Barrier, Deliver, DrainAll, Scenario, Step
from thund_contract.vocabulary import (
    HOPPING,
    MAX,
    MEAN,
    MIN,
    SUM,
    UPDATE,
    WINDOW_RULE,
    Aggregate,
    Put,
    Row,
    WindowSpec,
)

few = strategies.share(4)


# ---- G2 -----------------------------------------------------------------------------------------


@pytest.mark.law("G2")
@pytest.mark.parametrize(
    ("window", "time", "starts"),
    [
        (hopping(10, 10, 0), 9, [0]),
        (hopping(10, 5, 0), 9, [0, 5]),
        (hopping(10, 5, 0), 10, [5, 10]),
        (hopping(10, 5, 0), -1, [-10, -5]),
        (hopping(10, 4, 0), 8, [0, 4, 8]),
        (hopping(10, 4, 0), 7, [0, 4]),
        (hopping(10, 4, 1), -3, [-11, -7, -3]),
        (hopping(5, 3, 0), 13, [9, 12]),
        (hopping(5, 3, 0), 14, [12]),
        (hopping(10, 1, 0), 0, list(range(-9, 1))),
        (hopping(10, 9, -20), 7, [-2, 7]),
        (hopping(7, 4, 2), -4503599627370496, [-4503599627370502, -4503599627370498]),
    ],
)
def test_required_a_row_is_in_each_window_that_holds_it(
    engine_name: str, window: WindowSpec, time: int, starts: list[int]
) -> None:
    s = drained(config(window=window), log("p0", time))
    found = sorted((p.start_ms, p.end_ms) for p in judge.run_on(engine_name, s).table)
    assert found == [(start, start + window.size_ms) for start in starts]


ALL = tuple(
    Aggregate(name, operation, "x")
    for name, operation in (("s", SUM), ("lo", MIN), ("hi", MAX), ("m", MEAN))
)


@pytest.mark.law("G2")
@pytest.mark.law("G4")
def test_required_each_window_has_its_own_answer_from_shared_rows(engine_name: str) -> None:
    """Size 10, slide 4: [0, 10), [4, 14), [8, 18) and their neighbours share rows, not results."""
    rows = [(t, v, v, v, v) for t, v in ((0, 1), (3, -2), (4, 30), (8, 5), (9, None), (13, 7))]
    s = scenario(
        config(window=hopping(10, 4), aggregates=ALL, delay_ms=100), [valued("p0", rows)],
        Deliver("p0", 3), Barrier(), Deliver("p0", 3), DrainAll(),
    )  # fmt: skip
    found = {p.start_ms: p.values for p in judge.run_on(engine_name, s).table}
    assert found == {
        -8: (1, 1, 1, 1.0),
        -4: (29, -2, 30, 29 / 3),
        0: (34, -2, 30, 8.5),
        4: (42, 5, 30, 14.0),
        8: (12, 5, 7, 6.0),
        12: (7, 7, 7, 7.0),
    }


@pytest.mark.law("G2")
@pytest.mark.law("F1")
@pytest.mark.law("F3")
def test_required_overlapping_windows_close_one_after_the_other(engine_name: str) -> None:
    """W = 9, 10, 14, 15: [0, 10) goes at 10, [5, 15) at 15."""
    s = scenario(
        config(window=hopping(10, 5)), [log("p0", 7, 9, 10, 14, 15)],
        *(Deliver("p0", 1), Barrier()) * 5,
    )  # fmt: skip
    outcome = judge.run_on(engine_name, s)
    shown = [sorted(p.start_ms for p in e.outbox if isinstance(p, Put)) for e in outcome.epochs]
    assert shown == [[], [], [0], [], [5]]
    assert [sorted(w.start_ms for w in e.state) for e in outcome.epochs] == [
        [0, 5], [0, 5], [5, 10], [5, 10], [10, 15],
    ]  # fmt: skip


@pytest.mark.law("G2")
@pytest.mark.law("E2")
def test_required_update_mode_shows_the_windows_of_the_rows_of_the_epoch(engine_name: str) -> None:
    s = scenario(
        config(window=hopping(10, 4), output=UPDATE, delay_ms=100), [log("p0", 0, 9)],
        Deliver("p0", 1), Barrier(), Deliver("p0", 1), Barrier(),
    )  # fmt: skip
    outcome = judge.run_on(engine_name, s)
    shown = [
        sorted((p.start_ms, p.values[0]) for p in e.outbox if isinstance(p, Put))
        for e in outcome.epochs
    ]
    assert shown == [[(-8, 1), (-4, 1), (0, 1)], [(0, 2), (4, 1), (8, 1)]]


# ---- A2 -----------------------------------------------------------------------------------------


@pytest.mark.law("A2")
@pytest.mark.law("G2")
def test_required_a_row_misses_the_closed_windows_and_joins_the_rest(engine_name: str) -> None:
    """W = 11: 6 misses [0, 10) and joins [5, 15); 4 is in [-5, 5) and [0, 10) only, and late."""
    s = scenario(
        config(window=hopping(10, 5), late_rule=WINDOW_RULE), [log("p0", 7, 11, 6, 4)],
        Deliver("p0", 4), Barrier(), DrainAll(),
    )  # fmt: skip
    outcome = judge.run_on(engine_name, s)
    p0 = state_of(last(outcome), "p0")
    assert (p0.admitted, p0.late, p0.late_window_drops) == (3, 1, 1)
    assert {p.start_ms: p.values[0] for p in outcome.table} == {0: 1, 5: 3, 10: 1}


@pytest.mark.law("A2")
def test_required_each_window_that_a_row_misses_is_counted(engine_name: str) -> None:
    """W = 14: 8 misses [0, 10) and [4, 14), and joins [8, 18)."""
    s = scenario(
        config(window=hopping(10, 4), late_rule=WINDOW_RULE), [log("p0", 7, 14, 8)],
        Deliver("p0", 3), Barrier(),
    )  # fmt: skip
    p0 = state_of(last(judge.run_on(engine_name, s)), "p0")
    assert (p0.admitted, p0.late, p0.late_window_drops) == (3, 0, 2)


@pytest.mark.law("A2")
@pytest.mark.law("G2")
@few
@given(
    s=strategies.scenarios(
        strategies.Shape(windows=(HOPPING,), late_rules=(WINDOW_RULE,), repeats=False)
    )
)
def test_required_what_is_missed_and_what_is_shown_are_all_windows(
    slow_engine_name: str, s: Scenario
) -> None:
    """Counts of all groups and the missed windows are the windows of the admitted rows."""
    plain = [(name, tuple(map(_counted, rows))) for name, rows in s.logs]
    changes = {"aggregates": (ROWS,), "filter": None, "panes": "", "late_lane": True}
    s = replace(s, config=replace(s.config, **changes), logs=tuple(plain))  # type: ignore[arg-type]
    outcome = judge.run_on(slow_engine_name, s)
    in_table = sum(int(str(p.values[0])) for p in outcome.table)
    missed = sum(p.late_window_drops for p in last(outcome).partitions)
    late = {(r.partition, r.offset) for e in outcome.epochs for r in e.late}
    late |= {(r.partition, r.offset) for e in outcome.epochs for r in e.invalid}
    accepted = {p.partition: p.last for p in last(outcome).partitions}
    windows = 0
    for name, rows in s.logs:
        for r in rows:
            if (name, r.offset) not in late and r.offset <= accepted.get(name, -1):
                assert isinstance(r.event_time, int)
                windows += len(windows_of(s.config.window, r.event_time))
    assert in_table + missed == windows


def _counted(r: Row) -> Row:
    """The row for count(*) alone."""
    return replace(r, values=(None,), passes=True)


@pytest.mark.law("G2")
@few
@given(data=st.data())
def test_required_no_cut_shows_in_overlapping_windows(
    slow_engine_name: str, data: st.DataObject
) -> None:
    times = data.draw(st.lists(st.integers(-20, 60), max_size=8))
    size = data.draw(st.integers(1, 12))
    window = hopping(size, data.draw(st.integers(1, size)), data.draw(st.integers(-9, 9)))
    cuts = data.draw(st.sets(st.integers(0, len(times))))
    steps: list[Step] = []
    for i in range(len(times)):
        steps += [Barrier()] * (i in cuts) + [Deliver("p0", 1)]
    whole = scenario(config(window=window, delay_ms=7), [log("p0", *times)], DrainAll())
    cut = scenario(config(window=window, delay_ms=7), [log("p0", *times)], *steps, DrainAll())
    found = [
        [(p.id, p.values) for p in judge.run_on(slow_engine_name, s).table] for s in (whole, cut)
    ]
    assert found[0] == found[1]
