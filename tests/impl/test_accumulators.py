"""Exact sums, means, and extremes of single groups, against fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thund.batch import Delivery
from thund.kernel_round import round_sums
from thund.windows import STATE, Windows
from thund_contract import vocabulary as v

OPERATIONS = (v.COUNT, v.SUM, v.MIN, v.MAX, v.MEAN)
AGGREGATES = tuple(v.Aggregate(operation, operation, "x") for operation in OPERATIONS)
CONFIG = v.Config("p", "t", (), v.WindowSpec(10), AGGREGATES)


def fold(windows: Windows, batch: pa.RecordBatch) -> None:
    """All rows, at time 0."""
    n = batch.num_rows
    places, offsets = np.zeros(n, np.int32), np.arange(n)
    delivery = Delivery(batch, ("p",), places, offsets, offsets - 1)
    windows.fold(delivery, np.zeros(n, np.int64), None)


def show(values: Any, *, cuts: int = 1, restore: bool = False) -> tuple[dict[str, Any], list[str]]:
    """All aggregates of one group whose rows come in some batches, and the unfit values."""
    schema = pa.schema([("t", pa.int64()), ("x", values.type)])
    windows = Windows(CONFIG, schema)
    for part in np.array_split(np.arange(len(values)), cuts):
        if len(part):
            piece = values.slice(part[0], len(part))
            batch = pa.record_batch([pa.array(np.zeros(len(part), np.int64)), piece], schema=schema)
            fold(windows, batch)
        if restore:
            tables = windows.snapshot()
            windows = Windows(CONFIG, schema)
            windows.restore(tables, v.NEVER)
    windows.close(v.END)
    outbox, unfit = windows.emit(1)
    assert outbox.num_rows == 1
    return outbox.to_pylist()[0], unfit["value"].to_pylist()


def bits(x: float) -> bytes:
    return np.float64(x).tobytes()


def nearest(exact: Fraction) -> float:
    try:
        return float(exact) + 0.0
    except OverflowError:
        return math.inf


def draw_floats(rng: Any, n: int) -> Any:
    """Doubles of one of several shapes: plain, far apart, cancelling, tiny, huge, any bits."""
    shape = rng.integers(0, 6)
    if shape == 0:
        return rng.normal(size=n)
    if shape == 1:
        return rng.normal(size=n) * 10.0 ** rng.integers(-300, 300, n)
    if shape == 2:
        half = rng.normal(size=n) * 10.0 ** rng.integers(-20, 20, n)
        return rng.permutation(np.concatenate([half, -half, [1e-30, 3.0]]))
    if shape == 3:
        return rng.integers(-(1 << 53), 1 << 53, n) * 5e-324
    if shape == 4:
        return rng.normal(size=n) * 1e307
    any_bits = rng.integers(0, 1 << 64, n, dtype=np.uint64).view(np.float64)
    return np.where(np.isfinite(any_bits), any_bits, 0.0)


@given(st.integers(0, 2**32))
@settings(max_examples=120, deadline=None)
def test_required_float_sums_are_exact_in_any_order(seed: int) -> None:
    """Sum and mean have the bits of the exact value rounded once, however the rows come."""
    rng = np.random.default_rng(seed)
    numbers = draw_floats(rng, int(rng.integers(1, 60)))
    exact = sum(map(Fraction, numbers.tolist()), Fraction(0))
    for order in (
        np.arange(len(numbers)),
        np.argsort(np.abs(numbers)),
        rng.permutation(len(numbers)),
    ):
        shown, unfit = show(
            pa.array(numbers[order]), cuts=int(rng.integers(1, 5)), restore=bool(rng.integers(0, 2))
        )
        assert bits(shown["mean"]) == bits(nearest(exact / len(numbers)))
        if math.isinf(nearest(exact)):
            assert shown["sum"] is None
            assert unfit == [f"{exact.numerator}/{exact.denominator}"]
        else:
            assert bits(shown["sum"]) == bits(nearest(exact))
            assert unfit == []


@given(st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_required_many_groups_with_far_values_keep_their_own_sums(seed: int) -> None:
    """The wide sums of many groups grow together and are not mixed up."""
    rng = np.random.default_rng(seed)
    groups, n = int(rng.integers(1, 400)), 1500
    keys = rng.integers(0, groups, n)
    values = draw_floats(rng, n)[:n]
    aggregates = (v.Aggregate("x", v.SUM, "x"), v.Aggregate("y", v.MEAN, "y"))
    config = v.Config("p", "t", ("k",), v.WindowSpec(10), aggregates)
    batch = pa.record_batch({"t": np.zeros(n, np.int64), "k": keys, "x": values, "y": values[::-1]})
    windows = Windows(config, batch.schema)
    for _ in range(2):
        fold(windows, batch)
        tables = windows.snapshot()
        windows = Windows(config, batch.schema)
        windows.restore(tables, v.NEVER)
    windows.close(v.END)
    sums, means = [Fraction(0)] * groups, [Fraction(0)] * groups
    for key, x, y in zip(keys.tolist(), values.tolist(), values[::-1].tolist(), strict=True):
        sums[key] += 2 * Fraction(x)
        means[key] += Fraction(y)
    counts = np.bincount(keys, minlength=groups).tolist()
    for row in windows.emit(1)[0].to_pylist():
        k = row["k"]
        want = nearest(sums[k])
        assert row["x"] is None if math.isinf(want) else bits(row["x"]) == bits(want)
        assert bits(row["y"]) == bits(nearest(means[k] / counts[k]))


@given(st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_required_a_quotient_is_rounded_once(seed: int) -> None:
    """round_sums against fractions: any 192-bit sum, exponent and divisor, ties and subnormals too."""
    rng = np.random.default_rng(seed)
    n = 50
    words = rng.integers(-(1 << 63), 1 << 63, (3, n), dtype=np.int64)
    words[2] >>= rng.integers(0, 64, n)
    sparse = rng.random(n) < 0.5
    words[:2, sparse] &= np.int64(1) << rng.integers(0, 62, sparse.sum())
    words[2, rng.random(n) < 0.3] = 0
    base = rng.integers(-1139, 900, n)
    divisor = np.where(rng.random(n) < 0.3, 1, rng.integers(1, (1 << 31) + 1, n))
    out = np.empty(n)
    round_sums(words[0], words[1], words[2], base, divisor, out)
    for i in range(n):
        low, mid, high = (int(words[w, i]) for w in range(3))
        whole = (low & (1 << 64) - 1) | (mid & (1 << 64) - 1) << 64 | high << 128
        exact = Fraction(whole) * Fraction(2) ** int(base[i]) / int(divisor[i])
        want = nearest(abs(exact)) * (-1 if exact < 0 else 1)
        assert bits(out[i]) == bits(want + 0.0)


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint32(), pa.uint64()])
def test_required_integer_sums_and_means_are_exact(kind: Any) -> None:
    """At the ends of each type, in any cut, with nulls: sums beyond int64 are shown as unfit."""
    width = kind.bit_width
    low, high = (0, (1 << width) - 1) if pa.types.is_unsigned_integer(kind) else (
        -(1 << width - 1),
        (1 << width - 1) - 1,
    )  # fmt: skip
    rng = np.random.default_rng(1)
    for trial in range(60):
        ends = [low, high, 0, high - 1] if trial % 2 else [high, high - 1]
        values = [ends[i] for i in rng.integers(0, len(ends), rng.integers(1, 9))]
        with_nulls = [*values, None, None] if trial % 3 else values
        shown, unfit = show(pa.array(with_nulls, kind), cuts=2, restore=trial % 5 == 0)
        assert shown["count"] == len(values)
        assert (shown["min"], shown["max"]) == (min(values), max(values))
        assert bits(shown["mean"]) == bits(float(Fraction(sum(values), len(values))))
        if -(1 << 63) <= sum(values) < 1 << 63:
            assert (shown["sum"], unfit) == (sum(values), [])
        else:
            assert (shown["sum"], unfit) == (None, [str(sum(values))])


def test_required_an_overflow_on_the_way_does_not_show() -> None:
    """Only the emitted value is checked: the largest, one, and minus one fit in any order."""
    for values in ([(1 << 63) - 1, 1, -1], [(1 << 63) - 1, -1, 1]):
        assert show(pa.array(values))[0]["sum"] == (1 << 63) - 1
    for numbers in ([1.7e308, 1.7e308, -1.7e308], [1.7e308, -1.7e308, 1.7e308]):
        assert show(pa.array(numbers))[0]["sum"] == 1.7e308


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.float16()])
def test_required_specials_and_zeros(kind: Any) -> None:
    """NaN is the largest and one; -0.0 is below 0.0; both infinities make NaN."""
    inf, nan = math.inf, math.nan

    def of(*numbers: float) -> dict[str, Any]:
        return show(pa.array(np.array(numbers, kind.to_pandas_dtype()), kind))[0]

    assert of(nan, 1.0)["min"] == 1.0
    assert math.isnan(of(-nan, inf)["max"])
    assert math.isnan(of(nan)["min"])
    assert math.copysign(1, of(0.0, -0.0)["min"]) == -1
    assert math.copysign(1, of(-0.0, 0.0)["max"]) == 1
    assert math.copysign(1, of(-0.0)["sum"]) == 1
    assert of(inf, 1.0)["sum"] == of(inf, 2.0)["mean"] == inf
    assert of(-inf, 1.0)["sum"] == -inf
    assert math.isnan(of(inf, -inf)["sum"])
    assert math.isnan(of(nan, 1.0)["mean"])
    assert of(inf, -inf)["min"] == -inf
    assert of(0.5, 0.25)["count"] == 2


def test_required_no_value_is_null() -> None:
    """Over nulls alone, all but counts are null."""
    shown, _ = show(pa.array([None, None], pa.float64()))
    assert [shown[operation] for operation in OPERATIONS] == [0, None, None, None, None]


def test_required_a_state_of_more_rows_than_memory_holds_goes_on() -> None:
    """Counts beyond 2**31 take the long way to the mean, as exactly."""
    schema = pa.schema([("t", pa.int64()), ("x", pa.float64())])
    windows = Windows(CONFIG, schema)
    batch = pa.record_batch([[0, 0], [0.1, 0.3]], schema=schema)
    fold(windows, batch)
    table = windows.snapshot()[STATE]
    many = (1 << 40) + 3
    for name in ("rows", "count(x)"):
        table = table.set_column(table.column_names.index(name), name, pa.array([many]))
    windows.restore({STATE: table}, v.NEVER)
    windows.close(v.END)
    shown = windows.emit(1)[0].to_pylist()[0]
    assert shown["count"] == many
    assert bits(shown["mean"]) == bits(float((Fraction(0.1) + Fraction(0.3)) / many))
