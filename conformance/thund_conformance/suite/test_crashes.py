"""Law R1 by enumeration: a death at every durable step, and at every pair of them."""

from __future__ import annotations

import pytest
from hypothesis import given

from thund_conformance import crashes, strategies
from thund_conformance.scripts import config, log, row, scenario, valued
from thund_contract.scenario import (
    AddPartition,
    Barrier,
    Deliver,
    DrainAll,
    Duplicate,
    RemovePartition,
    Reorder,
    Scenario,
    Tick,
)
from thund_contract.vocabulary import (
    BY_EPOCH,
    BY_ROW,
    MEAN,
    PARTITION_RULE,
    ROW_RULE,
    SUM,
    WINDOW_RULE,
    Aggregate,
    Row,
)


def one_partition(mode: str) -> Scenario:
    """One log in order: its drained answer is a function of the log, so no death may show at all."""
    rows: tuple[Row, ...] = tuple(
        row("p0", i, t, k) for i, (t, k) in enumerate([(1, "a"), (12, "b"), (3, "a"), (25, "a")])
    )
    return scenario(
        config(output=mode, delay_ms=4), [("p0", rows)], Deliver("p0", 2), Barrier(), Deliver("p0", 1),
        Barrier(), DrainAll(),
    )  # fmt: skip


def two_partitions() -> Scenario:
    """Late and invalid rows, duplicates, disorder, changes of the partitions, the guard, sums."""
    sums = (Aggregate("s", SUM, "x"), Aggregate("m", MEAN, "x"))
    logs = [
        valued(
            "p0", [(1, 1e16, 1e16), (15, 1.0, 1.0), (None, 2.0, 2.0), (2, 3.0, 3.0), (31, 0.5, 0.5)]
        ),
        valued("p1", [(4, -1e16, -1e16), (22, 0.25, 0.25)]),
    ]
    return scenario(
        config(aggregates=sums, max_future_ms=50, output="update", credits=3), logs, Deliver("p0", 2),
        Reorder("p1", 2), Barrier(), Tick(3), RemovePartition("p1"), Deliver("p0", 2),
        Duplicate("p0", 1), Barrier(), AddPartition("p1"), DrainAll(),
    )  # fmt: skip


@pytest.mark.law("R1")
@pytest.mark.law("T3")
@pytest.mark.parametrize("mode", ["append", "update", "complete"])
def test_required_no_death_shows_in_the_answer(slow_engine_name: str, mode: str) -> None:
    swept = crashes.sweep(
        slow_engine_name, one_partition(mode), pairs=mode == "append", same_as_uninterrupted=True
    )
    assert swept.steps == 18
    assert swept.runs >= 18


@pytest.mark.law("R1")
@pytest.mark.law("T3")
def test_required_every_death_leaves_what_the_committed_items_say(slow_engine_name: str) -> None:
    """Every step and every pair: also the step of a recovery that publishes what was left."""
    swept = crashes.sweep(slow_engine_name, two_partitions())
    assert swept.runs > 250
    assert swept.recoveries > 0


@pytest.mark.law("R1")
@pytest.mark.law("T3")
@pytest.mark.parametrize("rule", [ROW_RULE, WINDOW_RULE, PARTITION_RULE])
@pytest.mark.parametrize("update", [BY_ROW, BY_EPOCH])
def test_required_every_death_is_survived_under_each_rule(
    slow_engine_name: str, rule: str, update: str
) -> None:
    """Rows late by one rule and not by another, a correction in the grace, W moved at the end."""
    s = scenario(
        config(late_rule=rule, watermark_update=update, grace_ms=5, output="update"),
        [log("p0", 1, 12, 9, 8, 15), log("p1", 14, 11, 3)], Deliver("p0", 2), Deliver("p1", 1),
        Barrier(), Deliver("p0", 1), Deliver("p1", 1), Barrier(), Deliver("p0", 2), DrainAll(),
    )  # fmt: skip
    swept = crashes.sweep(slow_engine_name, s, pairs=False)
    assert swept.runs == 18


@pytest.mark.law("R1")
@pytest.mark.law("T3")
@strategies.share(20)
@given(s=strategies.scenarios(strategies.Shape(rows=5, steps=6)))
def test_required_every_death_of_a_drawn_scenario_leaves_what_the_items_say(
    slow_engine_name: str, s: Scenario
) -> None:
    crashes.sweep(slow_engine_name, s, pairs=False)
