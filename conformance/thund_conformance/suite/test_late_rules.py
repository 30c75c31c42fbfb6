"""The laws of the late rules beside the default one: by window, by partition, and corrections."""

from __future__ import annotations

import pytest
from hypothesis import given

from thund_conformance import judge, strategies
from thund_conformance.definition import history, windows_of
from thund_conformance.scripts import config, counts, last, log, row, scenario, state_of
from thund_contract.engine import Outcome
from thund_contract.scenario import (
    AddPartition,
    Barrier,
    Deliver,
    DrainAll,
    RemovePartition,
    Restart,
    Scenario,
    Step,
    Tick,
)
from thund_contract.vocabulary import (
    BY_EPOCH,
    HOPPING,
    NEVER,
    PARTITION_RULE,
    TUMBLING,
    UPDATE,
    WINDOW_RULE,
    LateRow,
    Put,
)

few = strategies.share(4)


def late_offsets(outcome: Outcome) -> list[int]:
    return [r.offset for e in outcome.epochs for r in e.late]


# ---- A2 -----------------------------------------------------------------------------------------


@pytest.mark.law("A2")
@pytest.mark.parametrize(
    ("grace", "moved_to", "is_late"),
    [(0, 9, False), (0, 10, True), (0, 11, True), (5, 14, False), (5, 15, True), (5, 16, True)],
)
def test_required_a_row_is_late_once_its_window_is_closed(
    engine_name: str, grace: int, moved_to: int, *, is_late: bool
) -> None:
    """The row at 3 belongs to [0, 10), which closes at W = end + grace and not before.

    0   3     10    15
    [---------)~~~~~|
    """
    s = scenario(
        config(late_rule=WINDOW_RULE, grace_ms=grace), [log("p0", moved_to, 3)],
        Deliver("p0", 2), Barrier(),
    )  # fmt: skip
    found = last(judge.run_on(engine_name, s)).late
    assert found == ((LateRow("p0", 1, 3, moved_to),) if is_late else ())


@pytest.mark.law("A2")
@pytest.mark.parametrize("time", [10, 19, 20])
def test_required_a_row_before_the_watermark_is_on_time_while_its_window_is_open(
    engine_name: str, time: int
) -> None:
    """W = 19 in [10, 20): 10 is nine before W and joins its window; 9 is late."""
    s = scenario(
        config(late_rule=WINDOW_RULE), [log("p0", 19, time, 9)], Deliver("p0", 3), Barrier()
    )
    assert late_offsets(judge.run_on(engine_name, s)) == [2]


@pytest.mark.law("A2")
def test_required_the_first_row_of_a_window_may_come_in_its_grace(engine_name: str) -> None:
    """[0, 10) has no row when W passes its end; the row at 9 opens it, and 15 closes it."""
    s = scenario(
        config(late_rule=WINDOW_RULE, grace_ms=5), [log("p0", 12, 9, 15, 9)],
        *(Deliver("p0", 1), Barrier()) * 4,
    )  # fmt: skip
    outcome = judge.run_on(engine_name, s)
    still_open = [sorted(w.start_ms for w in e.state) for e in outcome.epochs]
    assert still_open == [[10], [0, 10], [10], [10]]
    assert counts(outcome.table) == {("a", 0): 1}
    assert late_offsets(outcome) == [3]


@pytest.mark.law("A2")
def test_required_a_window_that_never_had_a_row_closes_all_the_same(engine_name: str) -> None:
    """Nothing was ever open in [0, 10): W alone says that it is closed."""
    s = scenario(
        config(late_rule=WINDOW_RULE), [log("p0", 30, 3)], Deliver("p0", 2), Barrier(), DrainAll()
    )
    outcome = judge.run_on(engine_name, s)
    assert counts(outcome.table) == {("a", 30): 1}
    assert outcome.epochs[0].late == (LateRow("p0", 1, 3, 30),)


@pytest.mark.law("A2")
@pytest.mark.parametrize(
    ("offset", "time", "is_late"),
    [(0, -11, True), (0, -10, False), (3, -8, True), (3, -7, False), (-2, -3, True), (-2, -2, False)],
)  # fmt: skip
def test_required_the_window_of_a_row_is_that_of_the_grid(
    engine_name: str, offset: int, time: int, *, is_late: bool
) -> None:
    """W is 0 or the next end of the grid after it less one: windows before 1970, and an offset."""
    end = {0: -1, 3: 2, -2: 7}[offset]
    s = scenario(
        config(late_rule=WINDOW_RULE, offset=offset), [log("p0", end, time)], Deliver("p0", 2),
        Barrier(),
    )  # fmt: skip
    assert late_offsets(judge.run_on(engine_name, s)) == ([1] if is_late else [])


@pytest.mark.law("A2")
def test_required_the_window_rule_counts_and_keeps_each_late_row(engine_name: str) -> None:
    """Two rows in an open window, two in closed ones; the lane shows W just before each."""
    s = scenario(
        config(late_rule=WINDOW_RULE), [log("p0", 12, 11, 9, 25, 24, 11)], Deliver("p0", 6), Barrier()
    )  # fmt: skip
    epoch = last(judge.run_on(engine_name, s))
    assert epoch.late == (LateRow("p0", 2, 9, 12), LateRow("p0", 5, 11, 25))
    p0 = state_of(epoch, "p0")
    assert (p0.accepted, p0.admitted, p0.late, p0.invalid) == (6, 4, 2, 0)
    assert counts(epoch.outbox) == {("a", 10): 2}


@pytest.mark.law("A2")
@pytest.mark.parametrize("cut", [False, True])
def test_required_the_window_rule_is_the_same_after_a_restart(
    engine_name: str, *, cut: bool
) -> None:
    between: list[Step] = [Barrier(), Restart()] if cut else []
    s = scenario(
        config(late_rule=WINDOW_RULE, grace_ms=5), [log("p0", 1, 14, 9, 15, 8)], Deliver("p0", 2),
        *between, Deliver("p0", 2), *between, Deliver("p0", 1), Barrier(),
    )  # fmt: skip
    outcome = judge.run_on(engine_name, s)
    assert late_offsets(outcome) == [4]
    assert counts(outcome.table) == {("a", 0): 2}


@pytest.mark.law("A2")
def test_required_the_window_rule_reads_the_frozen_watermark(engine_name: str) -> None:
    """W moves at the epoch's end: 25 closes [0, 10) there, not before the row at 3."""
    s = scenario(
        config(late_rule=WINDOW_RULE, watermark_update=BY_EPOCH), [log("p0", 1, 25, 3, 4)],
        Deliver("p0", 3), Barrier(), Deliver("p0", 1), Barrier(),
    )  # fmt: skip
    outcome = judge.run_on(engine_name, s)
    assert counts(outcome.table) == {("a", 0): 2}
    assert [e.late for e in outcome.epochs] == [(), (LateRow("p0", 3, 4, 25),)]


# ---- A3 -----------------------------------------------------------------------------------------


@pytest.mark.law("A3")
@pytest.mark.parametrize(
    ("delay", "time", "is_late"),
    [(0, 30, False), (0, 29, True), (5, 25, False), (5, 24, True), (30, 0, False), (30, -1, True)],
)
def test_required_a_row_is_late_behind_its_own_partition(
    engine_name: str, delay: int, time: int, *, is_late: bool
) -> None:
    """p1 has no row, so W stays at NEVER; p0 has reached 30, and only this decides."""
    s = scenario(
        config(late_rule=PARTITION_RULE, delay_ms=delay), [log("p0", 30, time), log("p1")],
        Deliver("p0", 2), Barrier(),
    )  # fmt: skip
    found = last(judge.run_on(engine_name, s)).late
    assert found == ((LateRow("p0", 1, time, NEVER),) if is_late else ())


@pytest.mark.law("A3")
def test_required_another_partition_does_not_make_a_row_late(engine_name: str) -> None:
    """p1 is at 50, far ahead; p0's rows are in their own order, and on time."""
    s = scenario(
        config(late_rule=PARTITION_RULE), [log("p0", 5, 6), log("p1", 50)], Deliver("p1", 1),
        Deliver("p0", 2), Barrier(),
    )  # fmt: skip
    assert last(judge.run_on(engine_name, s)).late == ()


@pytest.mark.law("A3")
def test_required_the_first_row_of_a_new_partition_is_late_before_the_watermark(
    engine_name: str,
) -> None:
    """p1 is added when W is 50: nothing of its own is known yet, and 49 is late by W alone."""
    s = scenario(
        config(late_rule=PARTITION_RULE), [log("p0", 50), log("p1", 49, 50)], Deliver("p0", 1),
        AddPartition("p1"), Deliver("p1", 2), Barrier(), assigned=["p0"],
    )  # fmt: skip
    assert last(judge.run_on(engine_name, s)).late == (LateRow("p1", 0, 49, 50),)


@pytest.mark.law("A3")
@pytest.mark.parametrize("update", ["row", BY_EPOCH])
def test_required_the_partition_rule_looks_at_each_row_also_where_the_watermark_waits(
    engine_name: str, update: str
) -> None:
    """The largest time of a partition rises with each row, whenever W does."""
    s = scenario(
        config(late_rule=PARTITION_RULE, watermark_update=update), [log("p0", 9, 3, 12, 11, 12)],
        Deliver("p0", 5), Barrier(),
    )  # fmt: skip
    assert late_offsets(judge.run_on(engine_name, s)) == [1, 3]


@pytest.mark.law("A3")
def test_required_a_partition_keeps_its_largest_time_over_absence_and_restart(
    engine_name: str,
) -> None:
    """p0 goes with its 30 and comes back; the process starts again. 29 is still late."""
    s = scenario(
        config(late_rule=PARTITION_RULE), [log("p0", 30, 29, 31), log("p1")], Deliver("p0", 1),
        RemovePartition("p0"), Barrier(), Restart(), AddPartition("p0"), Deliver("p0", 2), Barrier(),
    )  # fmt: skip
    assert last(judge.run_on(engine_name, s)).late == (LateRow("p0", 1, 29, NEVER),)


@pytest.mark.law("A3")
@pytest.mark.law("A4")
def test_required_an_invalid_row_does_not_make_others_late(engine_name: str) -> None:
    """99 is too far ahead, so it is not the largest time of its partition."""
    s = scenario(
        config(late_rule=PARTITION_RULE, max_future_ms=50), [log("p0", 5, 99, 6), log("p1")], Tick(0),
        Deliver("p0", 3), Barrier(),
    )  # fmt: skip
    epoch = last(judge.run_on(engine_name, s))
    assert (epoch.late, [r.offset for r in epoch.invalid]) == ((), [1])


# ---- all rules ----------------------------------------------------------------------------------


@pytest.mark.law("A1")
@pytest.mark.law("A2")
@pytest.mark.law("A3")
@pytest.mark.law("A6")
@few
@given(
    s=strategies.scenarios(
        strategies.Shape(
            crashes=True,
            late_rules=("row", WINDOW_RULE, PARTITION_RULE),
            windows=strategies.GRIDS,
            repeats=False,
        )
    )
)
def test_required_the_late_rows_are_those_of_the_definition(
    slow_engine_name: str, s: Scenario
) -> None:
    """From the items alone: every late row with the W that it saw, or how many where none is kept."""
    outcome = judge.run_on(slow_engine_name, s)
    expected = [j for j in history(s, outcome).rows if j.late]
    if s.config.late_lane:
        found = [(e.epoch, r) for e in outcome.epochs for r in e.late]
        lane = [
            (j.epoch, LateRow(j.row.partition, j.row.offset, j.event_time, j.watermark))
            for j in expected
        ]
        assert sorted(found, key=repr) == sorted(lane, key=repr)
    counted = {p.partition: p.late for e in outcome.epochs for p in e.partitions}
    for name, late in counted.items():
        assert late == sum(j.row.partition == name for j in expected)


# ---- F4 -----------------------------------------------------------------------------------------


def shown_at(outcome: Outcome, start_ms: int) -> list[tuple[int, object]]:
    """(epoch, first value) of each time that a window was shown."""
    return [
        (e.epoch, p.values[0])
        for e in outcome.epochs
        for p in e.outbox
        if isinstance(p, Put) and p.start_ms == start_ms
    ]


@pytest.mark.law("F4")
@pytest.mark.law("A2")
def test_required_each_row_in_the_grace_corrects_its_window_once(engine_name: str) -> None:
    """Window rule, an epoch a row: 9 and 8 come after the end, in the grace; 7 comes after it.

    0         10          15
    [---------)~~~~~~~~~~~|
       1   12^  9^ 13 8^  15 7
    """
    s = scenario(
        config(late_rule=WINDOW_RULE, grace_ms=5, output=UPDATE), [log("p0", 1, 12, 9, 13, 8, 15, 7)],
        *(Deliver("p0", 1), Barrier()) * 7,
    )  # fmt: skip
    outcome = judge.run_on(engine_name, s)
    assert shown_at(outcome, 0) == [(1, 1), (3, 2), (5, 3)]
    assert late_offsets(outcome) == [6]


@pytest.mark.law("F4")
def test_required_rows_of_one_epoch_make_one_correction(engine_name: str) -> None:
    s = scenario(
        config(late_rule=WINDOW_RULE, grace_ms=5, output=UPDATE), [log("p0", 1, 12, 9, 8, 15)],
        Deliver("p0", 2), Barrier(), Deliver("p0", 3), Barrier(),
    )  # fmt: skip
    assert shown_at(judge.run_on(engine_name, s), 0) == [(1, 1), (2, 3)]


@pytest.mark.law("F4")
def test_required_a_correction_touches_its_own_key_only(engine_name: str) -> None:
    rows = tuple(
        row("p0", i, t, k) for i, (t, k) in enumerate([(1, "a"), (2, "b"), (12, "a"), (9, "b")])
    )
    s = scenario(
        config(late_rule=WINDOW_RULE, grace_ms=5, output=UPDATE), [("p0", rows)], Deliver("p0", 3),
        Barrier(), Deliver("p0", 1), Barrier(),
    )  # fmt: skip
    assert counts(last(judge.run_on(engine_name, s)).outbox) == {("b", 0): 2}


@pytest.mark.law("F4")
@pytest.mark.law("A2")
@few
@given(
    s=strategies.scenarios(
        strategies.Shape(
            outputs=(UPDATE,),
            late_rules=(WINDOW_RULE,),
            windows=(TUMBLING, HOPPING),
            invalid=False,
            drain=False,
        )
    )
)
def test_required_corrections_are_bounded_by_the_rows_in_the_grace(
    slow_engine_name: str, s: Scenario
) -> None:
    """Per key and window: showings that began after the end, and rows admitted after it."""
    outcome = judge.run_on(slow_engine_name, s)
    in_grace: dict[tuple[str, int], int] = {}
    for j in history(s, outcome).rows:
        for _, end in windows_of(s.config.window, j.event_time):
            if not j.late and end <= j.watermark < end + s.config.grace_ms:
                group = (canonical(j.row.key), end)
                in_grace[group] = in_grace.get(group, 0) + 1
    corrections: dict[tuple[str, int], int] = {}
    before = NEVER
    for epoch in outcome.epochs:
        for put in epoch.outbox:
            if isinstance(put, Put) and before >= put.end_ms:
                group = (canonical(put.key), put.end_ms)
                corrections[group] = corrections.get(group, 0) + 1
        before = epoch.watermark
    assert {g: n for g, n in corrections.items() if n > in_grace.get(g, 0)} == {}


def canonical(key: tuple[object, ...]) -> str:
    """-0.0 is 0.0, and NaN is NaN."""
    return repr(tuple(value + 0.0 if isinstance(value, float) else value for value in key))
