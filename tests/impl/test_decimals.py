"""Sums and means of decimals, however their rows come, against fractions."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thund.decimals import decimal_kind
from thund_contract import vocabulary as v

EVERY = np.arange(1, 5)
"""Entries; nothing is added to the last."""


def array_of(unscaled: list[int | None], arrow: Any) -> Any:
    width = arrow.bit_width // 8
    data = b"".join((x or 0).to_bytes(width, "little", signed=True) for x in unscaled)
    valid = np.packbits(np.array([x is not None for x in unscaled], bool), bitorder="little")
    buffers = [pa.py_buffer(valid), pa.py_buffer(data)]
    return pa.Array.from_buffers(arrow, len(unscaled), buffers)


def unscaled_of(column: Any) -> list[int | None]:
    width, data = column.type.bit_width // 8, column.buffers()[1].to_pybytes()
    numbers = [data[i * width : (i + 1) * width] for i in range(len(column))]
    return [
        int.from_bytes(x, "little", signed=True) if valid else None
        for x, valid in zip(numbers, column.is_valid().to_pylist(), strict=True)
    ]


@given(st.integers(0, 2**32))
@settings(max_examples=120, deadline=None)
def test_required_sums_and_means_of_decimals_are_exact(seed: int) -> None:
    """Digits that no decimal holds are a text; the mean is the exact quotient rounded once."""
    rng = np.random.default_rng(seed)
    make, digits = [(pa.decimal128, 38), (pa.decimal256, 76), (pa.decimal64, 18)][
        rng.integers(0, 3)
    ]
    scale = int(rng.integers(-4, digits + 1))
    arrow, most = make(digits, scale), 10**digits - 1
    kind = decimal_kind(v.Aggregate("a", v.SUM, "x"), pa.schema([("x", arrow)]))
    assert kind is not None
    pool = [most, -most, most // 2, most // 2 + 1, 1, -1, 0, 12345, -(most // 3), None]
    extra, groups = kind.new(), [[] for _ in EVERY]
    for _ in range(int(rng.integers(0, 4))):
        n = int(rng.integers(0, 12))
        values = [pool[i] for i in rng.integers(0, len(pool), n)]
        entries = rng.integers(1, len(EVERY), n)
        for entry, x in zip(entries.tolist(), values, strict=True):
            groups[entry - 1] += [] if x is None else [x]
        other = kind.new()
        other.fold(entries, [array_of(values, arrow)], None)
        extra.absorb(EVERY, other.states(EVERY))
    states = extra.states(EVERY)
    assert states.type == kind.state_type
    sums, lost = kind.show(states, v.SUM)
    shown = 76 if digits == 76 else 38
    assert sums.type == (pa.decimal256 if digits == 76 else pa.decimal128)(shown, scale)
    means, none_lost = kind.show(states, v.MEAN)
    assert none_lost == {}
    for i, (values, total, mean) in enumerate(
        zip(groups, unscaled_of(sums), means.to_pylist(), strict=True)
    ):
        if not values:
            assert (total, mean) == (None, None)
            continue
        if abs(sum(values)) >= 10**shown:
            assert total is None
            assert lost.pop(i) == f"{Decimal(sum(values)).scaleb(-scale, Context(prec=200)):f}"
        else:
            assert total == sum(values)
        exact = Fraction(sum(values), len(values)) / Fraction(10) ** scale
        assert np.float64(mean).tobytes() == np.float64(float(exact) + 0.0).tobytes()
    assert lost == {}


def test_required_a_sum_of_one_digit_too_many_is_a_plain_text() -> None:
    arrow = pa.decimal128(38, 2)
    kind = decimal_kind(v.Aggregate("a", v.SUM, "x"), pa.schema([("x", arrow)]))
    assert kind is not None
    extra = kind.new()
    most = 10**38 - 1
    extra.fold(np.array([1, 1, 2, 2]), [array_of([most, 1, -most, -2], arrow)], None)
    shown, lost = kind.show(extra.states(np.array([1, 2])), v.SUM)
    assert shown.to_pylist() == [None, None]
    assert lost == {0: "1" + "0" * 36 + ".00", 1: "-1" + "0" * 36 + ".01"}


@pytest.mark.parametrize("arrow", [pa.int64(), pa.float64(), pa.string()])
def test_required_other_types_are_left_to_words(arrow: Any) -> None:
    schema = pa.schema([("x", arrow)])
    assert decimal_kind(v.Aggregate("a", v.SUM, "x"), schema) is None
