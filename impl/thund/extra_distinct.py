"""count_distinct: the exact set of values of each entry, in a hash table of (entry, value)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thund.columns import plain_type, unviewed
from thund.extras import Extra, Places, wrong_type
from thund.keys import Keys, stream_addresses, usable
from thund.table import NO_ROWS, Inputs, Layout, Pool, Table
from thund_contract import vocabulary as v


class DistinctKind:
    """Distinct values, as keys are distinct: NaN is one value, -0.0 is 0.0.

    State: list of the values, in no order, in the column's type (a view's as large texts or
    bytes); null for none.

    Law: G4.
    """

    def __init__(self, column: str, kind: Any) -> None:
        self.label = f"{v.COUNT_DISTINCT}({column})"
        value = unviewed(kind)
        self.state_type = pa.list_(value)
        self._keys = Keys(("entry", column), (pa.int64(), value))

    def new(self) -> Extra:
        """The partials of a new table."""
        return _Sets(self._keys)

    def show(self, states: Any, operation: str) -> tuple[Any, dict[int, str]]:
        """How many there are."""
        return pc.list_value_length(states).fill_null(0).cast(pa.int64()), {}


def distinct_kind(aggregate: v.Aggregate, schema: Any) -> DistinctKind:
    """Any type that keys can have.

    Raises: CallerError for another one.
    """
    kind = plain_type(schema.field(aggregate.column).type)
    if not usable(kind):
        raise wrong_type(aggregate, kind, "any type that a key can have")
    return DistinctKind(str(aggregate.column), kind)


class _Sets:
    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        layout = Layout(keys.words, keys.text, (), key_nulls=False, touch=False)
        self._table = Table(layout, Pool())

    def fold(self, entries: NDArray[np.int64], columns: Sequence[Any], places: Places) -> None:
        """The values that are not null."""
        values = columns[0]
        if values.null_count:
            valid = values.is_valid()
            entries, values = entries[np.asarray(valid)], values.filter(valid)
        if len(entries) == 0:
            return
        words = self._keys.encode([pa.array(entries), values])
        long = any(where is not None for where in words.where)
        where, stride, streams = stream_addresses(words, nulls=False, arena=long)
        none = np.zeros(1, np.uint64)
        inputs = Inputs(where, stride, long, none, none, none, [streams, words])
        self._table.locate(inputs, NO_ROWS, 0, len(entries))

    def absorb(self, entries: NDArray[np.int64], states: Any) -> None:
        """All values of the lists."""
        self.fold(entries[pc.list_parent_indices(states).to_numpy()], [states.flatten()], _NOWHERE)

    def states(self, entries: NDArray[np.int64]) -> Any:
        """The sets, each as a list."""
        block = self._table.block(0)
        layout = block.layout
        places = block.words[layout.words : layout.states_at]
        owner, values = self._keys.decode(block.words[: layout.words], None, places, block.arena)
        owners = owner.to_numpy()
        order = np.argsort(owners, kind="stable")
        owners = owners[order]
        first = np.searchsorted(owners, entries, "left")
        counts = np.searchsorted(owners, entries, "right") - first
        stops = np.cumsum(counts)
        picked = np.arange(counts.sum()) + np.repeat(first - (stops - counts), counts)
        offsets = np.concatenate([np.zeros(1, np.int64), stops]).astype(np.int32)
        return pa.ListArray.from_arrays(
            pa.array(offsets), values.take(pa.array(order[picked])), mask=pa.array(counts == 0)
        )


_NOWHERE = Places(np.empty(0, np.int64), np.empty(0, np.int32), (), np.empty(0, np.int64))
