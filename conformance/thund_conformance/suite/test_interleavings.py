"""Theorem T8: under the partition rule neither a cut nor an interleaving of the logs shows.

Under the other rules, and for the default one, Hypothesis has to find where it does.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thund_conformance import compare, engines, golden, judge, strategies
from thund_conformance.crashes import timeless
from thund_conformance.scripts import config, counts, log, scenario
from thund_contract.engine import Outcome
from thund_contract.scenario import Barrier, Deliver, DrainAll, Scenario, Step
from thund_contract.vocabulary import (
    BY_EPOCH,
    BY_ROW,
    PARTITION_RULE,
    WINDOW_RULE,
    Config,
    PartitionState,
)

few = strategies.share(4)

ONLY_LOGS = replace(strategies.FIXED, steps=0, drain=False, late_rules=(PARTITION_RULE,))
BOTH_UPDATES = replace(ONLY_LOGS, updates=(BY_ROW, BY_EPOCH))


@st.composite
def runs(draw: st.DrawFn, s: Scenario) -> Scenario:
    """All rows of the logs of a scenario, in one interleaving and with some cuts, then a drain."""
    turns = draw(st.permutations([name for name, rows in s.logs for _ in rows]))
    cuts = draw(st.sets(st.integers(0, len(turns)), max_size=4))
    return in_turns(s, turns, cuts)


def in_turns(s: Scenario, turns: list[str], cuts: set[int]) -> Scenario:
    """A row of each named partition, one after the other; a cut before each place in `cuts`."""
    steps: list[Step] = []
    for place, name in enumerate(turns):
        steps += [Barrier()] * (place in cuts)
        steps.append(Deliver(name, 1))
    names = tuple(sorted(name for name, _ in s.logs))
    return replace(s, assigned=names, steps=(*steps, DrainAll()))


def answer(outcome: Outcome) -> object:
    """What T8 speaks of: the drained table, the late and the invalid rows, and the counters."""
    late = sorted((r.partition, r.offset, r.event_time) for e in outcome.epochs for r in e.late)
    invalid = sorted((r.partition, r.offset, r.reason) for e in outcome.epochs for r in e.invalid)
    states: tuple[PartitionState, ...] = outcome.epochs[-1].partitions
    return timeless(outcome.table), late, invalid, states


# ---- the partition rule -------------------------------------------------------------------------

LOGS = [log("p0", 1, 21, 3, 33), log("p1", 2, 14, 13, 5), log("p2", 40, 7)]
"""Behind their own partition: 3, then 13 and 5, and 7."""


@pytest.mark.law("T8")
@pytest.mark.parametrize("update", [BY_ROW, BY_EPOCH])
@pytest.mark.parametrize("mode", ["append", "update", "complete"])
def test_required_no_order_of_three_logs_shows(engine_name: str, mode: str, update: str) -> None:
    """One partition after the other, in both directions, turn by turn, whole and in pieces."""
    s = scenario(
        config(late_rule=PARTITION_RULE, watermark_update=update, output=mode), LOGS, DrainAll()
    )
    orders = [
        "p0 p0 p0 p0 p1 p1 p1 p1 p2 p2",
        "p2 p2 p1 p1 p1 p1 p0 p0 p0 p0",
        "p0 p1 p2 p0 p1 p2 p0 p1 p0 p1",
        "p2 p1 p0 p2 p1 p0 p0 p0 p1 p1",
    ]
    found = [
        answer(judge.run_on(engine_name, in_turns(s, order.split(), cuts)))
        for order in orders
        for cuts in (set[int](), {3}, {1, 2, 6}, set(range(1, 10)))
    ]
    assert [other for other in found if other != found[0]] == []
    outcome = judge.run_on(engine_name, s)
    assert counts(outcome.table) == {
        ("a", 0): 2, ("a", 10): 1, ("a", 20): 1, ("a", 30): 1, ("a", 40): 1
    }  # fmt: skip
    assert answer(outcome) == found[0]


@pytest.mark.law("T8")
@few
@given(data=st.data())
def test_required_neither_cut_nor_interleaving_shows(
    slow_engine_name: str, data: st.DataObject
) -> None:
    """The same logs in four runs: anything drawn, W moved by rows or at the end of epochs."""
    s = data.draw(strategies.scenarios(BOTH_UPDATES))
    first, *others = [
        answer(judge.run_on(slow_engine_name, data.draw(runs(s), label="run"))) for _ in range(4)
    ]
    for other in others:
        assert compare.same(first, other)


@pytest.mark.law("T8")
@few
@given(data=st.data())
def test_required_the_update_of_the_watermark_does_not_show_either(
    slow_engine_name: str, data: st.DataObject
) -> None:
    """What is late is a function of each log alone, so it does not matter when W moves."""
    s = data.draw(strategies.scenarios(ONLY_LOGS))
    run = data.draw(runs(s))
    found = [
        answer(judge.run_on(slow_engine_name, with_config(run, watermark_update=update)))
        for update in (BY_ROW, BY_EPOCH)
    ]
    assert compare.same(*found)


def with_config(s: Scenario, **changes: object) -> Scenario:
    """The scenario under another configuration."""
    return replace(s, config=replace(s.config, **changes))  # type: ignore[arg-type]


# ---- the other rules: where it shows ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs of the same logs."""

    left: Scenario
    right: Scenario


@st.composite
def pairs(draw: st.DrawFn, config_: Config, *, partitions: int, cuts: bool) -> Pair:
    """Few rows with small times; the runs differ in their turns, or else in their cuts alone."""
    names = [f"p{i}" for i in range(partitions)]
    logs = [log(name, *draw(st.lists(st.integers(0, 29), max_size=3))) for name in names]
    s = scenario(config_, logs, DrainAll())
    turns = [name for name, rows in s.logs for _ in rows]
    if cuts:
        places = st.sets(st.integers(1, 3))
        return Pair(in_turns(s, turns, draw(places)), in_turns(s, turns, draw(places)))
    orders = st.permutations(turns)
    return Pair(in_turns(s, draw(orders), set()), in_turns(s, draw(orders), set()))


def differ(pair: Pair, name: str = engines.REFERENCE) -> bool:
    """Whether the two runs end with different tables."""
    left, right = judge.run_on(name, pair.left), judge.run_on(name, pair.right)
    return not compare.same(timeless(left.table), timeless(right.table))


def smallest(
    pairs_: st.SearchStrategy[Pair], name: str = engines.REFERENCE, *, examples: int = 2_000
) -> Pair:
    """The smallest pair whose tables differ; the same one in each run.

    Raises: NoSuchExample where none is found.
    """
    quiet = hypothesis.settings(
        max_examples=examples, database=None, derandomize=True, deadline=None,
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
    )  # fmt: skip
    return hypothesis.find(
        pairs_, lambda pair: differ(pair, name), settings=quiet, random=random.Random(8)
    )


def rows_of(s: Scenario) -> int:
    return sum(len(rows) for _, rows in s.logs)


SHOWN = {
    "interleaving-by-row": (config(), 2, False),
    "interleaving-by-window": (config(late_rule=WINDOW_RULE), 2, False),
    "cut-by-epoch": (config(watermark_update=BY_EPOCH), 1, True),
}
"""Name of a pair of golden files -> the configuration, how many partitions, and what differs."""


@pytest.mark.law("T8")
@pytest.mark.parametrize("name", SHOWN)
def test_required_under_another_rule_a_counterexample_is_found(
    slow_engine_name: str, name: str
) -> None:
    """One as small as the pair in the golden files; under the partition rule it is none."""
    config_, partitions, cuts = SHOWN[name]
    found = smallest(pairs(config_, partitions=partitions, cuts=cuts))
    first, second = [golden.read(golden.FOLDER / f"{name}-{n}.txt").scenario for n in (1, 2)]
    assert (first.logs, first.config) == (second.logs, config_)
    assert rows_of(found.left) == rows_of(first)
    for pair in (found, Pair(first, second)):
        assert differ(pair, slow_engine_name)
        ruled = [with_config(s, late_rule=PARTITION_RULE) for s in (pair.left, pair.right)]
        assert not differ(Pair(*ruled), slow_engine_name)


@pytest.mark.law("T8")
@pytest.mark.parametrize("update", [BY_ROW, BY_EPOCH])
@pytest.mark.parametrize("cuts", [False, True])
def test_required_under_the_partition_rule_no_counterexample_is_found(
    slow_engine_name: str, update: str, *, cuts: bool
) -> None:
    """The same search, which finds one where there is one."""
    config_ = config(late_rule=PARTITION_RULE, watermark_update=update)
    with pytest.raises(hypothesis.errors.NoSuchExample):
        smallest(pairs(config_, partitions=2, cuts=cuts), slow_engine_name, examples=50)
