"""min and max of texts, bytes and decimals, which have no order as 64-bit words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thund.columns import address, is_bytes, is_text, pack, plain_type, raw, unviewed
from thund.extras import Extra, Places, grown
from thund.kernel_least import gather, least
from thund_contract import vocabulary as v

_SLACK = 1 << 16
"""Bytes of replaced values that may stay, beside as many as the others had."""
_SIGN_BIT = 0x80


class ExtremeKind:
    """The least or the largest value: texts by code point, bytes by byte, decimals by number.

    State: the value, in the column's type (a view's as a large text or bytes); null for none.

    Law: G4.
    """

    def __init__(self, operation: str, column: str, kind: Any) -> None:
        self.label = f"{operation}({column})"
        self.state_type = unviewed(kind)
        self._kind = kind
        self._sign = 1 if operation == v.MIN else -1

    def new(self) -> Extra:
        """The partials of a new table."""
        return _Extremes(self._sign, self.state_type)

    def show(self, states: Any, operation: str) -> tuple[Any, dict[int, str]]:
        """The value itself."""
        return states.cast(self._kind), {}


def extreme_kind(aggregate: v.Aggregate, schema: Any) -> ExtremeKind | None:
    """Texts, bytes and decimals; all else that has an order is kept in words."""
    kind = plain_type(schema.field(aggregate.column).type)
    if not (is_text(kind) or is_bytes(kind) or pa.types.is_decimal(kind)):
        return None
    return ExtremeKind(aggregate.operation, str(aggregate.column), kind)


class _Extremes:
    """Per entry a string of bytes; that of a decimal has the order of the numbers.

    Cost: 10 to 40 ns a row.
    """

    def __init__(self, sign: int, kind: Any) -> None:
        self._sign, self._kind = sign, kind
        self._place: NDArray[np.int64] = np.zeros(16, np.int64)
        self._length: NDArray[np.int64] = np.full(16, -1, np.int64)
        self._arena: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._used = 0
        self._limit = _SLACK

    def fold(self, entries: NDArray[np.int64], columns: Sequence[Any], places: Places) -> None:
        """The values that are not null."""
        self.absorb(entries, columns[0])

    def absorb(self, entries: NDArray[np.int64], states: Any) -> None:
        """As values."""
        if states.null_count:
            valid = states.is_valid()
            entries, states = entries[np.asarray(valid)], states.filter(valid)
        if len(entries) == 0:
            return
        self._make_room(int(entries.max()) + 1)
        offsets, data, _keep = _encode(states)
        self._arena = grown(self._arena, self._used + int(offsets[-1] - offsets[0]), 0)
        self._used = least(
            np.ascontiguousarray(entries),
            np.uint64(address(offsets)),
            np.uint64(data),
            self._sign,
            self._place,
            self._length,
            self._arena,
            self._used,
        )
        if self._used > self._limit:
            self._compact()

    def _make_room(self, size: int) -> None:
        self._place = grown(self._place, size, 0)
        self._length = grown(self._length, size, -1)

    def _compact(self) -> None:
        """Drop the bytes of replaced values; as many may come before the next time."""
        lengths = np.maximum(self._length, 0)
        self._arena = self._gathered(np.arange(len(lengths)))
        self._place, self._used = np.cumsum(lengths) - lengths, len(self._arena)
        self._limit = 2 * self._used + _SLACK

    def _gathered(self, entries: NDArray[np.int64]) -> NDArray[np.uint8]:
        out = np.empty(int(np.maximum(self._length[entries], 0).sum()), np.uint8)
        gather(np.ascontiguousarray(entries), self._place, self._length, self._arena, out)
        return out

    def states(self, entries: NDArray[np.int64]) -> Any:
        """The values so far."""
        self._make_room(int(entries.max(initial=0)) + 1)
        lengths = self._length[entries]
        offsets = np.zeros(len(entries) + 1, np.int64)
        np.cumsum(np.maximum(lengths, 0), out=offsets[1:])
        return _decode(self._kind, offsets, self._gathered(entries), lengths >= 0)


def _encode(column: Any) -> tuple[NDArray[np.int64], int, Any]:
    """Where the bytes of each value begin and end, the address of the bytes, and what holds them."""
    if pa.types.is_decimal(column.type):
        words = raw(column)
        data = words.view(np.uint8).reshape(len(words), -1)[:, ::-1].copy()
        data[:, 0] ^= _SIGN_BIT
        return np.arange(len(words) + 1) * data.shape[1], address(data), data
    if pa.types.is_fixed_size_binary(column.type):
        column = column.cast(pa.binary())
    column = column.cast(pa.large_binary())
    _, places, data = column.buffers()
    offsets = np.frombuffer(places, np.int64, len(column) + 1, 8 * column.offset)
    return offsets, data.address if data else 0, column


def _decode(
    kind: Any, offsets: NDArray[np.int64], data: NDArray[np.uint8], valid: NDArray[np.bool_]
) -> Any:
    n = len(valid)
    if pa.types.is_decimal(kind):
        width = kind.bit_width // 8
        values = np.zeros((n, width), np.uint8)
        values[valid] = data.reshape(-1, width)[:, ::-1]
        values[valid, -1] ^= _SIGN_BIT
        return pa.Array.from_buffers(kind, n, [pack(valid), pa.py_buffer(values)])
    wide = pa.large_binary() if is_bytes(kind) else pa.large_utf8()
    buffers = [pack(valid), pa.py_buffer(offsets), pa.py_buffer(data)]
    column = pa.Array.from_buffers(wide, n, buffers)
    if pa.types.is_fixed_size_binary(kind):
        column = column.cast(pa.binary())
    return column.cast(kind)
