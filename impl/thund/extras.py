"""Partials that fixed words cannot hold: what an operation of such a kind gives to a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from thund_contract import vocabulary as v
from thund_contract.errors import CallerError


@dataclass(frozen=True, slots=True)
class Places:
    """Where rows stand: their event times, partitions and offsets.

    Shape: event_time (int64, ms), partition (int32, an index into names) and offset (int64) have
    one element per row.
    """

    event_time: NDArray[np.int64]
    partition: NDArray[np.int32]
    names: tuple[str, ...]
    offset: NDArray[np.int64]

    def at(self, rows: Any) -> Places:
        """Those of some rows: their indices, or a slice."""
        return Places(self.event_time[rows], self.partition[rows], self.names, self.offset[rows])


class Extra(Protocol):
    """The partials of one operation in one table, by the number of the table's entry (1, 2, ...).

    Law: G4.
    """

    def fold(self, entries: NDArray[np.int64], columns: Sequence[Any], places: Places) -> None:
        """Add rows: row i to entry entries[i]; an entry may come several times.

        columns: the operation's columns of just these rows, nulls included, dictionaries decoded.
        """

    def absorb(self, entries: NDArray[np.int64], states: Any) -> None:
        """Merge portable partials into entries; an entry may come several times."""

    def states(self, entries: NDArray[np.int64]) -> Any:
        """The portable partials of some entries, as their column of the state has them.

        Null is the neutral element; an entry that was never folded into has it.
        """


class ExtraKind(Protocol):
    """How an operation over columns of some types keeps its partials, and shows them.

    label: the column of the state, for example "first(x)"; operations of one label share a
    partial. state_type: that column's Arrow type.
    """

    label: str
    state_type: Any

    def new(self) -> Extra:
        """The partials of a new table."""

    def show(self, states: Any, operation: str) -> tuple[Any, dict[int, str]]:
        """The output column, and the exact texts of values that do not fit it, by row.

        Law: G4.
        """


Factory = Callable[[v.Aggregate, Any], ExtraKind | None]
"""Of an aggregate and a schema with its columns; None where words hold the operation over this type.

It raises CallerError for a type that the operation does not have.
"""


def wrong_type(aggregate: v.Aggregate, kind: Any, allowed: str) -> CallerError:
    """What to say of a column whose type the operation does not have."""
    return CallerError(
        f"{aggregate.operation} of column {aggregate.column!r} of type {kind}",
        allowed=allowed,
        where=f"aggregate {aggregate.name!r}",
        action="cast the column or choose another operation",
    )


def grown(array: NDArray[Any], size: int, fill: int) -> NDArray[Any]:
    """The array, with at least so many elements; new ones hold `fill`."""
    if size <= len(array):
        return array
    larger = np.full(max(size, 2 * len(array)), fill, array.dtype)
    larger[: len(array)] = array
    return larger
