"""The scenario driver: what it sends, when a process dies, and what a new one is told."""

import pytest

from thund_conformance import engines, link
from thund_conformance.scripts import config, log, scenario
from thund_contract.scenario import (
    AddPartition,
    Barrier,
    Crash,
    Deliver,
    DrainAll,
    Duplicate,
    RemovePartition,
    Reorder,
    Restart,
    Tick,
)
from thund_contract.vocabulary import Add, Rows

LOG = log("p0", 1, 2, 3, 4, 5, 6)


def run(*steps, config_=None, assigned=None, logs=(LOG,)):
    s = scenario(config_ or config(), logs, *steps, assigned=assigned)
    return link.run(engines.make(engines.REFERENCE, s), s)


def ranges(outcome):
    return [(i.first, i.last) for e in outcome.epochs for i in e.items if isinstance(i, Rows)]


def test_required_deliver_goes_on_after_what_was_sent():
    outcome = run(Deliver("p0", 2), Barrier(), Deliver("p0", 9), Deliver("p0", 1), Barrier())
    assert ranges(outcome) == [(0, 1), (2, 5)]


def test_required_fewer_rows_arrive_where_credit_ends():
    outcome = run(Deliver("p0", 9), config_=config(credits=4))
    assert ranges(outcome) == [(0, 3)]
    assert outcome.credits == (("p0", 4),)


def test_required_a_duplicate_needs_a_row_that_this_life_has_sent():
    steps = (Deliver("p0", 2), Duplicate("p0", 1), Duplicate("p0", 2), Barrier())
    assert run(*steps).duplicates == 1
    assert run(*steps, Restart(), Duplicate("p0", 1)).duplicates == 0


def test_required_steps_of_a_partition_that_is_not_assigned_do_nothing():
    outcome = run(
        RemovePartition("p0"), Deliver("p0", 2), Reorder("p0", 2), Duplicate("p0", 0),
        RemovePartition("p0"), Barrier(), DrainAll(),
    )  # fmt: skip
    assert ranges(outcome) == []
    assert [p.assigned for p in outcome.epochs[-1].partitions] == [False]


def test_required_a_partition_without_a_log_is_empty():
    outcome = run(AddPartition("p9"), Deliver("p9", 3), DrainAll())
    assert [p.partition for p in outcome.epochs[-1].partitions] == ["p0", "p9"]


@pytest.mark.parametrize("after", range(1, 13))
def test_required_a_crash_counts_durable_steps_over_later_barriers(after):
    outcome = run(Crash(after), Deliver("p0", 1), Barrier(), Deliver("p0", 1), Barrier())
    assert len(outcome.steps) == after
    assert outcome.credits == ()


def test_required_nothing_happens_between_a_death_and_the_restart():
    outcome = run(
        Deliver("p0", 1), Crash(0), Deliver("p0", 1), Barrier(), Crash(0), Restart(),
        Deliver("p0", 2), Barrier(),
    )  # fmt: skip
    assert ranges(outcome) == [(0, 1)]


def test_required_a_crash_armed_before_can_hit_a_recovery():
    steps = (
        Crash(5),
        Crash(6),
        Deliver("p0", 1),
        Barrier(),
        Restart(),
        Deliver("p0", 1),
        Barrier(),
    )
    outcome = run(*steps)
    assert outcome.steps[-2:] == ("source:1", "sink:1")
    assert len(outcome.epochs) == 1


def test_required_a_new_life_is_told_of_partitions_whose_epoch_was_lost():
    outcome = run(
        AddPartition("p1"), Restart(), Barrier(), logs=(LOG, log("p1", 1)), assigned=["p0"]
    )
    assert outcome.epochs[0].items == (Add("p0"), Add("p1"))
    outcome = run(Barrier(), RemovePartition("p0"), Restart(), Barrier())
    assert not outcome.epochs[-1].partitions[0].assigned


def test_required_a_drain_recovers_and_delivers_everything():
    outcome = run(Deliver("p0", 2), Crash(0), DrainAll(), config_=config(credits=2))
    assert ranges(outcome) == [(0, 1), (2, 3), (4, 5)]
    assert outcome.epochs[-1].drained


def test_required_the_clock_moves_by_ticks_only():
    outcome = run(Tick(3), Tick(4), Deliver("p0", 1), Barrier(), config_=config(max_future_ms=9))
    assert outcome.epochs[0].items[0].now_ms == 0
    assert [i.now_ms for i in outcome.epochs[0].items if hasattr(i, "now_ms")] == [0, 3, 7]


def test_required_an_error_of_the_engine_ends_the_run_with_its_code():
    outcome = run(
        DrainAll(),
        AddPartition("p1"),
        Deliver("p1", 1),
        Barrier(),
        logs=(LOG, log("p1", 1)),
        assigned=["p0"],
    )
    assert (outcome.fault, outcome.credits) == ("drained", ())


def test_required_a_run_through_deaths_is_the_scenario_that_it_writes():
    s = scenario(config(), [LOG], Deliver("p0", 3), Barrier(), DrainAll())
    engine = engines.make(engines.REFERENCE, s)
    for deaths in [(1,), (3, 4), (5, 6), (8,), (12,), (5, 6, 7)]:
        outcome, written = link.run_through_deaths(engine, s, deaths)
        assert outcome == link.run(engine, written)
        assert sum(step == Restart() for step in written.steps) == len(deaths)
