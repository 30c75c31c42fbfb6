"""Drive a scenario through an engine's lives, as the source, the link and the hand that kills.

It judges nothing: what came of it is an Outcome, and compare.py has the last word.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable

from thund_conformance import reach
from thund_contract.engine import Engine, Life, Outcome
from thund_contract.errors import ThundError
from thund_contract.scenario import (
    AddPartition,
    Barrier,
    Busy,
    Crash,
    Deliver,
    DrainAll,
    Duplicate,
    RemovePartition,
    Reorder,
    Restart,
    Scenario,
    Step,
    Tick,
)
from thund_contract.vocabulary import NONE_BEFORE, Row

Watch = Callable[["Link"], None]
"""Called after each step that left a process alive, to look at it."""


class _DiedError(BaseException):
    """The process is dead. No handler of an engine may catch it."""


def run(engine: Engine, scenario: Scenario, *, watch: Watch | None = None) -> Outcome:
    """All steps of a scenario, and what came of them."""
    link = Link(engine, scenario, watch=watch)
    link.take_all(scenario.steps)
    return link.outcome()


def run_through_deaths(
    engine: Engine, scenario: Scenario, deaths: Iterable[int]
) -> tuple[Outcome, Scenario]:
    """Die right after each of these durable steps, counted from the first of all lives.

    After a death the process starts again, as often as needed, and the scenario goes on; a drain
    that was cut short is asked for once more. The second value is the same run as a scenario.
    """
    link = Link(engine, scenario, watch=None)
    taken: list[Step] = [Crash(after) for after in deaths]
    link.take_all(taken)
    for step in scenario.steps:
        drained = False
        while not drained:
            link.take(step)
            taken.append(step)
            drained = not isinstance(step, DrainAll) or link.life is not None
            while link.life is None and link.fault is None:
                link.take(Restart())
                taken.append(Restart())
            drained = drained or link.fault is not None
    written = Scenario(
        scenario.config, scenario.logs, scenario.assigned, tuple(taken), scenario.why
    )
    return link.outcome(), written


class Link:
    """One scenario on its way: the logs, the cursors of this life, the armed crashes, the clock.

    The clock starts at 0. `wanted` is the set of partitions that the scenario has assigned; a new
    life that does not know of a change, because its epoch was lost, is told again.
    """

    def __init__(self, engine: Engine, scenario: Scenario, *, watch: Watch | None = None) -> None:
        self.engine, self.scenario, self.watch = engine, scenario, watch
        self.config = scenario.config
        self.logs: dict[str, tuple[Row, ...]] = dict(scenario.logs)
        self.wanted = set(scenario.assigned)
        self.clock_ms = 0
        self.armed: list[int] = []
        self.durable_steps: list[str] = []
        self.fault: str | None = None
        self.duplicates = 0
        self.life: Life | None = None
        self.sent: dict[str, int] = {}
        """Per partition: how many rows of its log this life's source has passed."""
        self.first_sent: dict[str, int] = {}
        self.world = engine.world(self.config)
        self._guarded(self._start)

    # ---- what a scenario may do ---------------------------------------------------------------

    def take_all(self, steps: Iterable[Step]) -> None:
        """One step after the other."""
        for step in steps:
            self.take(step)

    def take(self, step: Step) -> None:
        """One step, unless an error or a death stands before it."""
        if self.fault is not None:
            return
        if self.life is None and not isinstance(step, Restart | DrainAll):
            return
        self._guarded(lambda: self._do(step))
        if self.life is not None:
            self.duplicates = self.life.duplicates
            if self.watch is not None:
                self.watch(self)

    def outcome(self) -> Outcome:
        """What the world keeps and what the last life knew."""
        credit: tuple[tuple[str, int], ...] = ()
        if self.life is not None:
            life = self.life
            credit = tuple((p, life.credit(p)) for p in life.assigned())
        result = Outcome(
            epochs=self.world.epochs(),
            table=self.world.table(),
            steps=tuple(self.durable_steps),
            credits=credit,
            duplicates=self.duplicates,
            fault=self.fault,
        )
        reach.look(self.scenario, result)
        return result

    def _do(self, step: Step) -> None:
        match step:
            case Deliver(partition, rows):
                self._hand_over(partition, rows, backwards=False)
            case Reorder(partition, rows):
                self._hand_over(partition, rows, backwards=True)
            case Duplicate(partition, offset):
                self._again(partition, offset)
            case AddPartition(partition):
                self._add(partition)
            case RemovePartition(partition):
                self._remove(partition)
            case Tick(by_ms):
                self.clock_ms += by_ms
                self.alive.tick()
            case Busy(by_ms):
                self.clock_ms += by_ms
                self.alive.resume()
            case Barrier():
                self.alive.commit()
            case Crash(after):
                self._arm(after)
            case Restart():
                self._restart()
            case DrainAll():
                self._drain()

    # ---- lives --------------------------------------------------------------------------------

    @property
    def alive(self) -> Life:
        """The process that runs now."""
        assert self.life is not None
        return self.life

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except _DiedError:
            self.life = None
        except ThundError as error:
            self.life, self.fault = None, error.code
            reach.note(reach.FAULT)

    def _durable(self, name: str, epoch: int) -> None:
        self.durable_steps.append(f"{name}:{epoch}")
        self.armed = [left - 1 for left in self.armed]
        if 0 in self.armed:
            self.armed = [left for left in self.armed if left > 0]
            reach.note(f"{reach.CRASH_AFTER}{name}")
            if self.life is None:
                reach.note(reach.CRASH_IN_RECOVERY)
            raise _DiedError

    def _start(self) -> None:
        self.life, self.duplicates = None, 0
        self.life = self.engine.live(
            self.config, self.world, now=lambda: self.clock_ms, durable=self._durable
        )
        self.sent, self.first_sent = {}, {}
        known = set(self.life.assigned())
        for partition in sorted(self.wanted - known):
            self.life.add(partition)
        for partition in sorted(known - self.wanted):
            self.life.remove(partition)
        for partition in sorted(self.wanted):
            self._rewind(partition)

    def _restart(self) -> None:
        if self.life is not None:
            reach.note(reach.KILLED_ALIVE)
        self._start()

    def _arm(self, after: int) -> None:
        if after == 0:
            reach.note(reach.CRASH_AT_ONCE)
            raise _DiedError
        self.armed.append(after)

    # ---- the source and the link --------------------------------------------------------------

    def _rewind(self, partition: str) -> None:
        """The source goes on after the last accepted row; the rest is sent again (law S2)."""
        offsets = [row.offset for row in self.logs.get(partition, ())]
        self.sent[partition] = bisect_right(offsets, self.alive.position(partition))
        self.first_sent.setdefault(partition, self.sent[partition])

    def _add(self, partition: str) -> None:
        if partition in self.wanted:
            return
        if self.alive.position(partition) != NONE_BEFORE:
            reach.note(reach.ADDED_AGAIN)
        self.wanted.add(partition)
        self.alive.add(partition)
        self._rewind(partition)

    def _remove(self, partition: str) -> None:
        if partition not in self.wanted:
            return
        self.wanted.remove(partition)
        self.alive.remove(partition)
        reach.note(reach.REMOVED)

    def _hand_over(self, partition: str, rows: int, *, backwards: bool) -> int:
        """Send what the credit allows, and let it arrive. Gives how many rows that were."""
        if partition not in self.wanted:
            return 0
        log, start = self.logs.get(partition, ()), self.sent[partition]
        wished = min(rows, len(log) - start)
        count = min(wished, self.alive.credit(partition))
        if count < wished:
            reach.note(reach.CREDIT_STOP)
        if count <= 0:
            return 0
        self.alive.send(partition, count)
        self.sent[partition] = start + count
        order = range(start, start + count)
        if backwards and count > 1:
            reach.note(reach.HELD)
        for index in reversed(order) if backwards else order:
            self._arrive(partition, index)
        self._settle(partition)
        return count

    def _again(self, partition: str, offset: int) -> None:
        if partition not in self.wanted:
            return
        log = self.logs.get(partition, ())
        for index in range(self.first_sent[partition], self.sent[partition]):
            if log[index].offset == offset:
                reach.note(reach.DUPLICATE)
                self._arrive(partition, index)
                self._settle(partition)

    def _arrive(self, partition: str, index: int) -> None:
        log = self.logs[partition]
        prev = log[index - 1].offset if index else NONE_BEFORE
        self.alive.deliver(log[index], prev)

    def _settle(self, partition: str) -> None:
        """Ask for something that only a life that took all its rows can answer.

        An engine may gather rows into batches; a death belongs to the step that handed them over.
        """
        self.alive.position(partition)

    def _drain(self) -> None:
        if self.life is None:
            self._restart()
        for partition in sorted(self.wanted):
            log = self.logs.get(partition, ())
            while self.sent[partition] < len(log):
                moved = self._hand_over(partition, len(log), backwards=False)
                assert moved > 0, f"{partition}: every row sent is accepted, yet no credit is left"
        self.alive.drain()
