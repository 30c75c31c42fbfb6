"""The laws of credits: what may be in flight, and that nothing waits for ever."""

from __future__ import annotations

import pytest
from hypothesis import given

from thund_conformance import judge, link, strategies
from thund_conformance.scripts import config, log, scenario
from thund_contract.scenario import (
    Barrier,
    Deliver,
    DrainAll,
    Duplicate,
    Reorder,
    Restart,
    Scenario,
)
from thund_contract.vocabulary import NONE_BEFORE, Row, Rows

few = strategies.share(4)


def rows_committed(epochs: list[Rows], partition: str) -> int:
    return sum(item.rows for item in epochs if item.partition == partition)


class Ledger:
    """Counts from outside what the source has sent in this life and what was committed of it."""

    def __init__(self) -> None:
        self.steps = 0
        self.base: dict[str, int] = {}
        self.life: object = None

    def __call__(self, at: link.Link) -> None:
        items = [i for e in at.world.epochs() for i in e.items if isinstance(i, Rows)]
        if at.life is not self.life:
            fresh = self.life is None
            self.life = at.life
            self.base = (
                dict.fromkeys(at.logs, 0)
                if fresh
                else {p: rows_committed(items, p) for p in at.logs}
            )
        for partition in at.alive.assigned():
            sent = at.sent[partition] - at.first_sent[partition]
            acknowledged = rows_committed(items, partition) - self.base[partition]
            credit = at.alive.credit(partition)
            assert 0 <= credit <= at.config.credits
            assert credit + sent - acknowledged == at.config.credits, partition
            self.steps += 1


@pytest.mark.law("C1")
@pytest.mark.parametrize("window", [1, 2, 5])
def test_required_credit_and_flight_are_the_window(engine_name: str, window: int) -> None:
    """After each step; a duplicate and a row out of order take no second credit."""
    s = scenario(
        config(credits=window),
        [log("p0", *range(9)), log("p1", *range(4))],
        Deliver("p0", 3),
        Duplicate("p0", 0),
        Reorder("p1", 2),
        Duplicate("p1", 1),
        Barrier(),
        Deliver("p0", 4),
        Reorder("p0", 2),
        Barrier(),
        Deliver("p1", 9),
    )
    ledger = Ledger()
    judge.run_on(engine_name, s, watch=ledger)
    assert ledger.steps == 2 * len(s.steps)


@pytest.mark.law("C1")
@few
@given(s=strategies.scenarios(strategies.Shape(changes=False, crashes=True, drain=False)))
def test_required_credit_and_flight_are_the_window_everywhere(
    slow_engine_name: str, s: Scenario
) -> None:
    judge.run_on(slow_engine_name, s, watch=Ledger())


@pytest.mark.law("C1")
def test_required_a_new_process_starts_with_a_whole_window(engine_name: str) -> None:
    s = scenario(config(credits=4), [log("p0", *range(9))], Deliver("p0", 3), Restart())
    assert judge.run_on(engine_name, s).credits == (("p0", 4),)


def hand(at: link.Link, *places: tuple[str, int]) -> None:
    """Let rows arrive one by one, whatever the order."""
    for partition, index in places:
        part: tuple[Row, ...] = at.logs[partition]
        at.alive.deliver(part[index], part[index - 1].offset if index else NONE_BEFORE)


@pytest.mark.law("C2")
def test_required_the_oldest_gap_can_always_be_filled(engine_name: str) -> None:
    """A window of 3: rows 1 and 2 are held, no credit is left, and row 0 is still on the wire."""
    s = scenario(config(credits=3), [log("p0", *range(8)), log("p1", *range(8))])
    at = link.Link(judge.maker(engine_name, s), s)
    at.alive.send("p0", 3)
    hand(at, ("p0", 2), ("p0", 1))
    assert at.alive.credit("p0") == 0
    assert at.alive.credit("p1") == 3, "a stalled partition holds no credit of another"
    at.alive.send("p1", 2)
    hand(at, ("p1", 0), ("p1", 1))
    assert at.alive.position("p1") == 1
    hand(at, ("p0", 0))
    assert at.alive.position("p0") == 2
    assert at.alive.credit("p0") == 3, "the whole window is accepted, so an epoch was cut"
    assert at.alive.credit("p1") == 3


@pytest.mark.law("C2")
def test_required_an_epoch_is_cut_right_after_the_row_that_fills_a_window(
    engine_name: str,
) -> None:
    """Five rows with a window of 2 make epochs of 2, 2 and 1, though nobody asks for a cut."""
    s = scenario(config(credits=2), [log("p0", *range(5))], *[Deliver("p0", 9)] * 3, Barrier())
    items = [i for e in judge.run_on(engine_name, s).epochs for i in e.items]
    assert [(i.first, i.last) for i in items if isinstance(i, Rows)] == [(0, 1), (2, 3), (4, 4)]


@pytest.mark.law("C2")
def test_required_a_window_that_fills_inside_a_run_of_held_rows_cuts_there(
    engine_name: str,
) -> None:
    """Rows 1, 2 and 3 wait for 0, two more of p1 come between; the cut is after p0's row 3."""
    s = scenario(config(credits=4), [log("p0", *range(4)), log("p1", 7, 8)])
    at = link.Link(judge.maker(engine_name, s), s)
    at.alive.send("p0", 4)
    at.alive.send("p1", 2)
    hand(at, ("p1", 0), ("p0", 3), ("p0", 1), ("p0", 2), ("p0", 0), ("p1", 1))
    at.alive.commit()
    items = [[i for i in e.items if isinstance(i, Rows)] for e in at.world.epochs()]
    assert items == [[Rows("p1", 0, 0, 1), Rows("p0", 0, 3, 4)], [Rows("p1", 1, 1, 1)]]


@pytest.mark.law("C3")
@pytest.mark.parametrize("window", [1, 2, 3, 7])
def test_required_every_row_is_accepted_in_the_end(engine_name: str, window: int) -> None:
    s = scenario(config(credits=window), [log("p0", *range(7)), log("p1", *range(5))], DrainAll())
    outcome = judge.run_on(engine_name, s)
    assert [(p.last, p.accepted) for p in outcome.epochs[-1].partitions] == [(6, 7), (4, 5)]
    assert outcome.credits == (("p0", window), ("p1", window))
