"""Several windows over one source: each shows what it would show alone, in one epoch and one commit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from thund_conformance import compare, judge, strategies
from thund_conformance.scripts import ROWS, config, hopping, last, scenario, session
from thund_contract.engine import Outcome
from thund_contract.scenario import Barrier, Crash, Deliver, DrainAll, Restart, Scenario, Step
from thund_contract.vocabulary import (
    COMPLETE,
    SUM,
    UPDATE,
    Aggregate,
    Config,
    Operator,
    Put,
    Row,
)

few = strategies.share(4)
TOTAL = Aggregate("total", SUM, "x")
TWO = config(
    delay_ms=5,
    more=(
        Operator("wide", (), hopping(20, 10), (ROWS, TOTAL)),
        Operator("visits", ("k",), session(4), (ROWS,), UPDATE),
    ),
)
"""Counts by key in windows of 10; counts and sums of all in hops of 20; sessions by key."""


def rows(*cells: tuple[int, str, int]) -> tuple[str, tuple[Row, ...]]:
    """A log of (event time, key, x) for TWO."""
    return "p0", tuple(
        Row("p0", i, t, (k,), (None,), more=(((), (None, x)), ((k,), (None,))))
        for i, (t, k, x) in enumerate(cells)
    )


LOG = rows((1, "a", 5), (3, "b", 7), (12, "a", 1), (4, "a", 9), (14, "a", 2), (30, "b", 3))


def spans(outcome: Outcome) -> list[tuple[object, ...]]:
    """(key, start, end, values) of the whole table."""
    return sorted(((p.key, p.start_ms, p.end_ms, p.values) for p in outcome.table), key=repr)


@pytest.mark.law("E5")
@pytest.mark.law("K1")
@pytest.mark.parametrize("death", [None, 1, 2, 3, 4, 5, 6])
def test_required_several_windows_share_rows_epochs_and_commits(
    engine_name: str, death: int | None
) -> None:
    """The row at 4 is late for all, as W = 7; a death at any step of the second epoch does not show."""
    deaths = [Crash(death)] if death else []
    steps: list[Step] = [Deliver("p0", 2), Barrier(), *deaths, Deliver("p0", 4)]
    ends: list[Step] = [Barrier(), Restart(), Deliver("p0", 6), DrainAll()]
    outcome = judge.run_on(engine_name, scenario(TWO, [LOG], *steps, *ends))
    assert spans(outcome) == sorted(
        [
            (("a",), 0, 10, (1,)),
            (("b",), 0, 10, (1,)),
            (("a",), 10, 20, (2,)),
            (("b",), 30, 40, (1,)),
            ((), -10, 10, (2, 12)),
            ((), 0, 20, (4, 15)),
            ((), 10, 30, (2, 3)),
            ((), 20, 40, (1, 3)),
            ((), 30, 50, (1, 3)),
            (("a",), 1, 5, (1,)),
            (("b",), 3, 7, (1,)),
            (("a",), 12, 18, (2,)),
            (("b",), 30, 34, (1,)),
        ],
        key=repr,
    )
    assert [p.late for p in last(outcome).partitions] == [1]


@pytest.mark.law("E5")
def test_required_equal_keys_and_starts_of_two_windows_do_not_meet(engine_name: str) -> None:
    """The same key, window and aggregates twice: two rows under two identities."""
    twice = config(more=(Operator("again", ("k",), config().window, (ROWS,), COMPLETE),))
    log = ("p0", (Row("p0", 0, 1, ("a",), (None,), more=((("a",), (None,)),)),))
    outcome = judge.run_on(engine_name, scenario(twice, [log], Deliver("p0", 1), DrainAll()))
    one, other = outcome.table
    assert one.id != other.id
    assert (one.key, one.start_ms, one.values) == (other.key, other.start_ms, other.values)


@pytest.mark.law("E5")
@pytest.mark.law("F3")
def test_required_the_state_says_whose_it_is(engine_name: str) -> None:
    s = scenario(TWO, [LOG], Deliver("p0", 2), Barrier())
    state = last(judge.run_on(engine_name, s)).state
    assert sorted((w.operator, w.start_ms) for w in state) == [
        ("", 0), ("", 0), ("visits", 1), ("visits", 3), ("wide", -10), ("wide", 0),
    ]  # fmt: skip


def alone(s: Scenario, one: Operator | None) -> Scenario:
    """The scenario of one of its windows, under the pipeline's name and its own."""
    config_ = replace(s.config, more=())
    if one is None:
        logs = [(n, tuple(replace(r, more=()) for r in part)) for n, part in s.logs]
        return replace(s, config=config_, logs=tuple(logs))
    place = s.config.more.index(one)
    own: Config = replace(
        config_, operator=one.name, key=one.key, window=one.window, aggregates=one.aggregates,
        output=one.output, panes=one.panes,
    )  # fmt: skip
    logs = [
        (n, tuple(replace(r, key=r.more[place][0], values=r.more[place][1], more=()) for r in part))
        for n, part in s.logs
    ]
    return replace(s, config=own, logs=tuple(logs))


@pytest.mark.law("E5")
@pytest.mark.law("T1")
@few
@given(s=strategies.scenarios(strategies.WITH_CRASHES))
def test_required_each_window_shows_what_it_would_show_alone(
    slow_engine_name: str, s: Scenario
) -> None:
    """Epoch by epoch: the outbox of several is that of each, put together."""
    whole = judge.run_on(slow_engine_name, s)
    parts = [judge.run_on(slow_engine_name, alone(s, one)) for one in (None, *s.config.more)]
    table = sorted((p for part in parts for p in part.table), key=lambda p: p.id)
    assert compare.same(sorted(whole.table, key=lambda p: p.id), table)
    for index, epoch in enumerate(whole.epochs):
        shown = [p for part in parts for p in part.epochs[index].outbox]
        assert compare.same(
            sorted(epoch.outbox, key=lambda p: p.id), sorted(shown, key=lambda p: p.id)
        )
        assert all(part.epochs[index].watermark == epoch.watermark for part in parts)
        assert all(isinstance(p, Put) or p.version == epoch.epoch for p in epoch.outbox)
