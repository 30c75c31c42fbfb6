"""The laws of windows and aggregates: assignment, closing, and exact values."""

from __future__ import annotations

import math
from itertools import permutations

import pytest

from thund_conformance import compare, judge
from thund_conformance.scripts import ROWS, config, counts, drained, log, row, scenario, valued
from thund_contract.engine import Outcome
from thund_contract.scenario import Barrier, Deliver, DrainAll, RemovePartition, Restart
from thund_contract.vocabulary import (
    COMPLETE,
    COUNT,
    COUNT_DISTINCT,
    MAX,
    MEAN,
    MIN,
    STDDEV_POP,
    STDDEV_SAMP,
    SUM,
    UPDATE,
    VAR_POP,
    VAR_SAMP,
    Aggregate,
    LateRow,
    Put,
    Unfit,
    WindowState,
)

INT64_MAX, INT64_MIN = 2**63 - 1, -(2**63)
HUGE = 1.7976931348623157e308


def starts(outcome: Outcome) -> list[int]:
    return sorted(p.start_ms for p in outcome.table)


# ---- G1 -----------------------------------------------------------------------------------------


@pytest.mark.law("G1")
@pytest.mark.parametrize(
    ("size", "offset", "time", "start"),
    [
        (10, 0, 0, 0),
        (10, 0, 9, 0),
        (10, 0, 10, 10),
        (10, 0, -1, -10),
        (10, 0, -10, -10),
        (10, 0, -11, -20),
        (10, 3, 2, -7),
        (10, 3, 3, 3),
        (10, -3, 6, -3),
        (10, -3, 7, 7),
        (10, 23, 2, -7),
        (1, 0, -5, -5),
        (7, 2, -4503599627370496, -4503599627370499),
        (7, 2, 4503599627370496, 4503599627370496),
    ],
)
def test_required_a_window_starts_at_the_floor(
    engine_name: str, size: int, offset: int, time: int, start: int
) -> None:
    """Floor, never truncation: -1 lies in [-10, 0).

    -10        0        10
     [--a------)[--------)
              -1
    """
    s = drained(config(size=size, offset=offset), log("p0", time))
    found = judge.run_on(engine_name, s).table
    assert [(p.start_ms, p.end_ms) for p in found] == [(start, start + size)]


# ---- G4 -----------------------------------------------------------------------------------------

ALL_OF_X = (
    ROWS,
    Aggregate("n", COUNT, "x"),
    Aggregate("s", SUM, "x"),
    Aggregate("lo", MIN, "x"),
    Aggregate("hi", MAX, "x"),
    Aggregate("m", MEAN, "x"),
)


def all_of(values: tuple[object, ...], name: str) -> Outcome:
    rows = [(1, None, v, v, v, v, v) for v in values]
    return judge.run_on(name, drained(config(aggregates=ALL_OF_X), valued("p0", rows)))


@pytest.mark.law("G4")
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((3, 1, 2), (3, 3, 6, 1, 3, 2.0)),
        ((1, None, 2), (3, 2, 3, 1, 2, 1.5)),
        ((None, None), (2, 0, None, None, None, None)),
        ((-5,), (1, 1, -5, -5, -5, -5.0)),
        ((INT64_MAX, 1, -1), (3, 3, INT64_MAX, -1, INT64_MAX, 3.0744573456182584e18)),
        ((INT64_MIN, -1, 1), (3, 3, INT64_MIN, INT64_MIN, 1, -3.0744573456182584e18)),
        ((9007199254740993,) * 3, (3, 3, 3 * 9007199254740993, *((2**53 + 1,) * 2), 2.0**53)),
        ((0.1, 0.2, 0.3), (3, 3, 0.6, 0.1, 0.3, 0.2)),
        ((1e16, 1.0, -1e16), (3, 3, 1.0, -1e16, 1e16, 1 / 3)),
        ((-0.0, -0.0), (2, 2, 0.0, -0.0, -0.0, 0.0)),
        ((0.0, -0.0), (2, 2, 0.0, -0.0, 0.0, 0.0)),
        ((1.0, math.nan), (2, 2, math.nan, 1.0, math.nan, math.nan)),
        ((math.inf, 1.0), (2, 2, math.inf, 1.0, math.inf, math.inf)),
        ((-math.inf, math.inf), (2, 2, math.nan, -math.inf, math.inf, math.nan)),
        ((HUGE, HUGE, -HUGE), (3, 3, HUGE, -HUGE, HUGE, HUGE / 3)),
        ((5e-324, 5e-324, None), (3, 2, 1e-323, 5e-324, 5e-324, 5e-324)),
    ],
)
def test_required_aggregates_are_exact_in_any_order(
    engine_name: str, values: tuple[object, ...], expected: tuple[object, ...]
) -> None:
    for order in sorted(set(permutations(values)), key=repr)[:6]:
        found = all_of(order, engine_name).table[0].values
        assert compare.same(found, expected), f"{order}: {found} is not {expected}"


@pytest.mark.law("G4")
@pytest.mark.parametrize(
    ("values", "exact"),
    [
        ((INT64_MAX, 1), str(2**63)),
        ((INT64_MIN, -1), str(-(2**63) - 1)),
        ((HUGE, HUGE), f"{2 * int(HUGE)}/1"),
        ((-HUGE, -HUGE), f"{-2 * int(HUGE)}/1"),
    ],
)
def test_required_a_sum_that_does_not_fit_is_reported_and_stops_nothing(
    engine_name: str, values: tuple[object, ...], exact: str
) -> None:
    outcome = all_of(values, engine_name)
    row_ = outcome.table[0]
    assert row_.values[2] is None
    assert row_.values[3:5] == (min(values), max(values))  # type: ignore[type-var]
    assert [e.unfit for e in outcome.epochs] == [(Unfit(row_.id, "s", exact),)]


@pytest.mark.law("G4")
@pytest.mark.parametrize("large", [1e16, 1e300, HUGE])
def test_required_partial_sums_are_kept_exactly_over_a_restart(
    engine_name: str, large: float
) -> None:
    """A large value, a small one, and the large one taken off: what is stored is not rounded."""
    rows = [(1, v) for v in (large, 1.0, -large)]
    s = scenario(
        config(aggregates=(Aggregate("s", SUM, "x"),)),
        [valued("p0", rows)],
        *(Deliver("p0", 1), Barrier(), Restart()) * 3,
        DrainAll(),
    )
    assert judge.run_on(engine_name, s).table[0].values == (1.0,)


@pytest.mark.law("G4")
def test_required_specials_are_counted_and_kept_beside_the_exact_sum(engine_name: str) -> None:
    rows = [(1, v) for v in (0.5, math.inf, 0.25)]
    s = scenario(
        config(aggregates=(Aggregate("s", SUM, "x"),)),
        [valued("p0", rows)],
        Deliver("p0", 3),
        Barrier(),
    )
    epoch = judge.run_on(engine_name, s).epochs[-1]
    assert epoch.state == (WindowState(("a",), 0, ((3, 3, 4, ("+inf",)),)),)


LONG = "a text that is longer than a word, or two"


@pytest.mark.law("G4")
@pytest.mark.parametrize(
    ("operation", "values", "expected"),
    [
        (VAR_POP, (1, 3), 1.0),
        (VAR_SAMP, (1, 3), 2.0),
        (VAR_POP, (5,), 0.0),
        (VAR_SAMP, (5, None), None),
        (STDDEV_SAMP, (5.5,), None),
        (VAR_POP, (1e15, 1e15 + 1, 1e15 + 2), 2 / 3),
        (STDDEV_POP, (0.1, 0.1, 0.1), 0.0),
        (VAR_SAMP, (1.0, math.inf), math.nan),
        (COUNT_DISTINCT, (0.0, -0.0, 1.0), 2),
        (COUNT_DISTINCT, (math.nan, -math.nan, None), 1),
        (COUNT_DISTINCT, (None,), 0),
        (MIN, (LONG + "b", LONG + "a", LONG + "ab"), LONG + "a"),
        (MAX, ("aaa", "b", "ab"), "b"),
        (MAX, ("zz", "é", "z"), "é"),
        (MIN, (b"\x00", b"", b"\xff"), b""),
    ],
)
def test_required_an_aggregate_is_that_of_the_values_in_any_order(
    engine_name: str, operation: str, values: tuple[object, ...], expected: object
) -> None:
    aggregates = (Aggregate("a", operation, "x"),)
    for order in sorted(set(permutations(values)), key=repr):
        s = drained(config(aggregates=aggregates), valued("p0", [(1, v) for v in order]))
        found = judge.run_on(engine_name, s).table[0].values
        assert compare.same(found, (expected,)), f"{order}: {found}"


@pytest.mark.law("G4")
def test_required_null_equals_null_and_nan_equals_nan_in_keys(engine_name: str) -> None:
    """-0.0 is 0.0 as a key, and shows as 0.0; NaN is one key, null is another."""
    keys = (math.nan, 0.0, None, -0.0, -math.nan, None, 1.0)
    rows = tuple(row("p0", i, 1, key) for i, key in enumerate(keys))
    found = judge.run_on(engine_name, drained(config(), ("p0", rows))).table
    shown = {repr(p.key[0]): p.values[0] for p in found}
    assert shown == {"nan": 2, "0.0": 2, "None": 2, "1.0": 1}


@pytest.mark.law("G4")
def test_required_dates_and_times_have_a_least_and_a_largest(engine_name: str) -> None:
    kind = "timestamp[ms]"
    rows = [(1, v, v) for v in ((kind, 5), None, (kind, -5))]
    aggregates = (Aggregate("lo", MIN, "x"), Aggregate("hi", MAX, "x"))
    s = drained(config(aggregates=aggregates), valued("p0", rows))
    assert judge.run_on(engine_name, s).table[0].values == ((kind, -5), (kind, 5))


# ---- F1 to F4 -----------------------------------------------------------------------------------


@pytest.mark.law("F1")
@pytest.mark.parametrize(("grace", "time", "closed"), [
    (0, 9, False), (0, 10, True), (0, 11, True), (5, 14, False), (5, 15, True), (5, 40, True),
])  # fmt: skip
def test_required_a_window_closes_when_the_watermark_reaches_end_plus_grace(
    engine_name: str, grace: int, time: int, *, closed: bool
) -> None:
    """With a grace of 5, [0, 10) closes at W = 15.

    0         10    15
    [----a----)~~~~~|
    """
    s = scenario(config(grace_ms=grace), [log("p0", 1, time)], Deliver("p0", 2), Barrier())
    epoch = judge.run_on(engine_name, s).epochs[-1]
    shown = [p.start_ms for p in epoch.outbox if isinstance(p, Put)]
    still_open = [w.start_ms for w in epoch.state if w.start_ms == 0]
    assert (0 in shown, still_open) == (closed, [] if closed else [0])


@pytest.mark.law("F1")
def test_required_a_window_opens_and_closes_inside_one_epoch(engine_name: str) -> None:
    """Each of three windows has its rows and its end in the same epoch; each shows once."""
    s = scenario(config(), [log("p0", 1, 2, 11, 21, 22, 31)], Deliver("p0", 6), Barrier())
    outcome = judge.run_on(engine_name, s)
    assert counts(outcome.table) == {("a", 0): 2, ("a", 10): 1, ("a", 20): 2}
    assert len(outcome.epochs[-1].outbox) == 3


@pytest.mark.law("F1")
def test_required_a_change_of_the_partitions_closes_windows_too(engine_name: str) -> None:
    """p1 held W at 0; when it goes, W is 25 and two windows close without a row."""
    s = scenario(
        config(),
        [log("p0", 1, 11, 25), log("p1", 0)],
        Deliver("p0", 3),
        Deliver("p1", 1),
        Barrier(),
        RemovePartition("p1"),
        Barrier(),
    )
    outcome = judge.run_on(engine_name, s)
    assert [len(e.outbox) for e in outcome.epochs] == [0, 2]
    assert [w.start_ms for w in outcome.epochs[-1].state] == [20]


@pytest.mark.law("F2")
@pytest.mark.parametrize("mode", ["append", UPDATE, COMPLETE])
def test_required_a_closed_window_never_changes(engine_name: str, mode: str) -> None:
    """[0, 10) closes with 2 rows at W = 12; the rows at 3 and 9 come too late for it."""
    s = scenario(
        config(output=mode),
        [log("p0", 1, 2, 12, 3, 9, 13)],
        Deliver("p0", 3),
        Barrier(),
        Deliver("p0", 3),
        Barrier(),
        DrainAll(),
    )
    outcome = judge.run_on(engine_name, s)
    results = {p.values for e in outcome.epochs for p in e.outbox if p.start_ms == 0}  # type: ignore[union-attr]
    assert results == {(2,)}
    assert counts(outcome.table)["a", 0] == 2


@pytest.mark.law("F2")
def test_required_a_closed_window_never_opens_again(engine_name: str) -> None:
    s = scenario(
        config(grace_ms=5), [log("p0", 1, 16, 2, 3)], *(Deliver("p0", 1), Barrier()) * 4, DrainAll()
    )
    outcome = judge.run_on(engine_name, s)
    assert [0 in [w.start_ms for w in e.state] for e in outcome.epochs] == [True, *[False] * 4]
    assert sum(p.start_ms == 0 for e in outcome.epochs for p in e.outbox) == 1  # type: ignore[union-attr]


@pytest.mark.law("F3")
def test_required_the_state_holds_open_windows_only(engine_name: str) -> None:
    """Many windows pass by, one stays; two keys of a window leave it together."""
    times = [t for n in range(20) for t in (10 * n, 10 * n + 1)]
    rows = tuple(row("p0", i, t, "ab"[i % 2]) for i, t in enumerate(times))
    s = scenario(config(grace_ms=10), [("p0", rows)], *(Deliver("p0", 8), Barrier()) * 5)
    for epoch in judge.run_on(engine_name, s).epochs:
        assert epoch.state
        assert all(w.start_ms + 10 + 10 > epoch.watermark for w in epoch.state)
        assert len(epoch.state) <= 4


@pytest.mark.law("F4")
def test_required_a_window_is_corrected_at_most_once_per_row_in_its_grace(
    engine_name: str,
) -> None:
    """Row rule: no row enters [0, 10) once W = 10, so in update mode it is not shown again.

    0         10             40
    [--aa-----)~~~~~ grace 30 ~|
          W=12: 9 is late
    """
    s = scenario(
        config(output=UPDATE, grace_ms=30),
        [log("p0", 1, 2, 12, 9, 14, 45)],
        *(Deliver("p0", 1), Barrier()) * 6,
    )
    outcome = judge.run_on(engine_name, s)
    shown = [(e.epoch, p.values[0]) for e in outcome.epochs for p in e.outbox if p.start_ms == 0]  # type: ignore[union-attr]
    assert shown == [(1, 1), (2, 2)]
    assert [r for e in outcome.epochs for r in e.late] == [LateRow("p0", 3, 9, 12)]
