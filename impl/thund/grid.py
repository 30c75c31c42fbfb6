"""Grids that cut event time into cells, and the windows that lie over a cell.

A tumbling or calendar window is one cell. Hopping windows overlap: their starts and ends cut time
into cells, at most two a slide, and a window is the cells from its start to its end. So a row goes
into one cell only, however many windows hold it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from thund.columns import address
from thund.kernel_time import number_windows, sort_rows, span
from thund_contract.vocabulary import NEVER

Stretch = tuple[int, NDArray[np.uint32], int, int]
"""A cell's start, a list of rows (none for all of the batch), and the cell's stretch of it."""

_SPARSE = 4
"""Cells per row, from one end of a batch to the other, beyond which rows are sorted."""


class Grid(Protocol):
    """How event time is cut."""

    def cells(self, event_time: NDArray[np.int64], rows: NDArray[np.uint32]) -> list[Stretch]:
        """The cells that some rows are in, and their rows; rows: which, or none for all."""
        ...

    def is_cell(self, start: int) -> bool:
        """Whether a cell starts there."""
        ...

    def windows(self, cell: int, *, after: int = NEVER) -> list[tuple[int, int]]:
        """Start and end of each window over the cell that starts there, in order.

        Only those that end after a time.
        """
        ...

    def last_window(self, cell: int) -> tuple[int, int]:
        """The last one of them."""
        ...


class Slides:
    """Windows of `size` at each `slide`: hopping, or tumbling where both are equal.

    Law: G1, G2.
    """

    def __init__(self, *, size_ms: int, slide_ms: int, offset_ms: int) -> None:
        self._size, self._slide, self._offset = size_ms, slide_ms, offset_ms
        self._rest = size_ms % slide_ms
        self._sorter = Sorter()

    def cells(self, event_time: NDArray[np.int64], rows: NDArray[np.uint32]) -> list[Stretch]:
        """The cells that some rows are in, and their rows; rows: which, or none for all."""
        n = len(rows) or len(event_time)
        event_time = np.ascontiguousarray(event_time)
        bounds = np.array(bounds_of(event_time, rows), np.int64)
        first, last = self._numbers(bounds, rows[:0]).tolist()
        if first == last:
            return [(self._start(first), rows, 0, n)]
        numbers = self._numbers(event_time, rows)
        found = self._sorter.by_cell(numbers, rows, first=first, last=last)
        return [(self._start(number), order, lo, hi) for number, order, lo, hi in found]

    def _numbers(
        self, event_time: NDArray[np.int64], rows: NDArray[np.uint32]
    ) -> NDArray[np.int64]:
        """Cells are numbered in order; with a rest, two to a slide: from a start, from an end."""
        numbers = cell_numbers(event_time, rows, size_ms=self._slide, offset_ms=self._offset)
        if self._rest:
            ends = self._offset + self._rest
            numbers += cell_numbers(event_time, rows, size_ms=self._slide, offset_ms=ends) + 1
        return numbers

    def _start(self, number: int) -> int:
        if not self._rest:
            return number * self._slide + self._offset
        return number // 2 * self._slide + self._offset + number % 2 * self._rest

    def is_cell(self, start: int) -> bool:
        """Whether a cell starts there."""
        return (start - self._offset) % self._slide in (0, self._rest)

    def windows(self, cell: int, *, after: int = NEVER) -> list[tuple[int, int]]:
        """Start and end of each window over the cell that starts there, in order; see Grid."""
        first = (max(cell, after) - self._offset - self._size) // self._slide + 1
        last = (cell - self._offset) // self._slide
        starts = (n * self._slide + self._offset for n in range(first, last + 1))
        return [(start, start + self._size) for start in starts]

    def last_window(self, cell: int) -> tuple[int, int]:
        """The last window over the cell that starts there."""
        start = (cell - self._offset) // self._slide * self._slide + self._offset
        return start, start + self._size


class Sorter:
    """Rows sorted by cell, in memory that is kept from batch to batch: fresh memory is slow."""

    def __init__(self) -> None:
        self._order: NDArray[np.uint32] = np.empty(0, np.uint32)

    def by_cell(
        self, numbers: NDArray[np.int64], rows: NDArray[np.uint32], *, first: int, last: int
    ) -> list[Stretch]:
        """Per number, from first to last, its rows; rows: which, or none for all.

        Cost: the lists are valid up to the next call.
        """
        if last - first > _SPARSE * len(numbers):
            return _sorted(numbers, rows)
        if len(self._order) <= len(numbers):
            self._order = np.empty(len(numbers) + 1, np.uint32)
        ends = np.zeros(last - first + 1, np.int64)
        sort_rows(numbers, first, rows, ends, self._order)
        begins = [0, *ends[:-1].tolist()]
        stretches = zip(range(first, last + 1), begins, ends.tolist(), strict=True)
        return [(number, self._order, lo, hi) for number, lo, hi in stretches if lo < hi]


def _sorted(numbers: NDArray[np.int64], rows: NDArray[np.uint32]) -> list[Stretch]:
    by = np.argsort(numbers, kind="stable")
    order = (rows[by] if len(rows) else by).astype(np.uint32)
    cuts = [0, *(np.flatnonzero(np.diff(numbers[by])) + 1).tolist(), len(by)]
    return [(int(numbers[by[lo]]), order, lo, hi) for lo, hi in pairwise(cuts)]


def cell_numbers(
    event_time: NDArray[np.int64], rows: NDArray[np.uint32], *, size_ms: int, offset_ms: int
) -> NDArray[np.int64]:
    """The number n of each row's cell, which starts at n * size + offset: floor, not truncation.

    rows: which rows, or none for all.

    Law: G1.
    """
    n = len(rows) or len(event_time)
    numbers = np.empty(n, np.int64)
    number_windows(np.uint64(address(event_time)), rows, n, size_ms, offset_ms, numbers)
    return numbers


def bounds_of(times: NDArray[np.int64], rows: NDArray[np.uint32]) -> tuple[int, int]:
    """The lowest and the highest time of some rows, or of all."""
    if len(rows):
        times = times[rows]
    low, high = span(np.uint64(address(times)), len(times))
    return low, high
