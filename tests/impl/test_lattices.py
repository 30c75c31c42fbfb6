"""Counters, last writers and sets, however their rows come, against dicts and sets of Python."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thund.extra_kinds import extra_kind
from thund.scalars import column_of, values_of
from thund_contract import vocabulary as v
from thund_contract.errors import CallerError

EVERY = np.arange(1, 5)
"""Entries; nothing is added to the last."""

POOLS: list[tuple[Any, list[Any]]] = [
    (pa.int64(), [0, 1, -1, 2**63 - 1, -(2**63)]),
    (pa.uint64(), [0, 1, 2**64 - 1, 2**63]),
    (pa.float64(), [-math.inf, -1.5, -0.0, 0.0, 5e-324, math.inf, math.nan]),
    (pa.float16(), [-1.5, -0.0, 0.0, math.nan]),
    (pa.string(), ["", "a", "b", "zoë", "\U0001f600", "\uffff"]),
    (pa.binary(), [b"", b"\xff", b"a", b"a\0"]),
    (pa.binary(2), [b"ab", b"\xff\0"]),
    (pa.date32(), [0, -1, 20000]),
    (pa.timestamp("us", "UTC"), [0, -1, 2**60]),
    (pa.decimal128(38, 2), [0, -1, 10**38 - 1, 1 - 10**38]),
    (pa.decimal256(60, 2), [0, -1, 10**60 - 1]),
    (pa.large_string(), ["x", "y", ""]),
]
NUMBERS = POOLS[:2]
BOOLEANS: list[tuple[Any, list[Any]]] = [(pa.bool_(), [True, False])]


def draw(rng: Any, pools: list[tuple[Any, list[Any]]]) -> tuple[Any, list[Any]]:
    arrow, pool = pools[rng.integers(0, len(pools))]
    return arrow, [*pool, None]


def rank(x: Any) -> Any:
    if not isinstance(x, float):
        return x
    return (2, 0.0) if math.isnan(x) else (1, x, math.copysign(1.0, x))


def same(x: Any) -> Any:
    """A hashable stand-in that is equal where keys are."""
    return "nan" if isinstance(x, float) and math.isnan(x) else x


def text(x: Any) -> str:
    """Shows the sign of zero, and NaN as itself."""
    return repr(x)


Rows = list[tuple[int, tuple[Any, ...]]]


def run(
    operation: str, arrows: list[Any], rows: Rows, rng: Any
) -> tuple[list[Any], dict[int, str]]:
    """What is shown of entries 1 to 4 when rows come in pieces, some of them through states."""
    names = [f"c{i}" for i in range(len(arrows))]
    schema = pa.schema(list(zip(names, arrows, strict=True)))
    kind = extra_kind(v.Aggregate("a", operation, names[0], tuple(names[1:])), schema)
    assert kind is not None
    extra = kind.new()
    cuts = sorted(rng.integers(0, len(rows) + 1, int(rng.integers(0, 4))).tolist())
    for lo, hi in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        piece = rows[lo:hi]
        entries = np.array([entry for entry, _ in piece], np.int64)
        columns = [
            column_of([values[c] for _, values in piece], arrow) for c, arrow in enumerate(arrows)
        ]
        other = kind.new()
        other.fold(entries, columns, None)  # type: ignore[arg-type]
        if rng.integers(0, 2):
            extra.fold(entries, columns, None)  # type: ignore[arg-type]
        else:
            states = other.states(EVERY)
            assert states.type == kind.state_type
            extra.absorb(EVERY, states)
    order = rng.permutation(len(EVERY))
    twice = kind.new()
    for _ in range(2):  # a join with itself changes nothing
        twice.absorb(EVERY[order], extra.states(EVERY[order]))
    assert twice.states(EVERY).equals(extra.states(EVERY)) or "nan" in str(twice.states(EVERY))
    shown, lost = kind.show(twice.states(EVERY), operation)
    if operation == v.OR_SET:
        assert shown.type == pa.list_(arrows[0])
    if pa.types.is_list(shown.type):
        out = [values_of(pa.array(x.values)) if x.is_valid else None for x in shown]
    else:
        out = values_of(shown)
    return out, lost


def draw_rows(rng: Any, pools: list[list[Any]]) -> Rows:
    n = int(rng.integers(0, 30))
    return [
        (int(rng.integers(1, 4)), tuple(pool[rng.integers(0, len(pool))] for pool in pools))
        for _ in range(n)
    ]


def whole_rows(rows: Rows, entry: int) -> list[tuple[Any, ...]]:
    return [values for e, values in rows if e == entry and None not in values]


@given(st.integers(0, 2**32), st.sampled_from([v.G_COUNTER, v.PN_COUNTER]))
@settings(max_examples=100, deadline=None)
def test_required_counters_join_per_replica(seed: int, operation: str) -> None:
    rng = np.random.default_rng(seed)
    drawn = [draw(rng, NUMBERS) for _ in range(1 + (operation == v.PN_COUNTER))]
    drawn.append(draw(rng, POOLS + BOOLEANS))
    rows = draw_rows(rng, [pool for _, pool in drawn])
    shown, lost = run(operation, [arrow for arrow, _ in drawn], rows, rng)
    for i, entry in enumerate(EVERY.tolist()):
        most: dict[Any, list[int]] = {}
        for *counts, replica in whole_rows(rows, entry):
            old = most.get(same(replica), counts)
            most[same(replica)] = list(map(max, old, counts))
        total = sum(c[0] - (c[1] if len(c) > 1 else 0) for c in most.values())
        if -(2**63) <= total < 2**63:
            assert shown[i] == total
        else:
            assert shown[i] is None
            assert lost.pop(i) == str(total)
    assert lost == {}


@given(st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_required_the_last_writer_has_the_greatest_stamp_and_value(seed: int) -> None:
    rng = np.random.default_rng(seed)
    drawn = [draw(rng, POOLS), draw(rng, POOLS)]
    rows = draw_rows(rng, [pool for _, pool in drawn])
    shown, lost = run(v.LWW, [arrow for arrow, _ in drawn], rows, rng)
    assert lost == {}
    for i, entry in enumerate(EVERY.tolist()):
        written = [(rank(stamp), rank(x), x) for x, stamp in whole_rows(rows, entry)]
        want = max(written, key=lambda w: w[:2])[2] if written else None
        assert text(shown[i]) == text(want)


@given(st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_required_a_set_has_what_was_added_and_not_removed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    drawn = [draw(rng, POOLS + BOOLEANS), draw(rng, POOLS + BOOLEANS), *map(tuple, BOOLEANS)]
    rows = draw_rows(rng, [pool for _, pool in drawn])
    shown, lost = run(v.OR_SET, [arrow for arrow, _ in drawn], rows, rng)
    assert lost == {}
    for i, entry in enumerate(EVERY.tolist()):
        tags: tuple[set[Any], set[Any]] = (set(), set())
        elements = {}
        for element, tag, added in whole_rows(rows, entry):
            x = element + 0.0 if isinstance(element, float) else element
            elements[same(x)] = x
            tags[added].add((same(x), same(tag)))
        live = {x for x, _ in tags[True] - tags[False]}
        want = sorted((elements[x] for x in live), key=rank)
        assert text(shown[i]) == text(want)


@pytest.mark.parametrize(
    ("operation", "types"),
    [
        (v.G_COUNTER, [pa.float64(), pa.string()]),
        (v.G_COUNTER, [pa.int64(), pa.list_(pa.int64())]),
        (v.PN_COUNTER, [pa.int64(), pa.bool_(), pa.string()]),
        (v.LWW, [pa.bool_(), pa.int64()]),
        (v.LWW, [pa.int64(), pa.null()]),
        (v.OR_SET, [pa.int64(), pa.string(), pa.int8()]),
        (v.OR_SET, [pa.null(), pa.string(), pa.bool_()]),
    ],
)
def test_required_other_types_are_refused(operation: str, types: list[Any]) -> None:
    names = [f"c{i}" for i in range(len(types))]
    schema = pa.schema(list(zip(names, types, strict=True)))
    with pytest.raises(CallerError, match="over a column of type"):
        extra_kind(v.Aggregate("a", operation, names[0], tuple(names[1:])), schema)


def test_required_a_value_shows_in_the_type_of_its_column() -> None:
    arrow = pa.decimal64(10, 2)
    schema = pa.schema([("x", arrow), ("at", pa.string_view())])
    kind = extra_kind(v.Aggregate("a", v.LWW, "x", ("at",)), schema)
    assert kind is not None
    extra = kind.new()
    value = pa.array([Decimal("1.25"), Decimal("2.50")], arrow)
    extra.fold(np.array([1, 1]), [value, pa.array(["b", "a"])], None)  # type: ignore[arg-type]
    shown, _ = kind.show(extra.states(np.array([1, 2])), v.LWW)
    assert shown.type == arrow
    assert shown.to_pylist() == [Decimal("1.25"), None]
