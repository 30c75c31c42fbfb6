"""Rows picked from several partitions' buffers, put together in the order in which they were picked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thund.batch import Delivery
from thund.connectors.logs import Stretch

LONG_RUN = 64
"""Runs of so many rows are sliced and joined; shorter ones are taken row by row."""


class Gather:
    """A delivery in the making.

    Each buffer that gives rows has a slot: a stretch, and the range of its rows that was picked,
    which is unbroken, because a partition's own order never changes (law S5).
    """

    def __init__(self, partitions: int) -> None:
        self.num_rows = 0
        self._slot = np.full(partitions, -1, np.int64)
        self._stretches: list[Stretch] = []
        self._starts: list[int] = []
        self._stops: list[int] = []
        self._parts: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]] = []

    def refilled(self, place: int) -> None:
        """A partition has a new buffer."""
        self._slot[place] = -1

    def add(
        self,
        picked: NDArray[np.int64],
        origin: NDArray[np.int64],
        before: NDArray[np.int64],
        heads: NDArray[np.int64],
        waiting: Sequence[Stretch | None],
    ) -> None:
        """Rows `picked` of the partitions `origin`, whose heads moved from `before` to `heads`."""
        for place in np.flatnonzero(before != heads).tolist():
            stretch = waiting[place]
            assert stretch is not None
            if self._slot[place] < 0:
                self._slot[place] = len(self._stretches)
                self._stretches.append(stretch)
                self._starts.append(int(before[place]))
                self._stops.append(0)
            self._stops[self._slot[place]] = int(heads[place])
        slots = self._slot[origin]
        self._parts.append((slots, picked - np.array(self._starts)[slots], origin.copy()))
        self.num_rows += len(picked)

    def delivery(self, names: tuple[str, ...]) -> Delivery:
        """All rows that were added. Law: S3, S5."""
        ranges = list(zip(self._stretches, self._starts, self._stops, strict=True))
        offsets = [stretch.offsets[start:stop] for stretch, start, stop in ranges]
        prevs = [self._prevs(slot) for slot in range(len(ranges))]
        origin = np.concatenate([part[2] for part in self._parts]).astype(np.int32)
        if len(ranges) == 1:
            stretch, start, stop = ranges[0]
            rows = stretch.rows.slice(start, stop - start)
            return Delivery(rows, names, origin, offsets[0], prevs[0])
        base = np.concatenate(([0], np.cumsum([stop - start for _, start, stop in ranges])[:-1]))
        index = np.concatenate([base[slots] + rows for slots, rows, _ in self._parts])
        return Delivery(
            _join([s.rows.slice(start, stop - start) for s, start, stop in ranges], base, index),
            names,
            origin,
            np.concatenate(offsets)[index],
            np.concatenate(prevs)[index],
        )

    def _prevs(self, slot: int) -> NDArray[np.int64]:
        stretch, start, stop = self._stretches[slot], self._starts[slot], self._stops[slot]
        if start:
            return stretch.offsets[start - 1 : stop - 1]
        return np.concatenate((np.array([stretch.before], np.int64), stretch.offsets[: stop - 1]))


def _join(
    ranges: list[pa.RecordBatch], base: NDArray[np.int64], index: NDArray[np.int64]
) -> pa.RecordBatch:
    starts = np.concatenate(([0], np.flatnonzero(np.diff(index) != 1) + 1))
    if len(starts) * LONG_RUN > len(index):
        whole = pa.concat_batches(ranges)  # type: ignore[attr-defined]
        return whole.take(pa.array(index, pa.int64()))
    runs = []
    stops = np.append(starts[1:], len(index))
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        runs += _slices(ranges, base, int(index[start]), stop - start)
    return pa.concat_batches(runs)  # type: ignore[attr-defined]


def _slices(
    ranges: list[pa.RecordBatch], base: NDArray[np.int64], start: int, rows: int
) -> list[pa.RecordBatch]:
    """Rows [start, start + rows) of all ranges in a row."""
    found = []
    slot = int(np.searchsorted(base, start, side="right")) - 1
    while rows > 0:
        skip = start - int(base[slot])
        piece = ranges[slot].slice(skip, rows)
        found.append(piece)
        start, rows, slot = start + piece.num_rows, rows - piece.num_rows, slot + 1
    return found
