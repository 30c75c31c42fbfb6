"""Draw scenarios: small enough to read when they fail, wide enough to meet every law.

Values are drawn so that each column has one Arrow type, for engines that keep typed columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeVar

from hypothesis import settings
from hypothesis import strategies as st

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
    Scenario,
    Step,
    Tick,
)
from thund_contract.vocabulary import (
    APPEND,
    BY_EPOCH,
    BY_ROW,
    COMPLETE,
    COUNT,
    MAX,
    MAX_EVENT_TIME,
    MEAN,
    MIN,
    MIN_EVENT_TIME,
    PARTITION_RULE,
    ROW_RULE,
    SUM,
    UPDATE,
    WINDOW_RULE,
    Aggregate,
    Config,
    Row,
    WindowSpec,
)

_T = TypeVar("_T")

INT64_MAX = 2**63 - 1
LONG = "a text that is longer than any inline string of any engine, by far"

KEY_POOLS: tuple[tuple[object, ...], ...] = (
    (1, 2, 3),
    (0, -1, INT64_MAX, -INT64_MAX - 1),
    ("a", "b"),
    ("", "a", "a\x00", LONG, LONG + "!", "é"),
    (0.0, -0.0, 1.5, math.nan, math.inf, -math.inf),
    (True, False),
    (b"", b"\x00", b"\x00\x00", LONG.encode()),
    (("date32[day]", 0), ("date32[day]", -1), ("date32[day]", 20000)),
    (("timestamp[us, tz=UTC]", 1), ("timestamp[us, tz=UTC]", -1)),
)
"""What a key column may hold, one column one pool; few values, so that rows meet."""

INTEGERS: tuple[tuple[object, ...], ...] = (
    (1, 2, 3, -4),
    (INT64_MAX, -INT64_MAX - 1, INT64_MAX - 1, 1, -1),
)
FLOATS: tuple[tuple[object, ...], ...] = (
    (1.0, 0.5, -2.25, 0.1),
    (1e16, 1.0, -1e16, 2.0**-60, 1.0 + 2.0**-52),
    (math.nan, math.inf, -math.inf, 1.0, -0.0, 0.0),
    (1.7976931348623157e308, -1.7976931348623157e308, 5e-324, 2.0**970, -0.0),
)
ORDERED_ONLY: tuple[tuple[object, ...], ...] = (
    (("date32[day]", 0), ("date32[day]", -7), ("date32[day]", 9)),
    (("timestamp[ms]", 5), ("timestamp[ms]", -5)),
    (("duration[ms]", 0), ("duration[ms]", 11)),
    (("time64[us]", 0), ("time64[us]", 3600000000)),
)
"""Values with an order but no sum."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What kind of scenarios to draw; the defaults draw everything but deaths.

    What is listed more than once is drawn more often.
    """

    partitions: int = 3
    rows: int = 12
    steps: int = 10
    crashes: bool = False
    changes: bool = True
    guard: bool = True
    invalid: bool = True
    outputs: tuple[str, ...] = (APPEND, UPDATE, COMPLETE)
    late_rules: tuple[str, ...] = (*(ROW_RULE,) * 4, WINDOW_RULE, WINDOW_RULE, PARTITION_RULE)
    updates: tuple[str, ...] = (BY_ROW, BY_ROW, BY_ROW, BY_EPOCH)
    drain: bool = True


def share(part: int) -> settings:
    """A decorator: draw one part of the session's examples, where there are many such tests."""
    usual = settings.default
    assert usual is not None
    return settings(max_examples=max(1, usual.max_examples // part))


PLAIN = Shape()
WITH_CRASHES = Shape(crashes=True)
FIXED = Shape(changes=False, guard=False)
"""All partitions assigned before the first row, the guard off: "fixed" in the laws."""
MOVED_BY_ROWS = (BY_ROW,)
"""For laws that hold only where no cut of the epochs can move W (T1)."""


@st.composite
def scenarios(draw: st.DrawFn, shape: Shape = PLAIN) -> Scenario:
    """A whole scenario. A death may cut its drain short, so there is one more for each."""
    key_pools = draw(st.lists(st.sampled_from(KEY_POOLS), max_size=3))
    columns = {
        "x": draw(st.sampled_from(INTEGERS)),
        "y": draw(st.sampled_from(FLOATS)),
        "z": draw(st.sampled_from(ORDERED_ONLY)),
    }
    config = draw(configs(shape, tuple(f"k{i}" for i in range(len(key_pools)))))
    names = tuple(f"p{i}" for i in range(draw(st.integers(1, shape.partitions))))
    times = draw(event_times(config, shape))
    cells = _cells(config, tuple(key_pools), columns, times)
    logs = tuple((name, draw(_log(name, cells, shape))) for name in names)
    assigned = names
    if shape.changes:
        assigned = tuple(sorted(draw(st.sets(st.sampled_from(names), min_size=1))))
    offsets = {name: tuple(row.offset for row in log) for name, log in logs}
    steps = tuple(draw(_many(_steps(offsets, shape), shape.steps)))
    deaths = sum(isinstance(step, Crash) for step in steps)
    ends = (DrainAll(),) * (1 + deaths) if shape.drain else ()
    return Scenario(config, logs, assigned, (*steps, *ends))


@st.composite
def configs(draw: st.DrawFn, shape: Shape, key: tuple[str, ...]) -> Config:
    """A configuration over the columns x (integers), y (floats) and z (ordered only)."""
    size = draw(st.sampled_from([1, 2, 3, 5, 10, 60_000]))
    small = st.integers(0, 2 * size)
    return Config(
        pipeline=draw(st.sampled_from(["p", "flights", ""])) or "p",
        event_time="et",
        key=key,
        window=WindowSpec(size, draw(st.integers(-2 * size, 2 * size))),
        aggregates=draw(_aggregates()),
        delay_ms=draw(st.just(0) | small),
        grace_ms=draw(st.just(0) | small),
        late_rule=draw(st.sampled_from(shape.late_rules)),
        output=draw(st.sampled_from(shape.outputs)),
        max_future_ms=draw(st.none() | small) if shape.guard else None,
        late_lane=draw(st.sampled_from([True, True, True, False])),
        watermark_update=draw(st.sampled_from(shape.updates)),
        credits=draw(st.sampled_from([1, 2, 3, 5, *[1_048_576] * 6])),
    )


_CHOICES = (
    (COUNT, None),
    (COUNT, "x"),
    (COUNT, "z"),
    (SUM, "x"),
    (MEAN, "x"),
    (MIN, "x"),
    (MAX, "x"),
    (SUM, "y"),
    (MEAN, "y"),
    (MIN, "y"),
    (MAX, "y"),
    (MIN, "z"),
    (MAX, "z"),
)


def _aggregates() -> st.SearchStrategy[tuple[Aggregate, ...]]:
    chosen = st.lists(st.sampled_from(_CHOICES), min_size=1, max_size=5, unique=True)
    return chosen.map(
        lambda pairs: tuple(Aggregate(f"a{i}", op, column) for i, (op, column) in enumerate(pairs))
    )


@st.composite
def event_times(draw: st.DrawFn, config: Config, shape: Shape) -> st.SearchStrategy[object]:
    """A strategy for event times of one column: integers, floats or text, some of them bad."""
    size = config.window.size_ms
    base = draw(st.sampled_from([0, 0, 0, -7 * size, 1_700_000_000_000]))
    grid = st.integers(-3, 8).map(lambda n: base + n * size + config.window.offset_ms)
    good: st.SearchStrategy[object] = grid | st.integers(base - 2 * size, base + 6 * size)
    if not shape.invalid:
        return good
    far = st.sampled_from([MIN_EVENT_TIME - 1, MAX_EVENT_TIME + 1, MAX_EVENT_TIME, MIN_EVENT_TIME])
    kinds: dict[str, tuple[object, ...]] = {
        "int": (None,),
        "float": (None, math.nan),
        "text": (None, "no time at all", ""),
    }
    kind = draw(st.sampled_from(["int", "int", "float", "text"]))
    bad: st.SearchStrategy[object] = st.sampled_from(kinds[kind])
    if kind == "int":
        bad = bad | far
    if kind == "float":
        bad = bad | st.sampled_from([2 * MIN_EVENT_TIME, 2 * MAX_EVENT_TIME])
    return st.integers(0, 9).flatmap(lambda n: bad if n == 0 else good)


Cell = tuple[int, object, tuple[object, ...], tuple[object, ...]]
"""A row without its place: gap to the offset before, event time, key, one value per aggregate."""


def _cells(
    config: Config,
    key_pools: tuple[tuple[object, ...], ...],
    columns: dict[str, tuple[object, ...]],
    times: st.SearchStrategy[object],
) -> st.SearchStrategy[Cell]:
    used = sorted({a.column for a in config.aggregates if a.column is not None})

    def spread(values: tuple[object, ...]) -> tuple[object, ...]:
        by_column = dict(zip(used, values, strict=True))
        return tuple(by_column[a.column] if a.column else None for a in config.aggregates)

    return st.tuples(
        st.sampled_from([1, 1, 1, 1, 2, 5]),
        times,
        st.tuples(*(st.sampled_from((*pool, None)) for pool in key_pools)),
        st.tuples(*(st.sampled_from((*columns[c], None)) for c in used)).map(spread),
    )


@st.composite
def _log(
    draw: st.DrawFn, name: str, cells: st.SearchStrategy[Cell], shape: Shape
) -> tuple[Row, ...]:
    rows, offset = [], draw(st.sampled_from([-1, -1, -1, 3]))
    for gap, event_time, key, values in draw(_many(cells, shape.rows)):
        offset += gap
        rows.append(Row(name, offset, event_time, key, values))
    return tuple(rows)


def _many(one: st.SearchStrategy[_T], most: int) -> st.SearchStrategy[list[_T]]:
    """A list of any length up to `most`, all lengths alike, where st.lists prefers short ones."""
    return st.integers(0, most).flatmap(lambda n: st.lists(one, min_size=n, max_size=n))


def _steps(offsets: dict[str, tuple[int, ...]], shape: Shape) -> st.SearchStrategy[Step]:
    name = st.sampled_from(tuple(offsets))
    known = [(name, offset) for name, log in offsets.items() for offset in log] or [("p0", 0)]
    count = st.integers(1, 6)
    choices: list[st.SearchStrategy[Step]] = [
        st.builds(Deliver, name, count),
        st.builds(Deliver, name, count),
        st.builds(Deliver, name, count),
        st.builds(Reorder, name, count),
        st.sampled_from(known).map(lambda pair: Duplicate(*pair)),
        st.just(Barrier()),
        st.just(Barrier()),
    ]
    if shape.guard:
        choices.append(st.builds(Tick, st.sampled_from([1, 10, 1_700_000_000_000])))
    if shape.changes:
        choices += [st.builds(AddPartition, name), st.builds(RemovePartition, name)]
    if shape.crashes:
        choices += [st.builds(Crash, st.integers(0, 8)), st.just(Restart()), st.just(Restart())]
    return st.one_of(choices)


Move = tuple[str, str, int]
"""What happens on a wire: (verb, partition, number). deliver: which row of the log, from 0."""


@dataclass(frozen=True, slots=True)
class Wire:
    """Logs, all of whose rows are on the wire, and what arrives, in any order and number."""

    scenario: Scenario
    moves: tuple[Move, ...]


@st.composite
def wires(draw: st.DrawFn) -> Wire:
    """Deliveries that no link would order, and partitions that go with rows held."""
    s = draw(scenarios(Shape(changes=False, guard=False, steps=0, drain=False)))
    s = replace(s, config=replace(s.config, credits=draw(st.sampled_from([40, 2**20]))))
    rows = [("deliver", name, index) for name, log in s.logs for index in range(len(log))]
    moves = list(draw(st.permutations(rows)))
    if rows:
        moves += draw(st.lists(st.sampled_from(rows), max_size=6))
    for verb in draw(st.lists(st.sampled_from(["commit", "remove", "add"]), max_size=4)):
        name = draw(st.sampled_from([name for name, _ in s.logs]))
        moves.insert(draw(st.integers(0, len(moves))), (verb, name, 0))
    return Wire(s, tuple(moves))
