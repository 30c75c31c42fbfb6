"""Key columns as fixed 64-bit words, exact both ways, and without a dictionary that outlives them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thund.columns import (
    address,
    build,
    is_bytes,
    is_text,
    narrow,
    null_mask,
    pack,
    plain,
    plain_type,
    raw,
    validity,
)
from thund.kernel_find import INLINE_TEXT
from thund.kernel_text import decode_text, encode_text, text_offsets
from thund.words import Array
from thund_contract.errors import CallerError

MAX_KEYS = 63
"""Key columns at most: the nulls of one key fit one word."""

_FIXED = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_timestamp,
    pa.types.is_duration,
    pa.types.is_decimal,
)
_QUIET_NAN = np.int64(0x7FF8 << 48)
_ZERO = np.zeros(2, np.int64)


@dataclass(frozen=True, slots=True)
class KeyWords:
    """The key words of one batch.

    words: one stream per word, as (array, stride); the nulls of all columns, one bit each, come
    last where a layout has them. where: per text column the addresses of its texts, or None if
    none is long. keep: what the addresses point into.
    """

    words: list[tuple[Array, int]]
    where: list[NDArray[np.int64] | None]
    nulls: NDArray[np.int64] | None
    keep: list[Any]


class Keys:
    """The key of a window operator: which columns, and how many words each takes.

    Equality is that of all words and bytes. Null equals null, NaN equals NaN, -0.0 equals 0.0.
    Law: G4, F3.
    Raises: CallerError for a type that cannot be a key.
    """

    def __init__(self, names: Sequence[str], types: Sequence[Any]) -> None:
        self.names = tuple(names)
        self.types = tuple(plain_type(kind) for kind in types)
        for name, kind in zip(self.names, self.types, strict=True):
            if not usable(kind):
                raise CallerError(
                    f"key column {name!r} has type {kind}",
                    allowed="integers, floats, booleans, texts, bytes, dates, times, timestamps, "
                    "durations, decimals, and dictionaries of these",
                    where=f"key {name!r}",
                    action="cast the column, or leave it out of the key",
                )
        if len(self.names) > MAX_KEYS:
            raise CallerError(
                f"{len(self.names)} key columns",
                allowed=f"at most {MAX_KEYS}",
                where="key",
                action="leave some columns out of the key",
            )
        self.widths = tuple(_words_of(kind) for kind in self.types)
        self.first = tuple(sum(self.widths[:c]) for c in range(len(self.widths)))
        self.words = max(1, sum(self.widths))
        """Words of a key without nulls; a key of no columns, or of nulls only, is one zero."""
        self.text = tuple(f for f, kind in zip(self.first, self.types, strict=True) if _text(kind))

    def encode(self, columns: Sequence[Any]) -> KeyWords:
        """The key words of some rows.

        Cost: nothing for 64-bit columns without nulls, else about 1 ns a row; texts 5 to 15 ns.
        """
        out = KeyWords([], [], None, [])
        nulls: NDArray[np.int64] | None = None
        for c, source in enumerate(columns):
            column = plain(source)
            mask = null_mask(column)
            if mask is not None:
                bit = mask.astype(np.int64) << np.int64(c)
                nulls = bit if nulls is None else nulls | bit
            if pa.types.is_null(column.type):
                continue
            if _text(column.type):
                _encode_text(column, out)
            else:
                out.words.extend(_encode_fixed(column, mask))
        if not out.words:
            out.words.append((_ZERO, 0))
        return KeyWords(out.words, out.where, nulls, out.keep)

    def decode(
        self,
        words: NDArray[np.int64],
        nulls: NDArray[np.int64] | None,
        places: NDArray[np.int64],
        arena: NDArray[np.uint8],
    ) -> list[Any]:
        """The key columns of some groups, in the types of the source (a dictionary's values).

        Shape: words (words, groups); places (text columns, groups) into the arena.
        """
        out = []
        for c, kind in enumerate(self.types):
            valid = None if nulls is None else (nulls >> np.int64(c)) & 1 == 0
            first = self.first[c]
            if pa.types.is_null(kind):
                out.append(pa.nulls(words.shape[1]))
            elif _text(kind):
                place = places[self.text.index(first)]
                out.append(_decode_text(kind, words[first : first + 2], place, arena, valid))
            elif self.widths[c] > 1:
                block = np.ascontiguousarray(words[first : first + self.widths[c]].T)
                out.append(build(kind, block, valid) if len(block) else pa.array([], kind))
            else:
                out.append(build(kind, narrow(kind, words[first]), valid))
        return out


def _text(kind: Any) -> bool:
    return is_text(kind) or is_bytes(kind)


def usable(kind: Any) -> bool:
    """Whether values of a type can be compared as keys are."""
    return _text(kind) or any(test(kind) for test in (*_FIXED, pa.types.is_null))


def _words_of(kind: Any) -> int:
    if pa.types.is_null(kind):
        return 0
    if _text(kind):
        return 2
    return max(1, int(kind.bit_width) // 64)


def _encode_fixed(column: Any, mask: NDArray[np.bool_] | None) -> list[tuple[Array, int]]:
    values = raw(column)
    if values.dtype.kind == "f":
        wide = values.astype(np.float64) + 0.0  # -0.0 becomes 0.0
        words = wide.view(np.int64)
        words[np.isnan(wide)] = _QUIET_NAN
    elif values.dtype == np.uint64:
        words = values.view(np.int64)
    else:
        words = values.astype(np.int64, copy=False)
    if mask is not None:
        words = words.copy()
        words[mask] = 0
    if words.ndim == 1:
        return [(words, 1)]
    return [(words[:, w], words.shape[1]) for w in range(words.shape[1])]


def _encode_text(column: Any, out: KeyWords) -> None:
    kind = column.type
    wide = pa.large_binary() if is_bytes(kind) else pa.large_utf8()
    if pa.types.is_fixed_size_binary(kind):
        column = column.cast(pa.binary())
    if column.type != wide:
        column = column.cast(wide)
    bits, places, data = column.buffers()
    n = len(column)
    word0, word1, where = (np.empty(n, np.int64) for _ in range(3))
    bitmap, offset = validity(column)
    if n:
        long = encode_text(
            np.uint64(places.address + 8 * column.offset),
            n,
            np.uint64(data.address if data else 0),
            np.uint64(data.size if data else 0),
            np.uint64(bitmap),
            np.uint64(offset),
            word0,
            word1,
            where,
        )
    else:
        long = 0
    out.words.extend([(word0, 1), (word1, 1)])
    out.where.append(where if long else None)
    out.keep.extend([bits, places, data])


def _decode_text(
    kind: Any,
    words: NDArray[np.int64],
    place: NDArray[np.int64],
    arena: NDArray[np.uint8],
    valid: NDArray[np.bool_] | None,
) -> Any:
    word0, word1 = words
    n = len(word0)
    offsets = np.empty(n + 1, np.int64)
    total = text_offsets(word0, offsets)
    data = np.empty(total + INLINE_TEXT + 4, np.uint8)
    decode_text(word0, word1, place, arena, offsets, data)
    wide = pa.large_binary() if is_bytes(kind) else pa.large_utf8()
    column = pa.Array.from_buffers(
        wide, n, [pack(valid), pa.py_buffer(offsets), pa.py_buffer(data)]
    )
    if pa.types.is_fixed_size_binary(kind):
        column = column.cast(pa.binary())
    return column if column.type == kind else column.cast(kind)


def stream_addresses(keys: KeyWords, *, nulls: bool, arena: bool) -> tuple[Array, Array, list[Any]]:
    """Addresses and strides of the streams that the kernel reads: words, nulls, then texts.

    nulls: whether the layout has a nulls word. arena: whether any text is long.
    """
    streams = list(keys.words)
    if nulls:
        streams.append((_ZERO, 0) if keys.nulls is None else (keys.nulls, 1))
    if arena:
        streams.extend((_ZERO, 0) if w is None else (w, 1) for w in keys.where)
    where = np.array([address(a) for a, _ in streams], np.uint64)
    stride = np.array([s for _, s in streams], np.uint64)
    return where, stride, streams
