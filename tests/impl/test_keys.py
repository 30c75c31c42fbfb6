"""Key columns to words and back, in every type, whole and in slices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from thund.keys import MAX_KEYS, Keys
from thund_contract.errors import CallerError

NO_ARENA = np.empty(0, np.uint8)


def through(column: Any) -> Any:
    """A column of short keys to words and back."""
    keys = Keys(["k"], [column.type])
    encoded = keys.encode([column])
    streams = [
        np.lib.stride_tricks.as_strided(a, (len(column),), (8 * s,)) for a, s in encoded.words
    ]
    assert all(where is None for where in encoded.where)
    words = np.array(streams, np.int64)
    places = np.zeros((len(keys.text), len(column)), np.int64)
    return keys.decode(words, encoded.nulls, places, NO_ARENA)[0]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, None, -(1 << 63), (1 << 63) - 1]),
        pa.array([0, (1 << 64) - 1, None], pa.uint64()),
        pa.array([-128, 127], pa.int8()),
        pa.array([0, 65535], pa.uint16()),
        pa.array([True, None, False]),
        pa.array([1.5, None, math.inf], pa.float32()),
        pa.array(np.array([1.5, -2.0], np.float16)),
        pa.array(["", "a", None, "twelve bytes"]),
        pa.array(["ä", None], pa.large_utf8()),
        pa.array(["view", None], pa.string_view()),
        pa.array([b"\x00", b"", None], pa.binary()),
        pa.array([b"\x00", b"", None], pa.binary_view()),
        pa.array([b"ab", None, b"\x00\x00"], pa.binary(2)),
        pa.array([1, None], pa.date32()),
        pa.array([86_400_000, None], pa.date64()),
        pa.array([1, None], pa.time32("s")),
        pa.array([1, None], pa.time64("ns")),
        pa.array([-1, None], pa.timestamp("ns", tz="Asia/Tokyo")),
        pa.array([-1, None], pa.duration("us")),
        pa.array(["1.5", None, "-2.5"]).cast(pa.decimal128(10, 1)),
        pa.array(["1", None, str(-(10**70))]).cast(pa.decimal256(71, 0)),
        pa.array(["5", None]).cast(pa.decimal64(18, 0)),
        pa.array(["5", None]).cast(pa.decimal32(9, 0)),
        pa.nulls(3),
    ],
    ids=lambda column: str(column.type),
)
def test_required_each_type_comes_back_as_it_went_in(column: Any) -> None:
    """Whole, as a slice, without rows, and (most of them) without nulls."""
    for piece in (column, column.slice(1), column.slice(len(column)), column.slice(0, 1)):
        back = through(piece)
        assert back.type == column.type
        back.validate(full=True)
        assert back.equals(piece)


def test_required_a_dictionary_comes_back_as_its_values() -> None:
    """With nulls among the indices and among the values."""
    values = pa.array(["a", None, "b"])
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None, 0], pa.int8()), values)
    back = through(column)
    assert back.type == pa.utf8()
    assert back.to_pylist() == ["a", None, "b", None, "a"]


def test_required_one_nan_and_one_zero() -> None:
    """All NaNs have the same words, and so have both zeros."""
    odd = np.array([0x7FF8 << 48, 0x7FF8 << 48 | 1, 0xFFF8 << 48, 0, 1 << 63], np.uint64)
    words = Keys(["k"], [pa.float64()]).encode([pa.array(odd.view(np.float64))]).words[0][0]
    assert words.tolist() == [0x7FF8 << 48] * 3 + [0, 0]


def test_required_what_a_null_covers_is_no_part_of_the_key() -> None:
    """Values under nulls are zero in the words, whatever the memory holds."""
    data = pa.py_buffer(np.array([7, 8, 9], np.int64))
    column = pa.Array.from_buffers(pa.int64(), 3, [pa.py_buffer(b"\x02"), data])
    encoded = Keys(["k"], [pa.int64()]).encode([column])
    assert encoded.words[0][0].tolist() == [0, 8, 0]
    assert encoded.nulls is not None
    assert encoded.nulls.tolist() == [1, 0, 1]


def test_required_too_many_or_unusable_columns_are_refused() -> None:
    """A list is no key, and the nulls of a key fit one word."""
    with pytest.raises(CallerError, match="list"):
        Keys(["k"], [pa.list_(pa.int8())])
    with pytest.raises(CallerError, match="64 key columns"):
        Keys([f"k{i}" for i in range(MAX_KEYS + 1)], [pa.int8()] * (MAX_KEYS + 1))
