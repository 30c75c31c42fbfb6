"""The two compiled loops of a source: is a delivery in the log's order, and which row comes next.

They know offsets and order keys only. Constants stay in this file: numba bakes them into its cache.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

_I32 = types.Array(types.int32, 1, "C", readonly=True)
_I64 = types.Array(types.int64, 1, "C", readonly=True)
_I64_OUT = types.Array(types.int64, 1, "C")
_TABLE = types.Array(types.int64, 2, "C")

NOT_HERE = -2
"""In `last`: this partition's rows need the long way (it is not assigned, or a row of it is held).
No `prev` has this value, so the loop stops there by itself."""


def _chain(
    partition: NDArray[np.int32],
    offset: NDArray[np.int64],
    prev: NDArray[np.int64],
    last: NDArray[np.int64],
    start: int,
) -> int:
    for row in range(start, len(partition)):
        source = partition[row]
        if prev[row] != last[source] or offset[row] <= last[source]:
            return row
        last[source] = offset[row]
    return len(partition)


def _before(keys: NDArray[np.int64], heads: NDArray[np.int64], one: int, other: int) -> bool:
    if keys[one, heads[one]] != keys[other, heads[other]]:
        return bool(keys[one, heads[one]] < keys[other, heads[other]])
    return one < other


def _sink_down(
    heap: NDArray[np.int64], size: int, keys: NDArray[np.int64], heads: NDArray[np.int64], at: int
) -> None:
    while True:
        child = 2 * at + 1
        if child >= size:
            return
        if child + 1 < size and before(keys, heads, heap[child + 1], heap[child]):
            child += 1
        if not before(keys, heads, heap[child], heap[at]):
            return
        heap[at], heap[child] = heap[child], heap[at]
        at = child


def _merge(  # noqa: PLR0917 - a compiled loop is handed its arrays one by one
    keys: NDArray[np.int64],
    heads: NDArray[np.int64],
    stops: NDArray[np.int64],
    credit: NDArray[np.int64],
    picked: NDArray[np.int64],
    origin: NDArray[np.int64],
) -> int:
    heap = np.empty(len(heads), np.int64)
    size = 0
    for source in range(len(heads)):
        if heads[source] < stops[source]:
            heap[size] = source
            size += 1
    for at in range(size // 2 - 1, -1, -1):
        sink_down(heap, size, keys, heads, at)
    count = 0
    while size > 0 and count < len(picked):
        source = heap[0]
        if credit[source] <= 0:
            break
        picked[count] = heads[source]
        origin[count] = source
        count += 1
        credit[source] -= 1
        heads[source] += 1
        if heads[source] == stops[source]:
            break
        sink_down(heap, size, keys, heads, 0)
    return count


chain = njit(types.int64(_I32, _I64, _I64, _I64_OUT, types.int64), cache=True)(_chain)
"""(partition, offset, prev, last, start) -> the first row that does not follow its partition's last.

`last` moves with the rows that do. Law: S3. Cost: about 1 ns a row."""

before = njit(types.boolean(_TABLE, _I64_OUT, types.int64, types.int64), cache=True)(_before)
sink_down = njit(types.void(_I64_OUT, types.int64, _TABLE, _I64_OUT, types.int64), cache=True)(
    _sink_down
)
merge = njit(types.int64(_TABLE, _I64_OUT, _I64, _I64_OUT, _I64_OUT, _I64_OUT), cache=True)(_merge)
"""(keys, heads, stops, credit, picked, origin) -> how many rows were picked.

Partition s has rows keys[s, heads[s]:stops[s]]; the head with the least (key, s) goes next. It stops
at a head without credit, where the rows of a partition run out, and when `picked` is full. heads and
credit move. Law: S5. Cost: about 5 ns a row for 3 partitions."""
