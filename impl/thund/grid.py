"""The grid of tumbling windows: which window a row is in, and rows sorted by window."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from thund.columns import address
from thund.kernel_time import number_windows, sort_rows

_SPARSE = 4
"""Windows per row, from one end of a batch to the other, beyond which rows are sorted."""


def window_numbers(
    event_time: NDArray[np.int64], rows: NDArray[np.uint32], *, size_ms: int, offset_ms: int
) -> NDArray[np.int64]:
    """The number n of each row's window, which starts at n * size + offset: floor, not truncation.

    rows: which rows, or none for all.

    Law: G1.
    """
    n = len(rows) or len(event_time)
    numbers = np.empty(n, np.int64)
    number_windows(np.uint64(address(event_time)), rows, n, size_ms, offset_ms, numbers)
    return numbers


def rows_by_window(
    numbers: NDArray[np.int64],
    rows: NDArray[np.uint32],
    order: NDArray[np.uint32],
    *,
    first: int,
    last: int,
) -> list[tuple[int, NDArray[np.uint32], int, int]]:
    """Per window its number, the rows sorted by window, and its stretch of them.

    rows: which rows, or none for all. order: scratch for one row more than there are.
    """
    if last - first <= _SPARSE * len(numbers):
        ends = np.zeros(last - first + 1, np.int64)
        sort_rows(numbers, first, rows, ends, order)
        begins = [0, *ends[:-1].tolist()]
        stretches = zip(range(first, last + 1), begins, ends.tolist(), strict=True)
        return [(number, order, lo, hi) for number, lo, hi in stretches if lo < hi]
    by = np.argsort(numbers, kind="stable")
    order = (rows[by] if len(rows) else by).astype(np.uint32)
    cuts = [0, *(np.flatnonzero(np.diff(numbers[by])) + 1).tolist(), len(by)]
    return [(int(numbers[by[lo]]), order, lo, hi) for lo, hi in pairwise(cuts)]
