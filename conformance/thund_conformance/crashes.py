"""Die at every durable step of a scenario, and at every pair of them: enumerated, not sampled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from thund_conformance import compare, engines, golden, link
from thund_conformance.replay import replay
from thund_contract.engine import Outcome
from thund_contract.scenario import Scenario
from thund_contract.vocabulary import EpochRecord, PartitionState, Put


@dataclass(frozen=True, slots=True)
class Sweep:
    """How much was tried. runs: scenarios with deaths; recoveries: deaths while recovering."""

    steps: int
    runs: int
    recoveries: int


def deaths(steps: int, *, pairs: bool) -> Iterator[tuple[int, ...]]:
    """Every step, then every pair; a second death may come at the very next step.

    A run with a death has more steps than one without, for an epoch is run again. So pairs reach
    one epoch's steps further.
    """
    for first in range(1, steps + 1):
        yield (first,)
    if pairs:
        yield from combinations(range(1, steps + 7), 2)


def sweep(
    name: str, scenario: Scenario, *, pairs: bool = True, same_as_uninterrupted: bool = False
) -> Sweep:
    """Run every death, and judge each by law R1; the first broken one raises AssertionError.

    same_as_uninterrupted: the order of delivery is a function of the log, so that also the
    drained table is that of a run without deaths (R1's second half).
    """
    engine = engines.make(name, scenario)
    whole = link.run(engine, scenario)
    judge = _Judge(scenario, whole, strict=same_as_uninterrupted)
    judge.expect(whole, scenario)
    runs = recoveries = 0
    for plan in deaths(len(whole.steps), pairs=pairs):
        outcome, written = link.run_through_deaths(engine, scenario, plan)
        judge.expect(outcome, written)
        runs += 1
        recoveries += _died_recovering(outcome, plan)
    return Sweep(len(whole.steps), runs, recoveries)


def _died_recovering(outcome: Outcome, plan: tuple[int, ...]) -> bool:
    """A sink step that does not follow its own epoch's source step was done by a recovery."""
    last = plan[-1] - 1
    if len(plan) < 2 or last >= len(outcome.steps) or last < 1:
        return False
    name, epoch = outcome.steps[last].split(":")
    return name == "sink" and outcome.steps[last - 1] != f"source:{epoch}"


class _Judge:
    """Law R1 for one scenario; what the reference makes of a history is kept, for it repeats."""

    def __init__(self, scenario: Scenario, whole: Outcome, *, strict: bool) -> None:
        self.scenario, self.whole, self.strict = scenario, whole, strict
        self.known: dict[object, tuple[tuple[EpochRecord, ...], tuple[Put, ...]]] = {}

    def expect(self, outcome: Outcome, written: Scenario) -> None:
        """The reference, run over the committed items, must leave the same epochs and table."""
        history, table = self._reference(outcome)
        names = ("reference over the same items", "after the deaths")
        lines = compare.epoch_differences(history, outcome.epochs, names=names)
        if not compare.same(sorted(table, key=_by_id), sorted(outcome.table, key=_by_id)):
            lines += [f"table: {table!r}", f"    after the deaths: {outcome.table!r}"]
        if outcome.fault is not None:
            lines.append(f"fault: {outcome.fault}")
        if self.strict:
            lines += self._against_whole(outcome)
        assert not lines, "\n".join(["", *lines, "", golden.render_scenario(written)])

    def _reference(self, outcome: Outcome) -> tuple[tuple[EpochRecord, ...], tuple[Put, ...]]:
        items = tuple(epoch.items for epoch in outcome.epochs)
        if items not in self.known:
            reference = engines.make(engines.REFERENCE, self.scenario)
            logs = dict(self.scenario.logs)
            world = replay(reference, self.scenario.config, logs, outcome.epochs)
            self.known[items] = (world.epochs(), world.table())
        return self.known[items]

    def _against_whole(self, outcome: Outcome) -> list[str]:
        """Versions are set aside: an epoch more or less changes them (law E4)."""
        lines = []
        if not compare.same(timeless(self.whole.table), timeless(outcome.table)):
            lines += ["the drained table is not that of the run without deaths:"]
            lines += [f"    without: {self.whole.table!r}", f"    after:   {outcome.table!r}"]
        if not compare.same(_totals(self.whole), _totals(outcome)):
            lines += [f"W or counters: {_totals(self.whole)!r} became {_totals(outcome)!r}"]
        return lines


def timeless(table: tuple[Put, ...]) -> list[tuple[object, ...]]:
    """A table without versions, sorted by id."""
    return [(p.id, p.key, p.start_ms, p.end_ms, p.values) for p in sorted(table, key=_by_id)]


def _by_id(put: Put) -> str:
    return put.id


def _totals(outcome: Outcome) -> tuple[int, tuple[PartitionState, ...]]:
    last = outcome.epochs[-1]
    return last.watermark, last.partitions
