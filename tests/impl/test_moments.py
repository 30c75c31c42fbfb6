"""Variances and deviations of groups, however their rows come, against fractions."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thund.moments import moment_kind
from thund_contract import vocabulary as v
from thund_contract.errors import CallerError

OPERATIONS = (v.VAR_POP, v.VAR_SAMP, v.STDDEV_POP, v.STDDEV_SAMP)
GROUPS = 4
"""Entries 1 to 4; nothing is ever added to a fifth."""

WIDE = {128: 38, 256: 76}


def kind_of(arrow: Any) -> Any:
    schema = pa.schema([("x", arrow)])
    return moment_kind(v.Aggregate("a", v.VAR_POP, "x"), schema)


def array_of(values: list[Any], arrow: Any) -> Any:
    """Values in a type; Arrow itself cannot make decimals of a negative scale from numbers."""
    if not pa.types.is_decimal(arrow):
        return pa.array(values, arrow)
    unscaled = [int(Fraction(x or 0) * Fraction(10) ** arrow.scale) for x in values]
    width = arrow.bit_width // 8
    data = b"".join(x.to_bytes(width, "little", signed=True) for x in unscaled)
    valid = np.packbits(np.array([x is not None for x in values], bool), bitorder="little")
    buffers = [pa.py_buffer(valid), pa.py_buffer(data)]
    return pa.Array.from_buffers(arrow, len(values), buffers)


def partials(kind: Any, arrow: Any, rows: list[tuple[int, Any]], rng: Any) -> Any:
    """The states of entries 1 to 5 of rows that come in pieces, through states in between."""
    extra = kind.new()
    cuts = sorted(rng.integers(0, len(rows) + 1, int(rng.integers(0, 4))).tolist())
    for lo, hi in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        entries = np.array([entry for entry, _ in rows[lo:hi]], np.int64)
        values = array_of([value for _, value in rows[lo:hi]], arrow)
        way = rng.integers(0, 3)
        if way == 0:
            extra.fold(entries, [values], None)
            continue
        other = kind.new()
        other.fold(entries, [values], None)
        every = np.arange(1, GROUPS + 2)
        if way == 1:
            extra.absorb(every, other.states(every))
        else:
            before, extra = extra.states(every), other
            extra.absorb(every, before)
    return extra.states(np.arange(1, GROUPS + 2))


def exact(values: list[Any], operation: str) -> Fraction | float | None:
    """The exact variance; None for too few values; NaN beside a special."""
    less = int(operation in (v.VAR_SAMP, v.STDDEV_SAMP))
    if len(values) <= less:
        return None
    if any(isinstance(x, float) and not math.isfinite(x) for x in values):
        return math.nan
    numbers = [Fraction(x) for x in values]
    mean = sum(numbers, Fraction(0)) / len(numbers)
    return sum(((x - mean) ** 2 for x in numbers), Fraction(0)) / (len(numbers) - less)


def is_nearest(x: float, value: Fraction, *, root: bool) -> bool:
    """Whether no double is nearer to the value, or to its root; a tie goes to the even one."""
    above = math.nextafter(x, math.inf)
    up = Fraction(2**1024) if math.isinf(above) else Fraction(above)
    low, high = (Fraction(math.nextafter(x, 0.0)) + Fraction(x)) / 2, (up + Fraction(x)) / 2
    if root:
        low, high = low * abs(low), high * high
    even = np.float64(x).view(np.int64) % 2 == 0
    return low < value < high or (even and value in (low, high))


def check(arrow: Any, rows: list[tuple[int, Any]], rng: Any) -> None:
    kind = kind_of(arrow)
    states = partials(kind, arrow, rows, rng)
    assert states.type == kind.state_type
    assert not states[GROUPS].is_valid
    for operation in OPERATIONS:
        root = operation in (v.STDDEV_POP, v.STDDEV_SAMP)
        column, unfit = kind.show(states, operation)
        for i, shown in enumerate(column.to_pylist()):
            want = exact([x for e, x in rows if e == i + 1 and x is not None], operation)
            if want is None or isinstance(want, float):
                assert shown is None if want is None else math.isnan(shown)
            elif shown is None:
                text = f"{want.numerator}/{want.denominator}"
                assert unfit.pop(i) == (f"sqrt({text})" if root else text)
                limit = Fraction(2**1024 - 2**970)
                assert want >= (limit * limit if root else limit)
            elif shown == 0.0:
                assert want <= Fraction(2) ** (-2150 if root else -1075)
                assert math.copysign(1.0, shown) == 1.0
            else:
                assert is_nearest(shown, want, root=root)
        assert unfit == {}


def grouped(rng: Any, values: list[Any]) -> list[tuple[int, Any]]:
    return [(int(rng.integers(1, GROUPS + 1)), x) for x in values]


def floats(rng: Any, n: int) -> list[float | None]:
    shape = rng.integers(0, 8)
    if shape == 0:
        values = rng.normal(size=n)
    elif shape == 1:
        values = rng.normal(size=n) * 10.0 ** rng.integers(-300, 300, n)
    elif shape == 2:
        values = 1e15 + rng.integers(0, 3, n) * 0.125
    elif shape == 3:
        values = rng.integers(-5, 5, n) * 5e-324
    elif shape == 4:
        values = rng.choice([1.7976931348623157e308, -1.7976931348623157e308, 1e308, 0.0], n)
    elif shape == 5:
        values = rng.integers(0, 1 << 64, n, dtype=np.uint64).view(np.float64)
    elif shape == 6:
        values = rng.normal(size=n) * 2.0 ** rng.choice([-31, 0, 31, 63, 64, 65, 97, 128], n)
    else:
        values = rng.choice(
            [math.inf, -math.inf, math.nan, -0.0, 0.0, 3.0], n, p=[0.02] * 3 + [0.04, 0.4, 0.5]
        )
    return [None if rng.integers(0, 9) == 0 else x for x in values.tolist()]


@given(st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_required_moments_of_floats_are_exact_and_rounded_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = floats(rng, int(rng.integers(0, 30)))
    check(pa.float64(), grouped(rng, values), rng)


@given(st.integers(0, 2**32))
@settings(max_examples=80, deadline=None)
def test_required_moments_of_integers_are_exact_and_rounded_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    arrow = [pa.int64(), pa.uint64(), pa.int8(), pa.uint32()][rng.integers(0, 4)]
    unsigned = str(arrow).startswith("u")
    low = 0 if unsigned else -(1 << (arrow.bit_width - 1))
    high = low + (1 << arrow.bit_width)
    pool = [low, low + 1, high - 1, high - 2, high // 2, 0, 1, 2, 3]
    n = int(rng.integers(0, 30))
    values = [None if rng.integers(0, 9) == 0 else pool[i] for i in rng.integers(0, len(pool), n)]
    check(arrow, grouped(rng, values), rng)


@given(st.integers(0, 2**32))
@settings(max_examples=80, deadline=None)
def test_required_moments_of_decimals_are_exact_and_rounded_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bits = (128, 256)[rng.integers(0, 2)]
    digits = WIDE[bits]
    scale = int(rng.integers(-3, digits + 1))
    arrow = {128: pa.decimal128, 256: pa.decimal256}[bits](digits, scale)
    most = 10**digits - 1
    pool = [most, -most, most // 7, 10**20, 0, 1, -1, 12345, -(2**127), 2**127 - 1, 2**127, 2**64]
    n = int(rng.integers(0, 20))
    values = [
        None if rng.integers(0, 9) == 0 else max(-most, min(most, pool[i])) / Fraction(10) ** scale
        for i in rng.integers(0, len(pool), n)
    ]
    check(arrow, grouped(rng, values), rng)


@pytest.mark.parametrize("arrow", [pa.float32(), pa.float16(), pa.decimal64(10, 2), pa.int16()])
def test_required_moments_of_narrow_types(arrow: Any) -> None:
    rng = np.random.default_rng(7)
    pool = [Decimal("0.5"), Decimal(-3), Decimal(0), Decimal("12.25")]
    values: list[Any] = [pool[i] for i in rng.integers(0, 4, 12)]
    if not pa.types.is_decimal(arrow):
        values = [int(x) if pa.types.is_integer(arrow) else float(x) for x in values]
    check(arrow, grouped(rng, values), rng)


def test_required_moments_of_a_text_are_refused() -> None:
    with pytest.raises(CallerError, match="integers, floats and decimals"):
        kind_of(pa.string())
