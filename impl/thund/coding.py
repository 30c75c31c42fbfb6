"""How the groups of an operator are written as words: their keys, their states, and the layout.

The state as columns, for whoever reads it without this code: `key(c)` per key column, in the
source's type (a dictionary's values); `rows` int64; and per column c that an aggregate reads:

- `count(c)` int64: values that are not null;
- `sum(c)`, where sum or mean is asked for. Integers: decimal128(38, 0), the exact sum. Floats: the
  exact sum of the finite values is `sum(c)` * 2**`sum(c).exponent` + w * 2**-1075, where `sum(c)`
  is decimal256(76, 0), `sum(c).exponent` int64, and w the two's complement little-endian integer in
  the binary `sum(c).wide` (0 for null); `sum(c).specials` int8 has the bits 1 for a NaN, 2 for
  +inf, 4 for -inf seen;
- `min(c)`, `max(c)` in the column's type, and `any(c)`, `all(c)`, booleans: null for no value.

What the other operations keep is said by the `State:` line of each kind in extra_*.py, decimals.py,
moments.py and lattices.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thund.accumulators import Accumulators, column_type
from thund.batch import Delivery
from thund.extras import Places
from thund.keys import Keys, KeyWords, stream_addresses
from thund.table import Block, Inputs, Layout, Table
from thund.words import Array
from thund_contract import vocabulary as v
from thund_contract.errors import InputError


@dataclass(frozen=True, slots=True)
class Restored:
    """Groups of a state: their keys, and what their states hold.

    Shape: words (layout.size, groups); wide (sums, WIDE_WORDS); extras by label, one per group.
    """

    inputs: Inputs
    words: NDArray[np.int64]
    wide: NDArray[np.int64]
    extras: dict[str, Any]

    def fill(self, table: Table, rows: NDArray[np.uint32]) -> bool:
        """Put some of the groups into an empty table; False where two have one key."""
        table.locate(self.inputs, rows, 0, len(rows))
        if table.groups != len(rows):
            return False
        extras = {label: states.take(pa.array(rows)) for label, states in self.extras.items()}
        table.fill(self.words[:, rows], self.wide, extras)
        return True


class Coding:
    """Keys and accumulators of an operator, and the newest layout of their words.

    `layout` grows when the first null comes: a table must adopt it before rows go in.

    Law: G4.
    Raises: CallerError for a column that is missing or cannot be used.
    """

    def __init__(self, config: v.Config, schema: pa.Schema) -> None:
        self._pipeline = config.pipeline
        column_type(schema, config.event_time, "event_time")
        kinds = [column_type(schema, name, "key") for name in config.key]
        self.keys = Keys(config.key, kinds)
        self.accumulators = Accumulators(config.aggregates, schema)
        names = dict.fromkeys([*config.key, *self.accumulators.names])
        self._types = {name: schema.field(name).type for name in names}
        self._touches = config.output == v.UPDATE
        self._layouts: dict[tuple[bool, bool], Layout] = {}
        self._nulls = (False, False)
        self.layout = self._layout_with(key_nulls=False, nulls=False)

    def inputs(self, delivery: Delivery, event_time: NDArray[np.int64]) -> Inputs:
        """Rows as the kernel reads them, under the newest layout."""
        batch = delivery.columns
        self._check_types(batch)
        keys = self.keys.encode([batch.column(name) for name in self.keys.names])
        values = self.accumulators.encode(batch)
        self._see_nulls(keys.nulls is not None, values.nulls)
        inputs = self._joined(keys, values.data, values.bitmap, values.offset, values.keep)
        inputs.extra = values.extra
        inputs.places = Places(event_time, delivery.partition, delivery.partitions, delivery.offset)
        return inputs

    def keys_of(self, columns: Sequence[Any]) -> Inputs:
        """Key columns alone as the kernel reads them, under the newest layout."""
        keys = self.keys.encode(columns)
        self._see_nulls(keys.nulls is not None, False)
        none = np.zeros(1, np.uint64)
        return self._joined(keys, none, none, none, [])

    def _joined(
        self, keys: KeyWords, data: Array, bitmap: Array, offset: Array, keep: list[Any]
    ) -> Inputs:
        long = any(where is not None for where in keys.where)
        where, stride, streams = stream_addresses(keys, nulls=self.layout.key_nulls, arena=long)
        return Inputs(where, stride, long, data, bitmap, offset, [streams, keys, *keep])

    def _check_types(self, batch: pa.RecordBatch) -> None:
        for name, kind in self._types.items():
            found = batch.schema.field(name).type if name in batch.schema.names else None
            if found != kind:
                raise InputError(
                    f"column {name!r} of type {found}" if found else f"no column {name!r}",
                    allowed=f"type {kind}, as the source's schema said",
                    where=f"pipeline {self._pipeline!r}",
                    action="give every file of the source the same columns",
                )

    def _layout_with(self, *, key_nulls: bool, nulls: bool) -> Layout:
        """The layout for columns that had nulls or had none; it is made once."""
        layout = self._layouts.get((key_nulls, nulls))
        if layout is None:
            layout = self._layouts[key_nulls, nulls] = Layout(
                self.keys.words,
                self.keys.text,
                self.accumulators.states(nulls=nulls),
                key_nulls=key_nulls,
                touch=self._touches,
                kinds=self.accumulators.kinds,
            )
        return layout

    def _see_nulls(self, key_nulls: bool, nulls: bool) -> None:
        """Give the entries words for nulls when the first null comes."""
        seen = (self._nulls[0] or key_nulls, self._nulls[1] or nulls)
        if seen != self._nulls:
            self._nulls = seen
            self.layout = self._layout_with(key_nulls=seen[0], nulls=seen[1])

    # ---- groups as columns -----------------------------------------------------------------------

    def key_columns(self, block: Block) -> list[Any]:
        """The key columns of groups, in the types of the source (a dictionary's values)."""
        layout = block.layout
        nulls = block.word("nulls") if layout.key_nulls else None
        places = block.words[layout.words : layout.states_at]
        return self.keys.decode(block.words[: layout.key_words], nulls, places, block.arena)

    def state(self, block: Block) -> dict[str, Any]:
        """The state of groups as columns, as this file's first lines describe them. Law: F3."""
        names = zip(self.keys.names, self.key_columns(block), strict=True)
        columns = {f"key({name})": column for name, column in names}
        columns.update(self.accumulators.partials(block))
        return columns

    def restored(self, batch: pa.RecordBatch) -> Restored:
        """What `state` gave, for tables under the newest layout."""
        words: dict[str, NDArray[np.int64]] = {}
        wide = self.accumulators.restore(batch, words)
        nulls = any(bool(x.any()) for label, x in words.items() if label.startswith("nulls:"))
        self._see_nulls(False, nulls)
        inputs = self.keys_of([batch.column(f"key({name})") for name in self.keys.names])
        states = np.zeros((self.layout.size, batch.num_rows), np.int64)
        for label, w in self.layout.at.items():
            states[w] = words.get(label, 0)
        extras = {kind.label: batch.column(kind.label) for kind in self.accumulators.kinds}
        return Restored(inputs, states, wide, extras)
