"""Rows on their way from a source to the windows: Arrow columns, and where each row comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

UNREADABLE_TIME = "_gar_unreadable_time"
"""A boolean column that a source of text adds where its event-time column is not text itself: true
where the cell held something that is not of the column's type, and shows null there (law A4)."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """Rows as one step of the link hands them over; the order of rows is the order of arrival.

    Law: S2, S3.
    Shape: columns has the source's columns by name; partition (int32, an index into partitions),
    offset and prev (int64) have one element per row. prev is the offset before the row in its
    partition, or what the source was asked to go on from.
    """

    columns: pa.RecordBatch
    partitions: tuple[str, ...]
    partition: NDArray[np.int32]
    offset: NDArray[np.int64]
    prev: NDArray[np.int64]

    def __post_init__(self) -> None:
        rows = self.columns.num_rows
        assert len(self.partition) == rows
        assert len(self.offset) == rows
        assert len(self.prev) == rows

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return len(self.offset)

    @property
    def nbytes(self) -> int:
        """Bytes of the columns' values; a slice counts its own rows only."""
        return int(self.columns.nbytes)

    def slice(self, start: int, stop: int) -> Delivery:
        """Rows [start, stop), without a copy."""
        return Delivery(
            self.columns.slice(start, stop - start),
            self.partitions,
            self.partition[start:stop],
            self.offset[start:stop],
            self.prev[start:stop],
        )

    def take(self, indices: NDArray[np.int64]) -> Delivery:
        """The rows at `indices`, in that order, copied."""
        return Delivery(
            self.columns.take(pa.array(indices, pa.int64())),
            self.partitions,
            self.partition[indices],
            self.offset[indices],
            self.prev[indices],
        )

    def by_partition(self) -> dict[str, tuple[int, int]]:
        """Each partition that has rows here: how many, and the offset of its last one."""
        if len(self.partitions) == 1 and self.num_rows:
            return {self.partitions[0]: (self.num_rows, int(self.offset[-1]))}
        counts = np.bincount(self.partition, minlength=len(self.partitions)).tolist()
        return {
            name: (counts[i], int(self.offset[np.flatnonzero(self.partition == i)[-1]]))
            for i, name in enumerate(self.partitions)
            if counts[i]
        }

    @staticmethod
    def concat(deliveries: Sequence[Delivery]) -> Delivery:
        """All rows, in order; partitions are the sorted union where the lists differ.

        Cost: one delivery is returned as it is.
        """
        assert deliveries
        first = deliveries[0]
        if len(deliveries) == 1:
            return first
        names = first.partitions
        partition = [d.partition for d in deliveries]
        if any(d.partitions != names for d in deliveries):
            names = tuple(sorted({name for d in deliveries for name in d.partitions}))
            partition = [_renumber(d, names) for d in deliveries]
        return Delivery(
            pa.concat_batches([d.columns for d in deliveries]),  # type: ignore[attr-defined]
            names,
            np.concatenate(partition),
            np.concatenate([d.offset for d in deliveries]),
            np.concatenate([d.prev for d in deliveries]),
        )


def _renumber(delivery: Delivery, names: tuple[str, ...]) -> NDArray[np.int32]:
    places = np.array([names.index(name) for name in delivery.partitions], np.int32)
    return places[delivery.partition]
