"""Draw scenarios: small enough to read when they fail, wide enough to meet every law.

Values are drawn so that each column has one Arrow type, for engines that keep typed columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from hypothesis import settings
from hypothesis import strategies as st

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
    ALL,
    ANY,
    APPEND,
    BY_EPOCH,
    BY_ROW,
    CALENDAR,
    COMPLETE,
    COUNT,
    COUNT_DISTINCT,
    DISCARDING,
    FIRST,
    G_COUNTER,
    HOPPING,
    LAST,
    LWW,
    MAX,
    MAX_EVENT_TIME,
    MEAN,
    MIN,
    MIN_EVENT_TIME,
    OR_SET,
    PANES,
    PARTITION_RULE,
    PN_COUNTER,
    ROW_RULE,
    SESSION,
    STDDEV_POP,
    STDDEV_SAMP,
    SUM,
    TUMBLING,
    UNITS,
    UPDATE,
    VAR_POP,
    VAR_SAMP,
    WINDOW_KINDS,
    WINDOW_RULE,
    Aggregate,
    Config,
    Operator,
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
DECIMALS: tuple[tuple[object, ...], ...] = (
    tuple(("decimal128(5, 2)", n) for n in (0, 12345, -1, 99999, -99999)),
    tuple(("decimal128(38, 0)", n) for n in (1, 10**38 - 1, 1 - 10**38)),
    tuple(("decimal256(40, 3)", n) for n in (10**39 + 1, -7, 10**40 - 1)),
)
COLUMNS: dict[str, tuple[tuple[object, ...], ...]] = {
    "x": INTEGERS,
    "y": FLOATS,
    "z": ORDERED_ONLY,
    "d": DECIMALS,
    "b": ((True, False),),
    "t": (("a", "b", "é", ""), (b"", b"\x00", b"\xff"), (LONG, LONG + "!", "z")),
    "c": ((0, 1, 2, 5), (1, INT64_MAX)),
    "e": ((0, 1, 3),),
    "r": (("r1", "r2"), (1, 2, 3)),
    "s": ((1, 2, 3, 4), ("u", "v")),
}
"""What is aggregated: a column of each letter, with one pool of values in a scenario."""

CHANGES: tuple[tuple[str, int], ...] = (
    ("Europe/Berlin", 1_774_746_000_000),
    ("America/New_York", 1_793_512_800_000),
    ("Australia/Lord_Howe", 1_775_314_800_000),
    ("America/St_Johns", 1_194_143_460_000),
    ("Pacific/Apia", 1_325_239_200_000),
    ("America/Sao_Paulo", 1_541_300_400_000),
    ("Asia/Kolkata", 0),
    ("UTC", -86_400_000),
)
"""Zones, and an instant at which the distance of most of them from UTC changes."""
HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Shape:
    """What kind of scenarios to draw; the defaults draw everything but deaths.

    What is listed more than once is drawn more often.
    """

    partitions: int = 3
    keys: int = 3
    aggregates: int = 5
    rows: int = 12
    steps: int = 10
    crashes: bool = False
    changes: bool = True
    guard: bool = True
    idle: bool = True
    repeats: bool = True
    several: bool = True
    invalid: bool = True
    windows: tuple[str, ...] = (*(TUMBLING,) * 3, HOPPING, HOPPING, SESSION, SESSION, CALENDAR)
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
FIXED = Shape(changes=False, guard=False, idle=False, repeats=False)
"""All partitions assigned before the first row, none going idle, the guard off: "fixed" in the laws.

Which of two rows with one id comes first is a matter of order, so none is a repeat either.
"""
GRIDS = tuple(kind for kind in WINDOW_KINDS if kind != CALENDAR)
"""The windows that the suite's own GROUP BY knows."""
MOVED_BY_ROWS = (BY_ROW,)
"""For laws that hold only where no cut of the epochs can move W (T1)."""


@st.composite
def scenarios(draw: st.DrawFn, shape: Shape = PLAIN) -> Scenario:
    """A whole scenario. A death may cut its drain short, so there is one more for each."""
    key_pools = draw(st.lists(st.sampled_from(KEY_POOLS), max_size=shape.keys))
    config = draw(configs(shape, tuple(f"k{i}" for i in range(len(key_pools)))))
    columns = {name: draw(st.sampled_from(COLUMNS[name])) for name in used(config)}
    names = tuple(f"p{i}" for i in range(draw(st.integers(1, shape.partitions))))
    times = draw(event_times(config, shape))
    cells = _cells(config, tuple(key_pools), columns, times)
    logs = tuple((name, draw(_log(name, config, cells, shape))) for name in names)
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
    """A configuration over the columns of COLUMNS, a boolean `keep` and an id `i`."""
    size = draw(st.sampled_from([1, 2, 3, 5, 10, 60_000]))
    window = draw(_windows(draw(st.sampled_from(shape.windows)), size))
    small = st.integers(0, 2 * (size if window.kind != CALENDAR else HOUR_MS))
    seldom = st.integers(0, 4).map(lambda n: n == 0)
    output = draw(st.sampled_from(shape.outputs))
    panes = [p for p in PANES if window.kind != SESSION or p != DISCARDING]
    deduplicates = shape.repeats and draw(seldom)
    late_rule = draw(st.sampled_from(shape.late_rules))
    more = []
    if shape.several and late_rule != WINDOW_RULE and draw(seldom):
        more.append(draw(_operators(shape, key, window, size)))
    return Config(
        pipeline=draw(st.sampled_from(["p", "flights", ""])) or "p",
        event_time="et",
        key=key,
        window=window,
        aggregates=draw(_aggregates(shape)),
        delay_ms=draw(st.just(0) | small),
        grace_ms=draw(st.just(0) | small),
        late_rule=late_rule,
        output=output,
        max_future_ms=draw(st.none() | small) if shape.guard else None,
        late_lane=draw(st.sampled_from([True, True, True, False])),
        watermark_update=draw(st.sampled_from(shape.updates)),
        credits=draw(st.sampled_from([1, 2, 3, 5, *[1_048_576] * 6])),
        idle_timeout_ms=draw(st.sampled_from([0, 0, 1, 10])) if shape.idle else 0,
        filter="keep" if draw(seldom) else None,
        deduplicate=("i",) if deduplicates else (),
        remember_ms=draw(st.just(0) | small) if deduplicates else 0,
        panes=draw(st.sampled_from(["", *panes])) if output == UPDATE else "",
        more=tuple(more),
    )


@st.composite
def _operators(
    draw: st.DrawFn, shape: Shape, key: tuple[str, ...], first: WindowSpec, size: int
) -> Operator:
    """One more window, over some of the key columns."""
    kind = draw(st.sampled_from(shape.windows))
    window = first if CALENDAR in (kind, first.kind) else draw(_windows(kind, size))
    output = draw(st.sampled_from(shape.outputs))
    return Operator(
        name="other",
        key=tuple(name for name in key if draw(st.booleans())),
        window=window,
        aggregates=draw(_aggregates(shape)),
        output=output,
        panes=draw(st.sampled_from(["", *PANES[:1]])) if output == UPDATE else "",
    )


@st.composite
def _windows(draw: st.DrawFn, kind: str, size: int) -> WindowSpec:
    offset = draw(st.integers(-2 * size, 2 * size))
    if kind == TUMBLING:
        return WindowSpec(size, offset)
    if kind == HOPPING:
        slide = draw(st.integers(1, size)) if size <= 10 else draw(st.sampled_from([7_000, 30_000]))
        return WindowSpec(size, offset, HOPPING, slide)
    if kind == SESSION:
        return WindowSpec(0, kind=SESSION, gap_ms=size)
    zone, _ = draw(st.sampled_from(CHANGES))
    local = draw(st.sampled_from([0, 0, HOUR_MS // 2, -HOUR_MS // 4]))
    return WindowSpec(0, local, CALENDAR, unit=draw(st.sampled_from(UNITS)), zone=zone)


_CHOICES: tuple[tuple[str, str | None, tuple[str, ...]], ...] = (
    (COUNT, None, ()),
    *((COUNT, column, ()) for column in "xz"),
    *((operation, column, ()) for operation in (SUM, MEAN) for column in "xyd"),
    *((operation, column, ()) for operation in (MIN, MAX) for column in "xyzdt"),
    *(
        (operation, column, ())
        for operation in (VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP)
        for column in "xyd"
    ),
    *((operation, column, ()) for operation in (FIRST, LAST) for column in "xytb"),
    *((operation, "b", ()) for operation in (ANY, ALL)),
    *((COUNT_DISTINCT, column, ()) for column in "xyt"),
    (G_COUNTER, "c", ("r",)),
    (PN_COUNTER, "c", ("e", "r")),
    (LWW, "t", ("s",)),
    (LWW, "y", ("s",)),
    (OR_SET, "t", ("s", "b")),
    (OR_SET, "r", ("c", "b")),
)


def _aggregates(shape: Shape) -> st.SearchStrategy[tuple[Aggregate, ...]]:
    most = shape.aggregates
    chosen = st.lists(st.sampled_from(_CHOICES), min_size=1, max_size=most, unique=True)
    return chosen.map(
        lambda found: tuple(
            Aggregate(f"a{i}", operation, column, others)
            for i, (operation, column, others) in enumerate(found)
        )
    )


def used(config: Config) -> list[str]:
    """The columns that the aggregates of all windows read."""
    every = [*config.aggregates, *(a for one in config.more for a in one.aggregates)]
    return sorted({name for a in every if a.column for name in (a.column, *a.others)})


@st.composite
def event_times(draw: st.DrawFn, config: Config, shape: Shape) -> st.SearchStrategy[object]:
    """A strategy for event times of one column: integers, floats or text, some of them bad."""
    window = config.window
    size = window.size_ms or window.gap_ms or draw(st.sampled_from([HOUR_MS // 2, 8 * HOUR_MS]))
    base = draw(st.sampled_from([0, 0, 0, -7 * size, 1_700_000_000_000]))
    if window.kind == CALENDAR:
        base = next(instant for zone, instant in CHANGES if zone == window.zone)
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


Values = tuple[object, ...]
Cell = tuple[int, object, Values, dict[str, object], bool | None, Values]
"""A row without its place: gap to the offset before, event time, key, columns, passes, id."""


def _cells(
    config: Config,
    key_pools: tuple[tuple[object, ...], ...],
    columns: dict[str, tuple[object, ...]],
    times: st.SearchStrategy[object],
) -> st.SearchStrategy[Cell]:
    passes: st.SearchStrategy[bool | None] = st.just(True)
    if config.filter is not None:
        passes = st.sampled_from([True, True, False, None])
    return st.tuples(
        st.sampled_from([1, 1, 1, 1, 2, 5]),
        times,
        st.tuples(*(st.sampled_from((*pool, None)) for pool in key_pools)),
        st.fixed_dictionaries({c: st.sampled_from((*columns[c], None)) for c in columns}),
        passes,
        st.tuples(*(st.sampled_from((1, 2, 3, None)) for _ in config.deduplicate)),
    )


def values_of(aggregates: Iterable[Aggregate], columns: dict[str, object]) -> Values:
    """One value per aggregate, where two that read one column see the same."""
    return tuple(
        None
        if a.column is None
        else tuple(columns[name] for name in (a.column, *a.others))
        if a.others
        else columns[a.column]
        for a in aggregates
    )


@st.composite
def _log(
    draw: st.DrawFn, name: str, config: Config, cells: st.SearchStrategy[Cell], shape: Shape
) -> tuple[Row, ...]:
    rows, offset = [], draw(st.sampled_from([-1, -1, -1, 3]))
    for gap, event_time, key, columns, passes, id_ in draw(_many(cells, shape.rows)):
        offset += gap
        named = dict(zip(config.key, key, strict=True))
        values = values_of(config.aggregates, columns)
        more = tuple(
            (tuple(named[k] for k in one.key), values_of(one.aggregates, columns))
            for one in config.more
        )
        rows.append(Row(name, offset, event_time, key, values, passes, id_, more))
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
    if shape.idle:
        short = st.sampled_from([1, 5, 10])
        choices += [st.builds(Tick, short), st.builds(Busy, short)]
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
    s = draw(scenarios(Shape(changes=False, guard=False, idle=False, steps=0, drain=False)))
    s = replace(s, config=replace(s.config, credits=draw(st.sampled_from([40, 2**20]))))
    rows = [("deliver", name, index) for name, log in s.logs for index in range(len(log))]
    moves = list(draw(st.permutations(rows)))
    if rows:
        moves += draw(st.lists(st.sampled_from(rows), max_size=6))
    for verb in draw(st.lists(st.sampled_from(["commit", "remove", "add"]), max_size=4)):
        name = draw(st.sampled_from([name for name, _ in s.logs]))
        moves.insert(draw(st.integers(0, len(moves))), (verb, name, 0))
    return Wire(s, tuple(moves))
