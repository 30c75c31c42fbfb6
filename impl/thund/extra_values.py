"""One Arrow value of any type per entry of a table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thund.columns import is_bytes, is_text
from thund.extras import grown

_SLACK = 4096
"""Values that were replaced and may stay, beside as many as there are entries."""


class Values:
    """The newest value put to each entry; it shows null where there is none.

    Cost: putting n values is n; values that were replaced go when they outnumber the others.
    """

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self.stored = stored_type(kind)
        self._pieces: list[Any] = []
        self._total = 0
        self._live = 0
        self._at: NDArray[np.int64] = np.full(16, -1, np.int64)

    def put(self, entries: NDArray[np.int64], values: Any) -> None:
        """Set the values of entries, each named once; no value is null."""
        if len(entries) == 0:
            return
        self._at = grown(self._at, int(entries.max()) + 1, -1)
        self._live += int(np.count_nonzero(self._at[entries] < 0))
        self._at[entries] = np.arange(self._total, self._total + len(entries))
        self._add(values.cast(self.stored))
        if self._total > 2 * self._live + _SLACK:
            self._compact()

    def _add(self, piece: Any) -> None:
        """Pieces of falling size: few of them, and each value is copied a few times only."""
        self._total += len(piece)
        while self._pieces and len(self._pieces[-1]) <= 2 * len(piece):
            piece = pa.concat_arrays([self._pieces.pop(), piece])
        self._pieces.append(piece)

    def _compact(self) -> None:
        used = np.flatnonzero(self._at >= 0)
        values = self._take(self._at[used])
        self._at[used] = np.arange(len(used))
        self._pieces, self._total = [values], len(used)

    def _take(self, at: NDArray[np.int64]) -> Any:
        """Values by their place, null for -1. Arrow's own take of several pieces is 20 times slower."""
        order, parts, first = [np.flatnonzero(at < 0)], [], 0
        parts.append(pa.nulls(len(order[0]), self.stored))
        for piece in self._pieces:
            order.append(np.flatnonzero((at >= first) & (at < first + len(piece))))
            parts.append(piece.take(pa.array(at[order[-1]] - first)))
            first += len(piece)
        back = np.empty(len(at), np.int64)
        back[np.concatenate(order)] = np.arange(len(at))
        return pa.concat_arrays(parts).take(pa.array(back))

    def get(self, entries: NDArray[np.int64]) -> Any:
        """The values of entries, in the type in which they are kept: `stored`."""
        if len(entries) == 0:
            return pa.array([], self.stored)
        self._at = grown(self._at, int(entries.max()) + 1, -1)
        return self._take(self._at[entries])

    def show(self, entries: NDArray[np.int64]) -> Any:
        """The values of entries, in the column's type."""
        return self.get(entries).cast(self.kind)


def stored_type(kind: Any) -> Any:
    """A type of the same values that Arrow's kernels know, and that holds any amount of text."""
    if pa.types.is_fixed_size_binary(kind):
        return kind
    if is_text(kind) or is_bytes(kind):
        return pa.large_binary() if is_bytes(kind) else pa.large_utf8()
    if pa.types.is_decimal(kind) and kind.bit_width < 128:
        return pa.decimal128(kind.precision, kind.scale)
    return kind
