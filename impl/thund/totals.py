"""Exact sums, and sums of squares, of one window's groups: words in kernels, rare rows in integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thund import kernel_totals as kernel
from thund.columns import build, null_mask, plain_type, raw
from thund.words import Array

FLOAT, INTEGER, UNSIGNED, DECIMAL = "float", "integer", "unsigned", "decimal"

STATE = pa.struct(
    [
        ("count", pa.int64()),
        ("base", pa.int8()),
        ("exponent", pa.int64()),
        ("sum", pa.large_binary()),
        ("squares", pa.large_binary()),
        ("specials", pa.int8()),
    ]
)
"""A partial: `count` values that are not null; their exact sum is `sum` * base**exponent, that of
their squares `squares` * base**(2 * exponent) (null where no variance is asked for), both
two's complement integers, little-endian. specials: bits 1 for a NaN, 2 for +inf, 4 for -inf seen;
these count, but add nothing."""

_BASES = (1 << kernel.SPECIAL_SHIFT) - 1
_LEAST = 64


@dataclass(frozen=True, slots=True)
class Shape:
    """What a column's values are, and how many words their sum and their squares take."""

    kind: str
    sums: int
    squares: int
    scale: int = 0

    @property
    def base(self) -> int:
        """Of the exponent."""
        return 10 if self.kind == DECIMAL else 2

    @property
    def unit(self) -> int:
        """The exponent of base in which rare numbers are kept."""
        return kernel.UNIT if self.kind == FLOAT else -self.scale

    @property
    def size(self) -> int:
        """Words of a line."""
        return kernel.SUM + self.sums + self.squares


def shape_of(kind: Any, *, squares: bool) -> Shape | None:
    """How to add the values of a type; None where they are no numbers.

    Each sum has room for 2**63 rows.
    """
    kind = plain_type(kind)
    if pa.types.is_floating(kind):
        return Shape(FLOAT, 4, 7 if squares else 0)
    if pa.types.is_integer(kind):
        return Shape(UNSIGNED if pa.types.is_uint64(kind) else INTEGER, 2, 3 if squares else 0)
    if pa.types.is_decimal(kind):
        wide = kind.bit_width != 128  # the sums of narrower ones are shown as the widest, too
        return Shape(DECIMAL, 5 if wide else 3, 5 if squares else 0, kind.scale)
    return None


@dataclass(frozen=True, slots=True)
class Parts:
    """Partials taken apart.

    Shape: lines (groups, words). far: sum and squares, in the unit of rare numbers, of the groups
    whose line has none.
    """

    lines: NDArray[np.int64]
    far: dict[int, tuple[int, int]]


class Totals:
    """The exact totals of groups, by the number of their entry.

    Law: G4.
    Cost: 5 to 15 ns a row; 1 microsecond for a double 2**64 times larger or smaller than usual.
    """

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._squares = kernel.SUM + shape.sums
        self._words: NDArray[np.int64] = np.zeros((_LEAST, shape.size), np.int64)
        self._far: dict[int, tuple[int, int]] = {}

    def _reserve(self, entries: NDArray[np.int64]) -> None:
        need = int(entries.max()) + 1
        if need > len(self._words):
            words = np.zeros((max(need, 2 * len(self._words)), self._shape.size), np.int64)
            words[: len(self._words)] = self._words
            self._words = words

    def fold(self, entries: NDArray[np.int64], column: Any) -> None:
        """Add the values of a column, without its nulls, to the groups of its rows."""
        mask = null_mask(column)
        if mask is not None:
            entries, column = entries[~mask], column.drop_null()
        if not len(entries):
            return
        self._reserve(entries)
        entries = np.ascontiguousarray(entries)
        rare = np.empty(len(entries), np.int64)
        if self._shape.kind == FLOAT:
            values = raw(column).astype(np.float64, copy=False)
            bits = _locked(values.view(np.int64))
            n = kernel.fold_floats(entries, bits, self._words, self._squares, rare)
            for i in rare[:n].tolist():
                self._add_float(int(entries[i]), int(bits[i]))
            return
        words = _words(raw(column))
        unsigned = self._shape.kind == UNSIGNED
        n = kernel.fold_integers(entries, words, unsigned, self._words, self._squares, rare)
        for i in rare[:n].tolist():
            x = int.from_bytes(words[i].tobytes(), "little", signed=True)
            self._add_far(int(entries[i]), x, x * x)
            self._words[entries[i], kernel.COUNT] += 1

    def _add_far(self, entry: int, total: int, squares: int) -> None:
        a, b = self._far.get(entry, (0, 0))
        self._far[entry] = (a + total, b + squares)

    def _add_float(self, entry: int, bits: int) -> None:
        """A double that the words cannot take; they are made anew around one that is larger."""
        exponent = max(1, bits >> 52 & 0x7FF)
        exact = bits & (1 << 52) - 1 | (1 << 52 if bits >> 52 & 0x7FF else 0)
        line = self._words[entry]
        line[kernel.COUNT] += 1
        if exponent >= (int(line[kernel.HEAD]) & _BASES) - 1 + kernel.SPAN:
            self._raise_base(entry, exponent)
        total = exact << exponent
        self._add_far(entry, -total if bits < 0 else total, exact * exact << 2 * exponent)

    def _raise_base(self, entry: int, exponent: int) -> None:
        """Move the words of a group to its rare numbers, and let larger ones into the words."""
        line = self._words[entry]
        self._add_far(entry, *line_sums(line, self._shape))
        line[kernel.HEAD] = line[kernel.HEAD] & ~_BASES | (kernel.base_of(exponent) + 1)
        line[kernel.SUM :] = 0

    def absorb(self, entries: NDArray[np.int64], states: Any) -> None:
        """Add partials to groups."""
        mask = null_mask(states)
        if mask is not None:
            entries, states = entries[~mask], states.drop_null()
        if not len(entries):
            return
        self._reserve(entries)
        parts = apart(states, self._shape)
        entries = np.ascontiguousarray(entries)
        rare = np.empty(len(entries), np.int64)
        n = kernel.merge(entries, parts.lines, self._words, self._squares, rare)
        far = dict(parts.far)
        for i in rare[:n].tolist():
            line, theirs = self._words[entries[i]], parts.lines[i]
            line[kernel.COUNT] += theirs[kernel.COUNT]
            line[kernel.HEAD] |= theirs[kernel.HEAD] & ~_BASES
            far[i] = line_sums(theirs, self._shape)
        for i, sums in far.items():
            self._add_far(int(entries[i]), *sums)

    def states(self, entries: NDArray[np.int64]) -> Any:
        """The partials of groups; null for a group without values."""
        if len(entries):
            self._reserve(entries)
        lines, shape = self._words[entries], self._shape
        n, exponent = len(lines), np.full(len(lines), shape.unit, np.int64)
        if shape.kind == FLOAT:
            exponent += _base(lines)
        sums, squares = (
            _binaries(lines[:, kernel.SUM : self._squares]),
            pa.nulls(n, pa.large_binary()),
        )
        if shape.squares:
            squares = _binaries(lines[:, self._squares :])
        if self._far:
            far = {}
            for i, entry in enumerate(entries.tolist()):
                if entry in self._far:
                    (a, b), (c, d) = self._far[entry], line_sums(lines[i], shape)
                    far[i] = (a + c, b + d)
            exponent[list(far)] = shape.unit
            sums = _replaced(sums, {i: _bytes(x, 8 * shape.sums + 1) for i, (x, _) in far.items()})
            squares = _replaced(squares, {i: _bytes(x, 1) for i, (_, x) in far.items()})
        specials = (lines[:, kernel.HEAD] >> np.int64(kernel.SPECIAL_SHIFT)).astype(np.int8)
        columns = [
            build(pa.int64(), lines[:, kernel.COUNT]),
            build(pa.int8(), np.full(n, shape.base, np.int8)),
            build(pa.int64(), exponent),
            sums,
            squares,
            build(pa.int8(), specials),
        ]
        empty = pa.array(lines[:, kernel.COUNT] == 0)
        return pa.StructArray.from_arrays(columns, fields=list(STATE), mask=empty)


def apart(states: Any, shape: Shape) -> Parts:
    """Partials, none of them null, as lines of words."""
    n, squares = len(states), kernel.SUM + shape.sums
    lines = np.zeros((n, shape.size), np.int64)
    lines[:, kernel.COUNT] = raw(states.field("count"))
    exponents = raw(states.field("exponent"))
    sizes, near = _lengths(states.field("sum")), slice(None)
    far = np.flatnonzero(sizes != 8 * shape.sums)
    chosen = states
    if len(far):
        near = sizes == 8 * shape.sums
        chosen = states.filter(pa.array(near))
    lines[near, kernel.SUM : squares] = _words_of(chosen.field("sum"), shape.sums)
    if shape.squares:
        lines[near, squares:] = _words_of(chosen.field("squares"), shape.squares)
    if shape.kind == FLOAT:
        specials = raw(states.field("specials")).astype(np.int64)
        lines[:, kernel.HEAD] = specials << np.int64(kernel.SPECIAL_SHIFT)
        valued = lines[:, kernel.SUM :].any(axis=1)
        lines[:, kernel.HEAD] |= np.where(valued, exponents - kernel.UNIT + 1, 0)
    return Parts(lines, {i: _far_sums(states, i, shape) for i in far.tolist()})


def _far_sums(states: Any, i: int, shape: Shape) -> tuple[int, int]:
    total = int.from_bytes(states.field("sum")[i].as_py(), "little", signed=True)
    squares = states.field("squares")[i].as_py() or b""
    return total, int.from_bytes(squares, "little", signed=True)


def line_sums(line: NDArray[np.int64], shape: Shape) -> tuple[int, int]:
    """Sum and squares of a line, in the unit of rare numbers."""
    squares, shift = kernel.SUM + shape.sums, 0
    if shape.kind == FLOAT:
        shift = max(0, (int(line[kernel.HEAD]) & _BASES) - 1)
    total = int.from_bytes(line[kernel.SUM : squares].tobytes(), "little", signed=True)
    square = int.from_bytes(line[squares:].tobytes(), "little", signed=True)
    return total << shift, square << 2 * shift


def _base(lines: NDArray[np.int64]) -> NDArray[np.int64]:
    bases: NDArray[np.int64] = np.maximum((lines[:, kernel.HEAD] & _BASES) - 1, 0)
    return bases


def _words(values: Array) -> NDArray[np.int64]:
    """Integers of any width as signed words, low word first."""
    if values.dtype == np.uint64:
        values = values.view(np.int64)
    words = values.astype(np.int64, copy=False)
    return _locked(words if words.ndim == 2 else words.reshape(-1, 1))


def _locked(words: NDArray[np.int64]) -> NDArray[np.int64]:
    """For reading alone: what Arrow holds is such, and a kernel is compiled for each of the two."""
    locked = np.ascontiguousarray(words).view()
    locked.flags.writeable = False
    return locked


def _bytes(x: int, least: int) -> bytes:
    return x.to_bytes(max(least, x.bit_length() // 8 + 1), "little", signed=True)


def _binaries(words: NDArray[np.int64]) -> Any:
    """Each row of words as bytes."""
    n, width = words.shape
    offsets = np.arange(n + 1, dtype=np.int64) * (8 * width)
    data = pa.py_buffer(np.ascontiguousarray(words))
    return pa.Array.from_buffers(pa.large_binary(), n, [None, pa.py_buffer(offsets), data])


def _replaced(column: Any, values: dict[int, bytes]) -> Any:
    """A column of bytes with other values in some rows."""
    mask = np.zeros(len(column), np.bool_)
    mask[list(values)] = True
    return pc.replace_with_mask(
        column, pa.array(mask), pa.array(values.values(), pa.large_binary())
    )


def _lengths(column: Any) -> NDArray[np.int64]:
    lengths: NDArray[np.int64] = pc.binary_length(column).to_numpy().astype(np.int64)
    return lengths


def _words_of(column: Any, width: int) -> NDArray[np.int64]:
    """Bytes, all of so many words, as rows of words."""
    data = column.buffers()
    start = int(np.frombuffer(data[1], np.int64, 1, 8 * column.offset)[0]) if len(column) else 0
    return np.frombuffer(data[2] or b"", np.int64, len(column) * width, start).reshape(-1, width)
