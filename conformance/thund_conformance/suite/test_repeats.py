"""The filter before the window, and rows that come again under their id."""

from __future__ import annotations

import pytest
from hypothesis import given

from thund_conformance import judge, strategies
from thund_conformance.scripts import config, last, log, scenario, state_of
from thund_contract.engine import Outcome
from thund_contract.scenario import Barrier, Deliver, DrainAll, Restart, Scenario
from thund_contract.vocabulary import NEVER, WINDOW_RULE, LateRow, Row, Seen

few = strategies.share(4)


def rows(*cells: tuple[object, object], partition: str = "p0") -> tuple[str, tuple[Row, ...]]:
    """A log of (event time, id)."""
    return partition, tuple(
        Row(partition, i, time, ("a",), (None,), id=(id_,)) for i, (time, id_) in enumerate(cells)
    )


def judged(outcome: Outcome) -> tuple[int, int, int, int]:
    """Admitted, late, filtered and repeated rows of p0 at the end."""
    p0 = state_of(last(outcome), "p0")
    return p0.admitted, p0.late, p0.filtered, p0.repeated


# ---- A7 -----------------------------------------------------------------------------------------


@pytest.mark.law("A7")
@pytest.mark.parametrize(("moved_to", "repeated"), [(14, 1), (15, 1), (16, 0)])
@pytest.mark.parametrize("cut", [False, True])
def test_required_an_id_is_remembered_while_the_watermark_allows(
    engine_name: str, moved_to: int, repeated: int, *, cut: bool
) -> None:
    """Seen at 10 and remembered for 5: at W = 15 it is a repeat, at 16 it is new."""
    s = scenario(
        config(deduplicate=("i",), remember_ms=5), [rows((10, 1), (moved_to, 2), (moved_to, 1))],
        Deliver("p0", 1), *[Barrier()] * cut, Deliver("p0", 1), *[Barrier()] * cut,
        Deliver("p0", 1), Barrier(),
    )  # fmt: skip
    assert judged(judge.run_on(engine_name, s)) == (3 - repeated, 0, 0, repeated)


@pytest.mark.law("A7")
@pytest.mark.parametrize(
    "ids",
    [(1, 1), (None, None), (float("nan"), float("nan")), (0.0, -0.0), ("a", "a"), (b"x", b"x")],
)
def test_required_equal_ids_are_equal(engine_name: str, ids: tuple[object, object]) -> None:
    s = scenario(
        config(deduplicate=("i",)), [rows((10, ids[0]), (10, ids[1]))], Deliver("p0", 2), Barrier()
    )
    outcome = judge.run_on(engine_name, s)
    assert judged(outcome) == (1, 0, 0, 1)
    assert len(last(outcome).seen) == 1


@pytest.mark.law("A7")
@pytest.mark.law("R1")
def test_required_an_id_is_remembered_over_a_restart(engine_name: str) -> None:
    s = scenario(
        config(deduplicate=("i",), remember_ms=9, delay_ms=3), [rows((10, 1), (11, 2), (12, 1))],
        Deliver("p0", 2), Barrier(), Restart(), Deliver("p0", 1), Barrier(),
    )  # fmt: skip
    outcome = judge.run_on(engine_name, s)
    assert judged(outcome) == (2, 0, 0, 1)
    assert sorted(last(outcome).seen, key=repr) == [Seen((1,), 10), Seen((2,), 11)]


@pytest.mark.law("A7")
def test_required_a_repeat_moves_the_watermark_and_renews_nothing(engine_name: str) -> None:
    """Id 1 at 10, again at 14 and at 16: it is remembered from 10 on, so the last one is new."""
    s = scenario(
        config(deduplicate=("i",), remember_ms=5), [rows((10, 1), (14, 1), (16, 2), (16, 1))],
        Deliver("p0", 4), Barrier(),
    )  # fmt: skip
    outcome = judge.run_on(engine_name, s)
    assert judged(outcome) == (3, 0, 0, 1)
    assert last(outcome).watermark == 16


@pytest.mark.law("A7")
def test_required_a_late_row_is_not_remembered(engine_name: str) -> None:
    """Id 1 comes late, then on time: the row on time is admitted."""
    s = scenario(
        config(deduplicate=("i",), remember_ms=99), [rows((20, 2), (10, 1), (20, 1), (20, 1))],
        Deliver("p0", 4), Barrier(),
    )  # fmt: skip
    assert judged(judge.run_on(engine_name, s)) == (2, 1, 0, 1)


@pytest.mark.law("A7")
def test_required_the_window_rule_needs_a_longer_memory(engine_name: str) -> None:
    """Under A2 a row may come again after W has passed its time: `remember` says how long."""
    for remember, repeated in ((0, 0), (9, 1)):
        s = scenario(
            config(deduplicate=("i",), remember_ms=remember, late_rule=WINDOW_RULE),
            [rows((1, 1), (8, 2), (1, 1))], Deliver("p0", 3), Barrier(),
        )  # fmt: skip
        assert judged(judge.run_on(engine_name, s)) == (3 - repeated, 0, 0, repeated)


@pytest.mark.law("A7")
@pytest.mark.law("F3")
@pytest.mark.parametrize(("moved_to", "kept"), [(15, [1, 2]), (16, [2])])
def test_required_an_id_leaves_the_state_once_the_watermark_has_passed_it(
    engine_name: str, moved_to: int, kept: list[int]
) -> None:
    s = scenario(
        config(deduplicate=("i",), remember_ms=5), [rows((10, 1), (moved_to, 2))],
        Deliver("p0", 2), Barrier(),
    )  # fmt: skip
    assert sorted(one.id[0] for one in last(judge.run_on(engine_name, s)).seen) == kept  # type: ignore[type-var]


@pytest.mark.law("A7")
@pytest.mark.law("F3")
@few
@given(s=strategies.scenarios(strategies.WITH_CRASHES))
def test_required_nothing_is_remembered_that_the_watermark_has_passed(
    slow_engine_name: str, s: Scenario
) -> None:
    for epoch in judge.run_on(slow_engine_name, s).epochs:
        ids = [repr(one.id) for one in epoch.seen]
        assert len(ids) == len(set(ids))
        assert all(one.event_time + s.config.remember_ms >= epoch.watermark for one in epoch.seen)


# ---- A8 -----------------------------------------------------------------------------------------


def kept(*cells: tuple[object, bool | None]) -> tuple[str, tuple[Row, ...]]:
    """A log of (event time, what the filter says)."""
    return "p0", tuple(
        Row("p0", i, time, ("a",), (None,), passes) for i, (time, passes) in enumerate(cells)
    )


@pytest.mark.law("A8")
@pytest.mark.law("A5")
@pytest.mark.parametrize("passes", [False, None])
def test_required_a_row_that_does_not_pass_is_counted_and_moves_the_watermark(
    engine_name: str, *, passes: bool | None
) -> None:
    """20 does not pass, and makes 9 late; 3 does not pass, and is not late but filtered."""
    s = scenario(
        config(filter="keep"), [kept((1, True), (20, passes), (3, passes), (9, True), (21, True))],
        Deliver("p0", 5), Barrier(), DrainAll(),
    )  # fmt: skip
    outcome = judge.run_on(engine_name, s)
    assert judged(outcome) == (2, 1, 2, 0)
    assert outcome.epochs[0].late == (LateRow("p0", 3, 9, 20),)
    assert sorted((p.start_ms, p.values[0]) for p in outcome.table) == [(0, 1), (20, 1)]


@pytest.mark.law("A8")
@pytest.mark.law("A4")
def test_required_an_invalid_row_is_invalid_whether_it_passes_or_not(engine_name: str) -> None:
    s = scenario(
        config(filter="keep"), [kept((None, False), (None, True))], Deliver("p0", 2), Barrier()
    )
    epoch = last(judge.run_on(engine_name, s))
    assert state_of(epoch, "p0").invalid == 2
    assert epoch.watermark == NEVER


@pytest.mark.law("A8")
@pytest.mark.law("A7")
def test_required_a_row_that_does_not_pass_is_not_remembered(engine_name: str) -> None:
    cells = [(10, False), (10, True), (10, True)]
    part = tuple(
        Row("p0", i, time, ("a",), (None,), passes, (1,)) for i, (time, passes) in enumerate(cells)
    )
    s = scenario(
        config(filter="keep", deduplicate=("i",)), [("p0", part)], Deliver("p0", 3), Barrier()
    )
    assert judged(judge.run_on(engine_name, s)) == (1, 0, 1, 1)


@pytest.mark.law("A8")
def test_required_a_pipeline_without_a_filter_passes_all(engine_name: str) -> None:
    s = scenario(config(), [log("p0", 1, 2)], Deliver("p0", 2), Barrier())
    assert judged(judge.run_on(engine_name, s)) == (2, 0, 0, 0)
