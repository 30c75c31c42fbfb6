"""The laws of the watermark, on scenarios written by hand and drawn ones."""

from __future__ import annotations

import pytest
from hypothesis import given

from thund_conformance import judge, link, strategies
from thund_conformance.scripts import config, counts, drained, last, log, scenario, state_of
from thund_contract.engine import Outcome
from thund_contract.scenario import (
    AddPartition,
    Barrier,
    Deliver,
    DrainAll,
    RemovePartition,
    Restart,
    Scenario,
)
from thund_contract.vocabulary import (
    END,
    NEVER,
    Add,
    Drain,
    EpochRecord,
    Item,
    LateRow,
    Remove,
    Rows,
)

few = strategies.share(4)


@pytest.mark.law("W1")
def test_required_each_partition_keeps_its_largest_valid_event_time(engine_name: str) -> None:
    """A late row and a smaller one do not lower it; invalid ones do not touch it."""
    s = scenario(
        config(),
        [log("p0", 5, 30, 2, None, 7), log("p1", -4)],
        Deliver("p0", 5),
        Deliver("p1", 1),
        Barrier(),
        RemovePartition("p1"),
        Barrier(),
    )
    outcome = judge.run_on(engine_name, s)
    assert [state_of(e, "p0").max_event_time for e in outcome.epochs] == [30, 30]
    assert [state_of(e, "p1").max_event_time for e in outcome.epochs] == [-4, -4]
    assert not state_of(last(outcome), "p1").assigned


@pytest.mark.law("W1")
def test_required_the_largest_event_time_survives_a_restart(engine_name: str) -> None:
    """p0 stood at 30 before the restart; p1 then reaches 40, and W is 30, not NEVER."""
    s = scenario(
        config(),
        [log("p0", 30), log("p1", 20, 40)],
        Deliver("p0", 1),
        Deliver("p1", 1),
        Barrier(),
        Restart(),
        Deliver("p1", 1),
        Barrier(),
    )
    assert [e.watermark for e in judge.run_on(engine_name, s).epochs] == [20, 30]


@pytest.mark.law("W2")
@pytest.mark.parametrize(
    ("first", "second", "delay", "expected"),
    [((10,), (4,), 0, 4), ((10,), (4,), 3, 1), ((10, 12), (11,), 5, 6), ((-1,), (-9,), 2, -11)],
)
def test_required_watermark_is_the_least_of_the_largest_less_the_delay(
    engine_name: str, first: tuple[int, ...], second: tuple[int, ...], delay: int, expected: int
) -> None:
    logs = [log("p0", *first), log("p1", *second)]
    s = scenario(config(delay_ms=delay), logs, Deliver("p0", 9), Deliver("p1", 9), Barrier())
    assert last(judge.run_on(engine_name, s)).watermark == expected


@pytest.mark.law("W2")
def test_required_a_partition_without_a_valid_row_holds_the_watermark(engine_name: str) -> None:
    """p1 is assigned, and its one row is invalid: no bound can be given yet."""
    logs = [log("p0", 10, 99), log("p1", None)]
    s = scenario(config(), logs, Deliver("p0", 2), Deliver("p1", 1), Barrier())
    assert last(judge.run_on(engine_name, s)).watermark == NEVER


@pytest.mark.law("W2")
def test_required_no_active_partition_leaves_the_watermark(engine_name: str) -> None:
    s = scenario(config(), [log("p0", 10)], Deliver("p0", 1), RemovePartition("p0"), Barrier())
    assert last(judge.run_on(engine_name, s)).watermark == 10


@pytest.mark.law("W3")
def test_required_watermark_never_falls(engine_name: str) -> None:
    """p1 comes with an older time after W has moved."""
    s = scenario(
        config(),
        [log("p0", 50), log("p1", 7)],
        Deliver("p0", 1),
        Barrier(),
        AddPartition("p1"),
        Barrier(),
        Deliver("p1", 1),
        Barrier(),
        assigned=["p0"],
    )
    assert [e.watermark for e in judge.run_on(engine_name, s).epochs] == [50, 50, 50]


@pytest.mark.law("W3")
@pytest.mark.parametrize("cut", [False, True])
def test_required_watermark_moves_with_each_row_and_no_cut_shows(
    engine_name: str, *, cut: bool
) -> None:
    """The second row is late because of the first one, in the same epoch too."""
    between = [Barrier()] if cut else []
    s = scenario(
        config(), [log("p0", 9, 3)], Deliver("p0", 1), *between, Deliver("p0", 1), Barrier()
    )
    late = [r for e in judge.run_on(engine_name, s).epochs for r in e.late]
    assert late == [LateRow("p0", 1, 3, 9)]


@pytest.mark.law("W3")
def test_required_watermark_moves_inside_one_batch(engine_name: str) -> None:
    """9 makes 3 late, 12 makes 11 late; 12 itself and 15 are on time."""
    s = scenario(config(), [log("p0", 9, 3, 12, 11, 12, 15)], Deliver("p0", 6), Barrier())
    assert [(r.offset, r.watermark) for r in last(judge.run_on(engine_name, s)).late] == [
        (1, 9),
        (3, 12),
    ]


@pytest.mark.law("W3")
def test_required_watermark_moves_when_its_holder_goes(engine_name: str) -> None:
    """Nothing but the removal happens in the second epoch, and W goes from 0 to 9."""
    s = scenario(
        config(),
        [log("p0", 9), log("p1", 0)],
        Deliver("p0", 1),
        Deliver("p1", 1),
        Barrier(),
        RemovePartition("p1"),
        Barrier(),
    )
    assert [e.watermark for e in judge.run_on(engine_name, s).epochs] == [0, 9]


@pytest.mark.law("W3")
@few
@given(s=strategies.scenarios(strategies.PLAIN))
def test_required_watermark_is_what_the_definition_says(slow_engine_name: str, s: Scenario) -> None:
    """Every epoch's W, and the W that each late or invalid row saw, from the items alone."""
    outcome = judge.run_on(slow_engine_name, s)
    assert [e.watermark for e in outcome.epochs] == _watermarks(s, outcome)


def _watermarks(s: Scenario, outcome: Outcome) -> list[int]:
    """The definition, written down once more: W after each item, W at the end of each epoch."""
    model = _Model(s)
    for epoch in outcome.epochs:
        for item in epoch.items:
            model.take(item, epoch)
        model.ends.append(model.w)
    return model.ends


class _Model:
    """W2 and W3 as they stand in the law, over items."""

    def __init__(self, s: Scenario) -> None:
        self.rows = {(r.partition, r.offset): r for _, part in s.logs for r in part}
        self.delay = s.config.delay_ms
        self.w = NEVER
        self.found: dict[str, int] = {}
        self.active: set[str] = set()
        self.ends: list[int] = []

    def take(self, item: Item, epoch: EpochRecord) -> None:
        match item:
            case Drain():
                self.w = END
            case Add(partition):
                self.active.add(partition)
            case Remove(partition):
                self.active.discard(partition)
            case Rows(partition, first, final):
                for offset in range(first, final + 1):
                    if (partition, offset) in self.rows:
                        self.row(partition, offset, epoch)
        self.move()

    def row(self, partition: str, offset: int, epoch: EpochRecord) -> None:
        bad = [r.watermark for r in epoch.invalid if (r.partition, r.offset) == (partition, offset)]
        late = [r.watermark for r in epoch.late if (r.partition, r.offset) == (partition, offset)]
        assert {*bad, *late} <= {self.w}
        if not bad:
            time = self.rows[partition, offset].event_time
            assert isinstance(time, int)
            self.found[partition] = max(self.found.get(partition, time), time)
        self.move()

    def move(self) -> None:
        if self.active and all(p in self.found for p in self.active):
            self.w = max(self.w, min(self.found[p] for p in self.active) - self.delay)


@pytest.mark.law("W5")
def test_required_an_added_partition_never_lowers_the_watermark(engine_name: str) -> None:
    s = scenario(
        config(),
        [log("p0", 50), log("p1", 1)],
        Deliver("p0", 1),
        AddPartition("p1"),
        Barrier(),
        assigned=["p0"],
    )
    assert last(judge.run_on(engine_name, s)).watermark == 50


@pytest.mark.law("W5")
def test_required_a_partition_added_again_goes_on_where_it_was(engine_name: str) -> None:
    """p1 comes back with its 9: p0 at 5 then moves W to 5 at once, and 3 is late."""
    s = scenario(
        config(),
        [log("p0", 1, 5, 3), log("p1", 9, 12)],
        Deliver("p0", 1),
        Deliver("p1", 1),
        RemovePartition("p1"),
        Barrier(),
        AddPartition("p1"),
        Deliver("p0", 2),
        Deliver("p1", 1),
        Barrier(),
    )
    outcome = judge.run_on(engine_name, s)
    assert last(outcome).late == (LateRow("p0", 2, 3, 5),)
    again = state_of(last(outcome), "p1")
    assert (again.last, again.max_event_time, again.accepted, again.assigned) == (1, 12, 2, True)


@pytest.mark.law("W5")
def test_required_a_removed_partition_drops_what_was_held(engine_name: str) -> None:
    """Row 1 waits for row 0 when the partition goes; added again, both are sent once more."""
    s = scenario(config(), [log("p0", 1, 2)], assigned=["p0"])
    own = link.Link(judge.maker(engine_name, s), s)
    life = own.alive
    life.send("p0", 2)
    life.deliver(s.logs[0][1][1], 0)
    life.remove("p0")
    life.add("p0")
    assert life.position("p0") == -1
    assert life.credit("p0") == s.config.credits
    life.send("p0", 1)
    life.deliver(s.logs[0][1][0], -1)
    assert life.position("p0") == 0, "the row that was held is gone, and has to be sent again"


@pytest.mark.law("W6")
def test_required_a_drain_ends_time_and_closes_every_window(engine_name: str) -> None:
    outcome = judge.run_on(engine_name, drained(config(delay_ms=100), log("p0", 5, 15, 25)))
    assert last(outcome).watermark == END
    assert last(outcome).drained
    assert last(outcome).state == ()
    assert counts(outcome.table) == {("a", 0): 1, ("a", 10): 1, ("a", 20): 1}


@pytest.mark.law("W6")
def test_required_nothing_but_a_drain_ends_time(engine_name: str) -> None:
    """The log has ended and the epoch is published, yet the last window stays open."""
    s = scenario(config(), [log("p0", 5, 15)], Deliver("p0", 2), Barrier(), Restart(), Barrier())
    outcome = judge.run_on(engine_name, s)
    assert last(outcome).watermark == 15
    assert not any(e.drained for e in outcome.epochs)
    assert counts(outcome.table) == {("a", 0): 1}


@pytest.mark.law("W6")
def test_required_rows_after_a_drain_stop_the_run(engine_name: str) -> None:
    """The source has grown; in a later life, too, this is said and not swallowed."""
    s = scenario(
        config(),
        [log("p0", 5), log("p1", 6)],
        DrainAll(),
        Restart(),
        AddPartition("p1"),
        Deliver("p1", 1),
        Barrier(),
        assigned=["p0"],
    )
    outcome = judge.run_on(engine_name, s)
    assert outcome.fault == "drained"
    assert counts(outcome.table) == {("a", 0): 1}
