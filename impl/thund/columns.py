"""Arrow columns as plain memory: values, validity bits and addresses, and back."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thund.words import Array

_UNSIGNED = (pa.types.is_uint8, pa.types.is_uint16, pa.types.is_uint32, pa.types.is_uint64)
_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_BYTES = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
)
_TYPES_KEPT = 1024


def address(array: Array) -> int:
    """Where the array's first element lies."""
    where: int = array.__array_interface__["data"][0]
    return where


def plain_type(kind: Any) -> Any:
    """The type of the values: a dictionary's own value type."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def plain(column: Any) -> Any:
    """The column with its dictionary decoded, if it has one."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def unviewed(kind: Any) -> Any:
    """A type of the same values whose rows Arrow can take: it cannot take those of a view."""
    if pa.types.is_string_view(kind):
        return pa.large_utf8()
    return pa.large_binary() if pa.types.is_binary_view(kind) else kind


def picked(column: Any, rows: Any) -> Any:
    """Some rows of a column: a slice, or their indices."""
    if isinstance(rows, slice):
        return column.slice(rows.start, rows.stop - rows.start)
    return column.take(pa.array(rows))


@lru_cache(_TYPES_KEPT)
def is_text(kind: Any) -> bool:
    """Texts of any Arrow layout."""
    return any(test(kind) for test in _TEXTS)


@lru_cache(_TYPES_KEPT)
def is_bytes(kind: Any) -> bool:
    """Byte strings of any Arrow layout."""
    return any(test(kind) for test in _BYTES)


@lru_cache(_TYPES_KEPT)
def memory(kind: Any) -> tuple[np.dtype[Any], int]:
    """How a fixed-width type lies in memory: numpy's type, and how many of them make a value."""
    width = kind.bit_width
    if pa.types.is_boolean(kind):
        return np.dtype("u1"), 1
    if width > 64:
        return np.dtype("i8"), width // 64
    sign = "u" if any(test(kind) for test in _UNSIGNED) else "i"
    return np.dtype(f"{'f' if pa.types.is_floating(kind) else sign}{width // 8}"), 1


def raw(column: Any) -> Array:
    """The values of a fixed-width column as they lie in memory; what a null covers is unspecified.

    Shape: numbers of the column's width; for 128 and 256 bits (rows, words).
    """
    kind, n = column.type, len(column)
    if pa.types.is_boolean(kind):
        return np.asarray(column.cast(pa.uint8()).fill_null(0).to_numpy(zero_copy_only=False))
    dtype, words = memory(kind)
    data = column.buffers()[1]
    if data is None:
        flat = np.zeros(n * words, dtype)
    else:
        start = column.offset * words * dtype.itemsize
        flat = np.frombuffer(data, dtype, n * words, start)
    return flat if words == 1 else flat.reshape(n, words)


def validity(column: Any) -> tuple[int, int]:
    """Address and bit offset of the validity bits; address 0 where nothing is null."""
    if column.null_count == 0:
        return 0, 0
    bits = column.buffers()[0]
    return bits.address, column.offset


def null_mask(column: Any) -> NDArray[np.bool_] | None:
    """Which rows are null; None where none is."""
    if column.null_count == 0:
        return None
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False))


def pack(valid: NDArray[np.bool_] | None) -> Any:
    """Arrow's validity buffer."""
    return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))


def build(kind: Any, values: Array, valid: NDArray[np.bool_] | None = None) -> Any:
    """An Arrow array of a fixed-width type from its raw values."""
    if valid is not None and bool(valid.all()):
        valid = None
    n = len(values)
    if pa.types.is_boolean(kind):
        bits = pa.py_buffer(np.packbits(values.astype(np.bool_), bitorder="little"))
        return pa.Array.from_buffers(kind, n, [pack(valid), bits])
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(kind, n, [pack(valid), data])


def narrow(kind: Any, words: NDArray[np.int64]) -> Array:
    """64-bit words as raw values of the type's width (floats from the bits of doubles)."""
    dtype, _ = memory(kind)
    values: Array = words.view(np.float64) if dtype.kind == "f" else words
    return values.astype(dtype)
