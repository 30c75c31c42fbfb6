"""Draw scenarios by the hundred thousand, run them on the reference and the implementation, and compare.

Workers draw; this process counts, shows how far it is, and writes down what differs.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from itertools import islice

from hypothesis import strategies as st

from thund_conformance import strategies
from thund_conformance.strategies import Shape
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
from thund_contract.vocabulary import (
    CALENDAR,
    DISCARDING,
    HOPPING,
    PANES,
    PARTITION_RULE,
    ROW_RULE,
    SESSION,
    TUMBLING,
    UPDATE,
    WINDOW_RULE,
    Config,
    WindowSpec,
)

CHUNK = 50
"""Scenarios that Hypothesis draws for a worker at a time: one shape, one seed."""
DEALT = 9
"""How many more are made of each: its rows, under other windows and rules, with other steps."""

_CALM = Shape(guard=False, invalid=False, changes=False)
_SMALL = Shape(
    partitions=2, keys=1, aggregates=2, rows=5, steps=5, guard=False, changes=False, crashes=True
)
"""Few rows of few keys in few epochs: most bugs show in small scenarios, and these are cheap."""
SHAPES: tuple[Shape, ...] = (
    strategies.WITH_CRASHES,
    strategies.PLAIN,
    Shape(crashes=True, guard=False),
    replace(_CALM, windows=(SESSION,), rows=20, keys=0, partitions=1, idle=False),
    replace(_CALM, windows=(SESSION,), crashes=True, outputs=(UPDATE, UPDATE, "complete")),
    replace(_CALM, windows=(HOPPING,), late_rules=(WINDOW_RULE, ROW_RULE)),
    replace(_CALM, windows=(SESSION, HOPPING, CALENDAR), late_rules=(WINDOW_RULE, PARTITION_RULE)),
    replace(_CALM, windows=(CALENDAR,), rows=8),
    Shape(partitions=3, rows=5, steps=20, invalid=False, guard=False, crashes=True),
    replace(_CALM, outputs=(UPDATE,), steps=16, crashes=True),
    *(_SMALL, replace(_SMALL, windows=(SESSION,)), replace(_SMALL, windows=(HOPPING,))) * 2,
    *(replace(_SMALL, late_rules=(WINDOW_RULE,)), replace(_SMALL, outputs=(UPDATE,))) * 2,
)
"""What is drawn in turn: everything, mixes in which the rarer laws meet more often, and small ones."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """What became of a chunk. failed: the scenario as a golden file, and what differs."""

    scenarios: int
    reached: Counter[str]
    failed: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Soaked:
    """What became of all of them."""

    scenarios: int
    seconds: float
    reached: Counter[str]
    failures: tuple[tuple[str, str], ...]


def draw(number: int, seed: int, count: int = CHUNK, *, shrink: bool = True) -> Drawn:
    """One chunk: the same number and seed draw the same scenarios. shrink: look for a smaller one."""
    import hypothesis

    from thund_conformance import engines, judge, reach

    taken, before, shape = 0, reach.counts(), SHAPES[number % len(SHAPES)]

    @hypothesis.seed(seed * 1_000_003 + number)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=(hypothesis.Phase.generate, *[hypothesis.Phase.shrink] * shrink),
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(s=strategies.scenarios(shape), salt=st.integers(0, 2**32))
    def run(s: Scenario, salt: int) -> None:
        nonlocal taken
        for scenario in (s, *dealt_anew(s, shape, random.Random(salt))):  # noqa: S311 - no secret
            taken += 1
            other = engines.THUND if taken % 8 else engines.THUND_ROWWISE
            judge.expect_agreement(scenario, (engines.REFERENCE, other))

    try:
        run()
    except Exception as error:  # noqa: BLE001 - whatever it is, the scenario is what counts
        found = judge.latest()
        text = judge.as_golden(found) if found else "no scenario was drawn"
        return Drawn(taken, reach.counts() - before, (text, f"{type(error).__name__}: {error}"))
    return Drawn(taken, reach.counts() - before)


def dealt_anew(s: Scenario, shape: Shape, chance: random.Random) -> Iterator[Scenario]:
    """The same rows under other windows, rules and outputs, with other steps; far cheaper to draw."""
    for _ in range(DEALT):
        config = _other_config(s.config, shape, chance)
        offsets = {name: [row.offset for row in log] for name, log in s.logs}
        steps = [
            step
            for _ in range(chance.randrange(10))
            for step in _steps(offsets, config, shape, chance)
        ]
        deaths = sum(isinstance(step, Crash) for step in steps)
        yield replace(s, config=config, steps=(*steps, *(DrainAll(),) * (1 + deaths)))


def _other_config(config: Config, shape: Shape, chance: random.Random) -> Config:
    w = config.window
    size = w.size_ms or w.gap_ms or 1_800_000
    slide = chance.randint(max(1, size // 4), size)
    windows = {
        TUMBLING: WindowSpec(size, w.offset_ms),
        HOPPING: WindowSpec(size, w.offset_ms, HOPPING, slide),
        SESSION: WindowSpec(0, kind=SESSION, gap_ms=size),
        CALENDAR: w if w.kind == CALENDAR else WindowSpec(size, w.offset_ms),
    }
    window = windows[chance.choice(shape.windows)]
    output = chance.choice(shape.outputs)
    panes = [p for p in ("", *PANES) if window.kind != SESSION or p != DISCARDING]
    rules = [rule for rule in shape.late_rules if rule != WINDOW_RULE or not config.more]
    return replace(
        config,
        window=window,
        delay_ms=chance.choice([0, 0, size // 2, size, 2 * size, 12 * size]),
        grace_ms=chance.choice([0, 0, size // 2, size, 2 * size]),
        late_rule=chance.choice(rules),
        watermark_update=chance.choice(shape.updates),
        output=output,
        panes=chance.choice(panes) if output == UPDATE else "",
        credits=chance.choice([2, 5, *[1_048_576] * 6]),
        idle_timeout_ms=chance.choice([0, 1, 10]) if shape.idle else 0,
    )


def _steps(
    offsets: dict[str, list[int]], config: Config, shape: Shape, chance: random.Random
) -> tuple[Step, ...]:
    """One step; now and then a lull, in which one partition speaks and the others may go idle."""
    if config.idle_timeout_ms and chance.randrange(8) == 0:
        half, name = Tick(config.idle_timeout_ms // 2 + 1), chance.choice(list(offsets))
        return (half, Deliver(name, 1), Barrier(), half, Barrier())
    return (_step(offsets, config, shape, chance),)


def _step(
    offsets: dict[str, list[int]], config: Config, shape: Shape, chance: random.Random
) -> Step:
    name, count = chance.choice(list(offsets)), chance.randint(1, 6)
    kinds = ["deliver"] * 6 + ["reorder", "duplicate"] + ["barrier"] * 4
    kinds += ["tick", "tick", "busy"] * (config.idle_timeout_ms > 0) + ["tick"] * shape.guard
    kinds += ["add", "remove"] * shape.changes + ["crash", "restart"] * shape.crashes
    match chance.choice(kinds):
        case "deliver":
            return Deliver(name, count)
        case "reorder":
            return Reorder(name, count)
        case "duplicate":
            return Duplicate(name, chance.choice(offsets[name] or [0]))
        case "tick":
            return Tick(chance.choice([1, 5, 10]))
        case "busy":
            return Busy(chance.choice([1, 5, 10]))
        case "add":
            return AddPartition(name)
        case "remove":
            return RemovePartition(name)
        case "crash":
            return Crash(chance.randint(0, 8))
        case "restart":
            return Restart()
    return Barrier()


def soak(
    scenarios: int, *, seed: int, jobs: int, tell: Callable[[int], None] = lambda done: None
) -> Soaked:
    """Draw at least so many, until the first chunk that differs."""
    begun = time.monotonic()
    done, reached, failures = 0, Counter[str](), list[tuple[str, str]]()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_quiet) as pool:
        numbers = iter(range(-(-scenarios // (CHUNK * (1 + DEALT)))))
        running = {pool.submit(draw, n, seed) for n in islice(numbers, 2 * jobs)}
        while running:
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            for drawn in _results(ended):
                done += drawn.scenarios
                reached += drawn.reached
                failures += [drawn.failed] if drawn.failed else []
                tell(done)
            if not failures:
                running |= {pool.submit(draw, n, seed) for n in islice(numbers, len(ended))}
    return Soaked(done, time.monotonic() - begun, reached, tuple(failures))


def _results(ended: set[Future[Drawn]]) -> Iterator[Drawn]:
    return (future.result() for future in ended)


def _quiet() -> None:
    """A worker makes way for whoever works at the machine."""
    os.nice(5)
