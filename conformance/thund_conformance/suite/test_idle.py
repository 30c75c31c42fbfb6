"""The laws of idle partitions: when a clock runs, when it is read, what it moves, what wakes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thund_conformance import engines, judge, link
from thund_conformance.definition import history
from thund_conformance.replay import replay
from thund_conformance.scripts import config, counts, last, log, scenario, state_of
from thund_conformance.strategies import share
from thund_contract.engine import Outcome
from thund_contract.scenario import (
    AddPartition,
    Barrier,
    Busy,
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
    NEVER,
    NONE_BEFORE,
    Clock,
    Config,
    Idle,
    LateRow,
)

TIMEOUT = 100
few = share(4)


def quiet_config(**changes: object) -> Config:
    """The plain configuration with a timeout of 100 ms."""
    return config(**{"idle_timeout_ms": TIMEOUT, **changes})


def held_by_p1(*steps: Step, **changes: object) -> Scenario:
    """p0 at 30 and p1 at 8 are committed; then the steps. p0 has 60 and 70 to come, p1 9, null, 65."""
    logs = [log("p0", 30, 60, 70), log("p1", 8, 9, None, 65)]
    begin = (Deliver("p0", 1), Deliver("p1", 1), Barrier())
    return scenario(quiet_config(**changes), logs, *begin, *steps)


P1_GOES = (Tick(40), Deliver("p0", 1), Barrier(), Tick(60))
"""p1 was quiet for 100 ms when the clock is read, p0 for 60."""


def found_idle(outcome: Outcome) -> list[tuple[int, tuple[str, ...]]]:
    """(epoch, partitions) of every reading that found some."""
    return [(e.epoch, i.partitions) for e in outcome.epochs for i in e.items if isinstance(i, Idle)]


# ---- what a reading does --------------------------------------------------------------------------


@pytest.mark.law("W4")
def test_required_a_quiet_partition_no_longer_holds_the_watermark(engine_name: str) -> None:
    """W goes from p1's 8 to p0's 60 in an epoch that has nothing but the reading; windows close."""
    outcome = judge.run_on(engine_name, held_by_p1(*P1_GOES, Barrier()))
    assert [e.watermark for e in outcome.epochs] == [8, 8, 60]
    assert last(outcome).items == (Idle(("p1",)),)
    assert [p.idle for p in last(outcome).partitions] == [False, True]
    assert counts(last(outcome).outbox) == {("a", 0): 1, ("a", 30): 1}


@pytest.mark.law("W4")
@pytest.mark.parametrize(
    ("wait", "found"), [(TIMEOUT - 1, []), (TIMEOUT, [(2, ("p0",))]), (TIMEOUT + 1, [(2, ("p0",))])]
)
def test_required_the_timeout_itself_is_long_enough(
    engine_name: str, wait: int, found: list[tuple[int, tuple[str, ...]]]
) -> None:
    s = scenario(quiet_config(), [log("p0", 1)], Deliver("p0", 1), Barrier(), Tick(wait), Barrier())
    assert found_idle(judge.run_on(engine_name, s)) == found


@pytest.mark.law("W4")
def test_required_no_timeout_turns_idleness_off(engine_name: str) -> None:
    s = held_by_p1(Tick(1_000_000), Barrier(), Deliver("p0", 1), Barrier(), idle_timeout_ms=0)
    outcome = judge.run_on(engine_name, s)
    assert [e.watermark for e in outcome.epochs] == [8, 8]
    assert found_idle(outcome) == []


@pytest.mark.law("W4")
def test_required_partitions_found_in_one_reading_go_together(engine_name: str) -> None:
    """One after the other would let W run on to 50; all are idle, so there is no candidate."""
    logs = [log("p0", 10), log("p1", 50), log("p2", 30)]
    turns = (Deliver("p0", 1), Deliver("p1", 1), Deliver("p2", 1), Barrier())
    outcome = judge.run_on(
        engine_name, scenario(quiet_config(), logs, *turns, Tick(TIMEOUT), Barrier())
    )
    assert last(outcome).items == (Idle(("p0", "p1", "p2")),)
    assert last(outcome).watermark == 10


@pytest.mark.law("W4")
def test_required_a_reading_names_only_those_that_it_finds(engine_name: str) -> None:
    """p1 is idle already when p0 goes idle; then nothing is left to find, and no epoch begins."""
    s = held_by_p1(*P1_GOES, Barrier(), Tick(40), Barrier(), Tick(500), Barrier())
    assert found_idle(judge.run_on(engine_name, s)) == [(3, ("p1",)), (4, ("p0",))]
    assert len(judge.run_on(engine_name, s).epochs) == 4


@pytest.mark.law("W4")
def test_required_idleness_is_not_read_inside_an_epoch(engine_name: str) -> None:
    """p1 is quiet for long, but p0's row has begun an epoch: p1 goes idle after it, and 3 is late."""
    s = scenario(
        quiet_config(), [log("p0", 30, 60, 3), log("p1", 8)], Deliver("p0", 1), Deliver("p1", 1),
        Barrier(), Deliver("p0", 1), Tick(TIMEOUT), Deliver("p0", 1), Barrier(), Tick(0), Barrier(),
    )  # fmt: skip
    outcome = judge.run_on(engine_name, s)
    assert [e.watermark for e in outcome.epochs] == [8, 8, 60]
    assert outcome.epochs[1].late == (LateRow("p0", 2, 3, 8),)
    assert found_idle(outcome) == [(3, ("p1",))]


@pytest.mark.law("W4")
def test_required_a_reading_moves_the_watermark_at_once(engine_name: str) -> None:
    """Also where rows move it at the epoch's end only: 9 comes in the epoch of the reading."""
    for update in ("row", BY_EPOCH):
        s = scenario(
            quiet_config(watermark_update=update), [log("p0", 30, 60, 9), log("p1", 8)],
            Deliver("p0", 1), Deliver("p1", 1), Barrier(), Tick(40), Deliver("p0", 1), Barrier(),
            Tick(60), Deliver("p0", 1), Barrier(),
        )  # fmt: skip
        epoch = last(judge.run_on(engine_name, s))
        assert epoch.items[0] == Idle(("p1",))
        assert epoch.late == (LateRow("p0", 2, 9, 60),)


@pytest.mark.law("W4")
@pytest.mark.law("K3")
def test_required_the_guards_clock_stands_before_the_reading(engine_name: str) -> None:
    s = held_by_p1(*P1_GOES, Barrier(), max_future_ms=1000)
    outcome = judge.run_on(engine_name, s)
    assert last(outcome).items == (Clock(100), Idle(("p1",)))


@pytest.mark.law("W4")
def test_required_a_silent_partition_goes_idle_too(engine_name: str) -> None:
    """p1 never had a row: W was NEVER, and is p0's 40 once p1 is idle."""
    s = scenario(
        quiet_config(), [log("p0", 30, 40), log("p1")], Deliver("p0", 1), Barrier(), Tick(60),
        Deliver("p0", 1), Barrier(), Tick(40), Barrier(),
    )  # fmt: skip
    outcome = judge.run_on(engine_name, s)
    assert [e.watermark for e in outcome.epochs] == [NEVER, NEVER, 40]


# ---- when a clock runs ----------------------------------------------------------------------------


@pytest.mark.law("W4")
def test_required_the_engines_own_work_is_not_idleness(engine_name: str) -> None:
    """Ten seconds of work and 99 ms of waiting are not 100 ms of quiet; one more is."""
    s = held_by_p1(
        Busy(10_000), Tick(99), Barrier(), Busy(10_000), Tick(0), Barrier(), Tick(1), Barrier()
    )
    assert found_idle(judge.run_on(engine_name, s)) == [(2, ("p0", "p1"))]
    early = judge.run_on(engine_name, replace(s, steps=s.steps[:-2]))
    assert found_idle(early) == []


@pytest.mark.law("W4")
def test_required_the_clock_runs_inside_an_epoch_too(engine_name: str) -> None:
    """p1 waits 60 ms before p0's row of an epoch and 40 after it; p0's clock started with its row."""
    s = held_by_p1(Tick(60), Deliver("p0", 1), Tick(40), Barrier(), Tick(0), Barrier())
    assert found_idle(judge.run_on(engine_name, s)) == [(3, ("p1",))]


@pytest.mark.law("W4")
@pytest.mark.parametrize("row", [1, 2], ids=["valid", "invalid"])
def test_required_any_row_starts_the_clock_anew(engine_name: str, row: int) -> None:
    """p1's 9 is on time, its null is invalid: after either p1 has another 100 ms."""
    before = (Deliver("p1", row - 1), Barrier()) if row > 1 else ()
    s = held_by_p1(*before, Tick(60), Deliver("p1", 1), Barrier(), Tick(99), Barrier())
    assert found_idle(judge.run_on(engine_name, s)) == [(len(before) // 2 + 3, ("p0",))]


@pytest.mark.law("W4")
def test_required_a_clock_starts_with_the_assignment(engine_name: str) -> None:
    """p1 comes 60 ms later than p0, and goes idle in a later reading."""
    s = scenario(
        quiet_config(), [log("p0", 1), log("p1", 1)], Deliver("p0", 1), Barrier(), Tick(60),
        AddPartition("p1"), Barrier(), Tick(40), Barrier(), Tick(59), Barrier(), Tick(1), Barrier(),
        assigned=["p0"],
    )  # fmt: skip
    assert found_idle(judge.run_on(engine_name, s)) == [(3, ("p0",)), (4, ("p1",))]


@pytest.mark.law("W4")
def test_required_a_duplicate_is_no_row(engine_name: str) -> None:
    """What the sequencer drops was accepted before, and starts no clock."""
    s = held_by_p1()
    at = link.Link(judge.maker(engine_name, s), s)
    at.take_all([*s.steps, Tick(60)])
    at.alive.deliver(at.logs["p1"][0], NONE_BEFORE)
    at.take_all([Tick(40), Barrier()])
    assert last(at.outcome()).items == (Idle(("p0", "p1")),)


@pytest.mark.law("W4")
def test_required_a_row_that_waits_for_another_stops_the_clock(engine_name: str) -> None:
    """p1's second row comes first: p1 is behind, not idle. When both are accepted its clock starts."""
    s = held_by_p1()
    at = link.Link(judge.maker(engine_name, s), s)
    at.take_all([*s.steps, Tick(99)])
    at.alive.send("p1", 2)
    at.alive.deliver(at.logs["p1"][2], 1)
    at.take_all([Tick(1), Barrier(), Tick(5_000), Barrier()])
    assert last(at.outcome()).items == (Idle(("p0",)),)
    at.alive.deliver(at.logs["p1"][1], 0)
    at.take_all([Barrier(), Tick(99), Barrier()])
    assert found_idle(at.outcome()) == [(2, ("p0",))]
    at.take_all([Tick(1), Barrier()])
    assert found_idle(at.outcome()) == [(2, ("p0",)), (4, ("p1",))]


@pytest.mark.law("W4")
def test_required_a_new_life_starts_every_clock_anew(engine_name: str) -> None:
    s = held_by_p1(Tick(99), Restart(), Tick(99), Barrier(), Tick(1), Barrier())
    assert found_idle(judge.run_on(engine_name, s)) == [(2, ("p0", "p1"))]


# ---- what wakes a partition -----------------------------------------------------------------------


@pytest.mark.law("W4")
@pytest.mark.law("W5")
def test_required_a_row_wakes_its_partition_at_once(engine_name: str) -> None:
    """p1 comes back with a late 9: W stays at 60, and p0's 70 does not move it. 65 then does."""
    back = (Deliver("p1", 1), Deliver("p0", 1), Barrier(), Deliver("p1", 2), Barrier())
    outcome = judge.run_on(engine_name, held_by_p1(*P1_GOES, *back))
    assert [e.watermark for e in outcome.epochs] == [8, 8, 60, 65]
    assert outcome.epochs[2].late == (LateRow("p1", 1, 9, 60),)
    assert not any(p.idle for p in outcome.epochs[2].partitions)


@pytest.mark.law("W4")
def test_required_a_row_wakes_its_partition_inside_a_batch(engine_name: str) -> None:
    """p0 60, p1 62, p0 70, p0 64, p1 65, p0 63 in one delivery.

    With the first row W is 60; then p1 is awake, at 62, and 70 does not lift W above it: 64 is on
    time. 65 lifts W to 65, and 63 is late.
    """
    logs = [log("p0", 30, 60, 70, 64, 63), log("p1", 8, 62, 65)]
    s = scenario(quiet_config(), logs, Deliver("p0", 1), Deliver("p1", 1), Barrier())
    at = link.Link(judge.maker(engine_name, s), s)
    at.take_all([*s.steps, Tick(TIMEOUT), Barrier()])
    at.alive.send("p0", 4)
    at.alive.send("p1", 2)
    for name, index in (("p0", 1), ("p1", 1), ("p0", 2), ("p0", 3), ("p1", 2), ("p0", 4)):
        at.alive.deliver(at.logs[name][index], index - 1)
    at.alive.commit()
    epoch = last(at.outcome())
    assert epoch.late == (LateRow("p0", 4, 63, 65),)
    assert epoch.watermark == 65
    assert not any(p.idle for p in epoch.partitions)


@pytest.mark.law("W4")
def test_required_a_row_that_wakes_is_judged_by_the_watermark_before_it(engine_name: str) -> None:
    """p0 60, p1 55 in one delivery: W is 60 when 55 comes, which is late, and stays there."""
    logs = [log("p0", 30, 60), log("p1", 8, 55)]
    s = scenario(quiet_config(), logs, Deliver("p0", 1), Deliver("p1", 1), Barrier())
    at = link.Link(judge.maker(engine_name, s), s)
    at.take_all([*s.steps, Tick(TIMEOUT), Barrier()])
    for name in ("p0", "p1"):
        at.alive.send(name, 1)
    for name in ("p0", "p1"):
        at.alive.deliver(at.logs[name][1], 0)
    at.alive.commit()
    epoch = last(at.outcome())
    assert (epoch.late, epoch.watermark) == ((LateRow("p1", 1, 55, 60),), 60)


@pytest.mark.law("W4")
def test_required_an_invalid_row_wakes_its_partition_and_moves_nothing(engine_name: str) -> None:
    """p1's null makes it active at 9 again: W stays at 60 although p0 goes on to 70."""
    logs = [log("p0", 30, 60, 70), log("p1", 9, None)]
    s = scenario(
        quiet_config(), logs, Deliver("p0", 1), Deliver("p1", 1), Barrier(), *P1_GOES,
        Deliver("p1", 1), Deliver("p0", 1), Barrier(),
    )  # fmt: skip
    epoch = last(judge.run_on(engine_name, s))
    assert epoch.watermark == 60
    assert not state_of(epoch, "p1").idle


@pytest.mark.law("W4")
@pytest.mark.law("A4")
def test_required_the_first_to_wake_brings_its_own_bound_with_its_next_valid_row(
    engine_name: str,
) -> None:
    """All are idle at W = 10. p1 stands at 50: its null moves nothing, its 20 then lifts W to 50."""
    logs = [log("p0", 10), log("p1", 50, None, 20, 49)]
    begin = (Deliver("p0", 1), Deliver("p1", 1), Barrier(), Tick(TIMEOUT), Barrier())
    s = scenario(
        quiet_config(), logs, *begin, Deliver("p1", 1), Barrier(), Deliver("p1", 1), Barrier(),
        Deliver("p1", 1), Barrier(),
    )  # fmt: skip
    outcome = judge.run_on(engine_name, s)
    assert [e.watermark for e in outcome.epochs] == [10, 10, 10, 50, 50]
    assert [e.late for e in outcome.epochs[3:]] == [(), (LateRow("p1", 3, 49, 50),)]


@pytest.mark.law("W4")
def test_required_a_restart_wakes_nobody(engine_name: str) -> None:
    """After the restart p0 goes on to 70, and W with it."""
    s = held_by_p1(*P1_GOES, Barrier(), Restart(), Deliver("p0", 1), Barrier())
    outcome = judge.run_on(engine_name, s)
    assert last(outcome).watermark == 70
    assert state_of(last(outcome), "p1").idle


@pytest.mark.law("W4")
def test_required_a_reading_that_was_not_committed_is_lost(engine_name: str) -> None:
    s = held_by_p1(*P1_GOES, Restart(), Deliver("p0", 1), Barrier())
    outcome = judge.run_on(engine_name, s)
    assert last(outcome).watermark == 8
    assert not state_of(last(outcome), "p1").idle


@pytest.mark.law("W4")
@pytest.mark.law("W5")
def test_required_a_removed_partition_keeps_its_flag_and_comes_back_awake(engine_name: str) -> None:
    """Added again, p1 holds W where it is: it does not fall to 8, and does not go on to 70."""
    gone = (RemovePartition("p1"), Tick(500), Barrier())
    s = held_by_p1(*P1_GOES, Barrier(), *gone, AddPartition("p1"), Deliver("p0", 1), Barrier())
    outcome = judge.run_on(engine_name, s)
    away, back = state_of(outcome.epochs[3], "p1"), state_of(last(outcome), "p1")
    assert (away.assigned, away.idle) == (False, True)
    assert (back.assigned, back.idle) == (True, False)
    assert last(outcome).watermark == 60


@pytest.mark.law("W4")
def test_required_a_removed_partition_has_no_clock(engine_name: str) -> None:
    """p1 is gone, and awake, when the clock is read; p0 alone is found."""
    s = held_by_p1(RemovePartition("p1"), Barrier(), Tick(TIMEOUT), Barrier())
    outcome = judge.run_on(engine_name, s)
    assert last(outcome).items == (Idle(("p0",)),)
    assert not state_of(last(outcome), "p1").idle


# ---- all together ---------------------------------------------------------------------------------


@pytest.mark.law("W4")
@pytest.mark.law("T7")
def test_required_readings_can_be_run_again_from_the_items(engine_name: str) -> None:
    """Two readings and what wakes p1 in between, through the reference without any clock."""
    back = (Deliver("p1", 1), Deliver("p0", 1), Barrier(), Tick(TIMEOUT), Restart(), Tick(TIMEOUT))
    s = held_by_p1(*P1_GOES, *back, Deliver("p1", 3), DrainAll(), max_future_ms=1000)
    outcome = judge.run_on(engine_name, s)
    assert len(found_idle(outcome)) == 2
    reference = engines.make(engines.REFERENCE, s)
    world = replay(reference, s.config, dict(s.logs), outcome.epochs)
    judge.expect_same_epochs(world.epochs(), outcome.epochs, ("reference, again", engine_name))


NAMES = ("p0", "p1", "p2")
STEPS = st.one_of(
    st.builds(Deliver, st.sampled_from(NAMES), st.integers(1, 2)),
    st.builds(Tick, st.sampled_from([0, 30, 50, 70, 100])),
    st.builds(Tick, st.sampled_from([0, 30, 50, 70, 100])),
    st.builds(Busy, st.sampled_from([50, 200])),
    st.builds(AddPartition, st.sampled_from(NAMES)),
    st.builds(RemovePartition, st.sampled_from(NAMES)),
    st.just(Barrier()),
    st.just(Barrier()),
    st.just(Restart()),
)
TIMES = st.lists(st.one_of(st.integers(0, 60), st.none()), max_size=6)


@st.composite
def quiet_scenarios(draw: st.DrawFn) -> Scenario:
    """Up to three partitions with long pauses; each ends with a reading that may find all."""
    logs = [log(name, *draw(TIMES)) for name in NAMES]
    made = quiet_config(
        max_future_ms=draw(st.sampled_from([None, None, 0])),
        watermark_update=draw(st.sampled_from(["row", "row", BY_EPOCH])),
    )
    steps = draw(st.lists(STEPS, min_size=6, max_size=24))
    return scenario(made, logs, *steps, Barrier(), Tick(TIMEOUT), Barrier(), assigned=NAMES[:2])


@pytest.mark.law("W4")
@few
@given(s=quiet_scenarios())
def test_required_a_reading_finds_what_the_definition_says(
    slow_engine_name: str, s: Scenario
) -> None:
    """Quiet is the time waited since the partition's last row, its assignment, or the start."""
    outcome = judge.run_on(slow_engine_name, s)
    expected = _Story(s)
    assert [found for _, found in found_idle(outcome)] == list(expected.readings())
    assert {p.partition for p in last(outcome).partitions if p.idle} == expected.idle


class _Story:
    """W4 over the steps of a scenario: what was committed survives a restart, the rest does not."""

    def __init__(self, s: Scenario) -> None:
        self.steps, self.logs = s.steps, dict(s.logs)
        self.wanted = set(s.assigned)
        self.idle: set[str] = set()
        self.assigned: set[str] = set()
        self.sent = dict.fromkeys(self.logs, 0)
        self.found: list[tuple[str, ...]] = []
        self.kept = self._memory()
        self._start()

    def readings(self) -> Iterator[tuple[str, ...]]:
        """The partitions of every committed reading."""
        for step in self.steps:
            self._take(step)
        yield from self.kept[3]

    def _memory(self) -> tuple[set[str], set[str], dict[str, int], list[tuple[str, ...]]]:
        return set(self.idle), set(self.assigned), dict(self.sent), list(self.found)

    def _start(self) -> None:
        idle, assigned, sent, found = self.kept
        self.idle, self.assigned = set(idle), set(assigned)
        self.sent, self.found = dict(sent), list(found)
        self.begun = False
        self.quiet = dict.fromkeys(self.logs, 0)
        for name in sorted(self.wanted - self.assigned):
            self._add(name)
        for name in sorted(self.assigned - self.wanted):
            self._remove(name)

    def _add(self, name: str) -> None:
        self.assigned.add(name)
        self.idle.discard(name)
        self.quiet[name], self.begun = 0, True

    def _remove(self, name: str) -> None:
        self.assigned.discard(name)
        self.begun = True

    def _take(self, step: Step) -> None:
        match step:
            case Deliver(name, rows) if name in self.wanted:
                came = self.logs[name][self.sent[name] : self.sent[name] + rows]
                if came:
                    self.sent[name] += len(came)
                    self.idle.discard(name)
                    self.quiet[name], self.begun = 0, True
            case Tick(by_ms):
                self._tick(by_ms)
            case AddPartition(name) if name not in self.wanted:
                self.wanted.add(name)
                self._add(name)
            case RemovePartition(name) if name in self.wanted:
                self.wanted.discard(name)
                self._remove(name)
            case Barrier():
                self.kept, self.begun = self._memory(), False
            case Restart():
                self._start()

    def _tick(self, by_ms: int) -> None:
        active = sorted(self.assigned - self.idle)
        for name in active:
            self.quiet[name] += by_ms
        quiet = tuple(name for name in active if self.quiet[name] >= TIMEOUT)
        if quiet and not self.begun:
            self.idle |= set(quiet)
            self.found.append(quiet)
            self.begun = True


@pytest.mark.law("W4")
@pytest.mark.law("W3")
@few
@given(s=quiet_scenarios())
def test_required_idleness_shows_in_no_other_way(slow_engine_name: str, s: Scenario) -> None:
    """Every W of every epoch and of every late row follows from the items by W2 and W3 alone."""
    outcome = judge.run_on(slow_engine_name, s)
    laws = history(s, outcome)
    assert tuple(e.watermark for e in outcome.epochs) == laws.ends
    late = [(r.partition, r.offset, r.watermark) for e in outcome.epochs for r in e.late]
    told = [(j.row.partition, j.row.offset, j.watermark) for j in laws.rows if j.late]
    assert sorted(late) == sorted(told)
    invalid = [(r.partition, r.offset, r.watermark) for e in outcome.epochs for r in e.invalid]
    assert sorted(invalid) == sorted(laws.invalid)
