"""Identity of a result row: a hash of an unambiguous text of pipeline, operator, key and window."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thund.columns import address, is_bytes, is_text, null_mask, plain, raw
from thund.kernel_hash import BLOCK_BYTES, hash_rows
from thund.words import Array
from thund_contract.vocabulary import Config

ID_BYTES = 16
_BOOLEAN, _INTEGER, _FLOAT, _TEXT, _BYTES, _OTHER = (bytes([tag]) for tag in range(1, 7))
_QUIET_NAN = np.int64(0x7FF8 << 48)


@dataclass(slots=True)
class Encoded:
    """How the values of a column are written: prefix, length or none, bytes; null is the byte 0."""

    prefix: bytes
    has_length: bool
    offsets: NDArray[np.int64]
    data: Array
    valid: NDArray[np.bool_] | None
    keep: list[Any] = field(default_factory=list)

    def longest(self) -> int:
        """Bytes of the longest value, at most."""
        sizes = np.diff(self.offsets)
        return len(self.prefix) + 4 + (int(sizes.max()) if len(sizes) else 0)

    def line(self) -> list[int]:
        """What the kernel is told."""
        prefix = np.frombuffer(self.prefix or b"\0", np.uint8)
        self.keep.append(prefix)
        valid = 0 if self.valid is None else address(self.valid)
        where = [address(self.offsets), address(self.data), valid]
        return [address(prefix), len(self.prefix), int(self.has_length), *where]


def gar_ids(config: Config, keys: Sequence[Any], starts: NDArray[np.int64]) -> Any:
    """`_gar_id` of each row, as fixed_size_binary[16].

    blake2b, 16 bytes, of: text(pipeline), text(operator), u32 of the number of key columns, each
    key value, i64 of the window's start; little-endian, text(s) = u32 length and utf8. A value is
    00 for null, 01 and a byte for a boolean, 02 and 16 bytes for an integer, 03 and a double for a
    float, 04 and text for a text, 05, u32 length and bytes for bytes; for any other type 06,
    text(Arrow's name of the type), text(value): the integer that Arrow keeps for dates, times,
    timestamps and durations, the digits for decimals.

    Law: E5.
    Cost: about 0.3 microseconds a row.
    """
    head = _text(config.pipeline) + _text(config.operator) + struct.pack("<I", len(keys))
    encoded = [encode_values(key) for key in keys]
    lines = np.array([column.line() for column in encoded], np.int64).reshape(-1, 6)
    longest = len(head) + sum(column.longest() for column in encoded) + 8
    message = np.empty(longest + BLOCK_BYTES, np.uint8)
    out = np.empty(2 * len(starts), np.uint64)
    hash_rows(np.array(list(head), np.uint8), lines, starts, message, out)
    return pa.Array.from_buffers(pa.binary(ID_BYTES), len(starts), [None, pa.py_buffer(out)])


def encode_values(column: Any) -> Encoded:
    """How each value of a key column is written; no two values of any type are written alike.

    Law: E5.
    """
    column = plain(column)
    kind, mask = column.type, null_mask(column)
    valid = None if mask is None else ~mask
    if pa.types.is_null(kind):
        return _fixed(b"", np.zeros((len(column), 1), np.uint8), np.zeros(len(column), np.bool_))
    if pa.types.is_boolean(kind):
        return _fixed(_BOOLEAN, raw(column).reshape(-1, 1), valid)
    if pa.types.is_integer(kind):
        values = raw(column)
        low = values.astype(np.uint64).view(np.int64)
        high = np.zeros_like(low) if values.dtype.kind == "u" else low >> np.int64(63)
        return _fixed(_INTEGER, np.stack([low, high], axis=1), valid)
    if pa.types.is_floating(kind):
        doubles = raw(column).astype(np.float64) + 0.0  # -0.0 becomes 0.0
        bits = doubles.view(np.int64)
        bits[np.isnan(doubles)] = _QUIET_NAN
        return _fixed(_FLOAT, bits.reshape(-1, 1), valid)
    if is_text(kind):
        return _varying(_TEXT, column, valid)
    if is_bytes(kind):
        return _varying(_BYTES, column, valid)
    return _varying(_OTHER + _text(str(kind)), _texts(column), valid)


def _texts(column: Any) -> Any:
    """Values of other types as text."""
    if pa.types.is_decimal(column.type):
        return pa.array([None if x is None else str(x) for x in column.to_pylist()], pa.utf8())
    return pa.array(raw(column)).cast(pa.utf8())


def _fixed(prefix: bytes, values: Array, valid: NDArray[np.bool_] | None) -> Encoded:
    data = np.ascontiguousarray(values)
    width = data.itemsize * data.shape[1]
    offsets = np.arange(len(data) + 1, dtype=np.int64) * width
    return Encoded(prefix, False, offsets, data, valid)


def _varying(prefix: bytes, column: Any, valid: NDArray[np.bool_] | None) -> Encoded:
    if pa.types.is_fixed_size_binary(column.type):
        column = column.cast(pa.binary())
    column = column.cast(pa.large_binary() if is_bytes(column.type) else pa.large_utf8())
    _, places, data = column.buffers()
    n = len(column)
    offsets = np.zeros(1, np.int64)
    if places is not None:
        offsets = np.frombuffer(places, np.int64, n + 1, 8 * column.offset)
    held = (
        np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    )
    return Encoded(prefix, True, offsets, held, valid, [column])


def _text(value: str) -> bytes:
    """Length first, so that two texts never run into each other.

    Law: E5.
    """
    data = value.encode()
    return struct.pack("<I", len(data)) + data
