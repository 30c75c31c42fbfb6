"""Arrow columns as plain Python values, which compare and hash as the engine's values do, and back.

Dates, times, timestamps, durations and decimals are the integers that Arrow keeps for them.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from thund.columns import is_bytes, is_text, null_mask, raw

Value = Any
"""None, bool, int, float (one NaN, the object math.nan), str or bytes."""

_NUMBERED = (
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_timestamp,
    pa.types.is_duration,
    pa.types.is_decimal,
)
_PLAIN = (pa.types.is_integer, pa.types.is_floating, is_text, is_bytes)


def is_numbered(kind: Any) -> bool:
    """Whether an integer stands for a value."""
    return any(test(kind) for test in _NUMBERED)


def is_ordered(kind: Any) -> bool:
    """Whether min and max have an order for the type."""
    return is_numbered(kind) or any(test(kind) for test in _PLAIN)


def is_scalar(kind: Any) -> bool:
    """Whether the type has values here: all but null, intervals and nested types."""
    return is_ordered(kind) or bool(pa.types.is_boolean(kind))


def values_of(column: Any) -> list[Value]:
    """The values of a column of a scalar type.

    Cost: 20 to 100 ns a row.
    """
    kind, mask = column.type, null_mask(column)
    if is_text(kind) or is_bytes(kind):
        values: list[Value] = column.to_pylist()
        return values
    numbers = raw(column)
    if numbers.ndim == 2:
        width = numbers.shape[1] * 8
        data = numbers.tobytes()
        pieces = (data[i : i + width] for i in range(0, len(data), width))
        values = [int.from_bytes(piece, "little", signed=True) for piece in pieces]
    elif numbers.dtype.kind == "f":
        values = [x if x == x else math.nan for x in numbers.tolist()]  # noqa: PLR0124 - finds NaN
    elif pa.types.is_boolean(kind):
        values = numbers.astype(np.bool_).tolist()
    else:
        values = numbers.tolist()
    if mask is not None:
        for i in np.flatnonzero(mask).tolist():
            values[i] = None
    return values


def column_of(values: Sequence[Value], kind: Any) -> Any:
    """The column of some values, in a scalar type that they fit."""
    if not is_numbered(kind):
        return pa.array(values, kind)
    width = kind.bit_width // 8
    data = b"".join((x or 0).to_bytes(width, "little", signed=True) for x in values)
    valid = np.packbits(np.array([x is not None for x in values], np.bool_), bitorder="little")
    buffers = [pa.py_buffer(valid), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, len(values), buffers)


def same(value: Value) -> Value:
    """One value for those that keys hold equal: 0.0 for -0.0."""
    return value + 0.0 if isinstance(value, float) and value == 0.0 else value


def rank(value: Value) -> Any:
    """What to compare in the order of min and max: -inf < ... < -0.0 < 0.0 < ... < inf < NaN."""
    if not isinstance(value, float):
        return value
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits if bits >= 0 else bits ^ 0x7FFFFFFFFFFFFFFF


def ranks(values: Iterable[Value]) -> tuple[Any, ...]:
    """What to compare of several values, the first one first."""
    return tuple(map(rank, values))
