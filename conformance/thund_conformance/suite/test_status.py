"""What a pipeline says of its watermark: who holds it, since when, and what waits for that."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields

import pytest
from hypothesis import given

from thund.history import History
from thund.launch import standing_in
from thund.standing import Standing
from thund_conformance import engines, judge, link, strategies
from thund_conformance.lives import after, world
from thund_conformance.scripts import config, last, log, scenario
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
from thund_contract.vocabulary import NEVER, PartitionState
from thund_reference import watermark as reference

few = strategies.share(4)


def story(*steps: Step, **changes: object) -> Scenario:
    """p0 goes ahead and p1 is slow."""
    logs = [log("p0", 31, 47, 58), log("p1", 12, 48)]
    return scenario(config(**{"idle_timeout_ms": 100, **changes}), logs, *steps)


BOTH = (Deliver("p0", 1), Deliver("p1", 1), Barrier())


def standing(s: Scenario) -> Standing:
    """What status says at the end of a scenario."""
    found = standing_in(History(world(after(s)).store))
    assert found is not None
    return found


@pytest.mark.law("W7")
def test_required_status_names_the_holder_and_what_waits_for_it() -> None:
    """p1's 12 holds W; without it W would be 31, and [10, 20) would close, [30, 40) not.

         10     20     30     40
    p1   |-12---|      |      |
    p0   |      |      |31----|
         W=12                 31 without p1
    """
    found = standing(story(*BOTH))
    assert (found.holder, found.bound, found.watermark, found.without) == ("p1", 12, 12, 31)
    assert [(w.start_ms, w.end_ms, w.groups) for w in found.waiting] == [(10, 20, 1)]
    assert [(p.partition, p.holds, p.behind_ms) for p in found.partitions] == [
        ("p0", False, 0),
        ("p1", True, 19),
    ]


@pytest.mark.law("W7")
def test_required_status_knows_since_when() -> None:
    """p0 holds W in epoch 1, p1 from epoch 2 on: an epoch of p0 alone changes nothing."""
    s = story(
        Deliver("p0", 1), Deliver("p1", 1), Deliver("p1", 1), Barrier(), Deliver("p0", 2),
        Barrier(), Restart(), RemovePartition("p0"), AddPartition("p0"), Barrier(),
    )  # fmt: skip
    at = after(s)
    found = standing_in(History(world(at).store))
    assert found is not None
    assert found.since is not None
    assert (found.holder, found.since.epoch, found.since.earlier) == ("p1", 2, False)
    assert found.since.written_ms is not None
    before = standing(scenario(s.config, s.logs, *s.steps[:4]))
    assert (before.holder, before.since and before.since.epoch) == ("p0", 1)


@pytest.mark.law("W7")
def test_required_an_idle_partition_holds_nothing() -> None:
    away = (Tick(40), Deliver("p0", 1), Barrier(), Tick(60), Barrier())
    found = standing(story(*BOTH, *away))
    assert (found.holder, found.watermark, found.without, found.waiting) == ("p0", 47, 47, ())
    assert [p.idle for p in found.partitions] == [False, True]
    all_idle = standing(story(*BOTH, Tick(100), Barrier()))
    assert (all_idle.holder, all_idle.bound, all_idle.since) == (None, None, None)


@pytest.mark.law("W7")
def test_required_status_says_where_w_stands_above_what_its_holder_allows() -> None:
    """p1 comes back at 12 when W is 47: it holds W there, and allows no more than 12 itself."""
    away = (RemovePartition("p1"), Deliver("p0", 1), Barrier(), AddPartition("p1"), Barrier())
    found = standing(story(*BOTH, *away, Deliver("p0", 1), Barrier()))
    assert (found.holder, found.bound, found.watermark, found.without) == ("p1", 12, 47, 58)


@pytest.mark.law("W7")
def test_required_a_partition_without_a_time_holds_w_before_all_others() -> None:
    found = standing(story(Deliver("p0", 1), Barrier()))
    assert (found.holder, found.bound, found.watermark, found.without) == ("p1", NEVER, NEVER, 31)
    assert found.partitions[1].behind_ms is None


@pytest.mark.law("W7")
def test_required_nothing_holds_w_after_a_drain() -> None:
    found = standing(story(*BOTH, DrainAll()))
    assert (found.drained, found.holder, found.without, found.waiting) == (True, None, None, ())


@pytest.mark.law("W7")
@few
@given(s=strategies.scenarios(strategies.Shape(drain=False)))
def test_required_without_its_holder_w_is_what_status_says(
    slow_engine_name: str, s: Scenario
) -> None:
    """The holder is then really removed: W, and the windows that close, are those foretold."""
    at = link.Link(judge.maker(slow_engine_name, s), s)
    at.take_all([*s.steps, Barrier()])
    before = last(at.outcome())
    states = {p.partition: _progress(p) for p in before.partitions}
    holder = reference.holder(states)
    found = standing_in(History(world(at).store)) if slow_engine_name == engines.THUND else None
    assert found is None or found.holder == holder
    if holder is None:
        assert not any(p.assigned and not p.idle for p in before.partitions)
        return
    at.take_all([RemovePartition(holder), Barrier()])
    now = last(at.outcome())
    assert now.watermark == reference.without(before.watermark, states, s.config.delay_ms, holder)
    if found is not None:
        closed = Counter(w.start_ms for w in before.state) - Counter(w.start_ms for w in now.state)
        told = Counter({w.start_ms: 0 for w in found.waiting})
        for w in found.waiting:
            told[w.start_ms] += w.groups
        assert (found.without, told) == (now.watermark, closed)


def _progress(p: PartitionState) -> reference.Progress:
    """A partition as the reference has it."""
    return reference.Progress(
        **{each.name: getattr(p, each.name) for each in fields(reference.Progress)}
    )
