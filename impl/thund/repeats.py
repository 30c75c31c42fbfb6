"""The ids of admitted rows, remembered for a while, so that a row that comes again is found.

The state as a table, for whoever reads it without this code: `operator-repeats` has a row per
remembered id, with `id(c)` per column of the id, in the source's type (a dictionary's values), and
`event_time` int64 (ms), that of the row that brought it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thund.accumulators import column_type
from thund.columns import raw
from thund.kernel_repeats import settle
from thund.keys import Keys, stream_addresses
from thund.table import Inputs, Layout, Pool, Table
from thund_contract import vocabulary as v
from thund_contract.errors import CallerError, InputError

STATE = "operator-repeats"

_NONE: NDArray[np.uint64] = np.zeros(1, np.uint64)


class Repeats:
    """The remembered ids of one operator. In each epoch: judge rows as they come, forget, snapshot.

    Law: A7, F3.
    Raises: CallerError for a column that is missing or cannot be part of an id.
    """

    def __init__(self, config: v.Config, schema: pa.Schema) -> None:
        self._names, self._remember = config.deduplicate, config.remember_ms
        self._types = [column_type(schema, name, "deduplicate") for name in self._names]
        try:
            self._keys = Keys(self._names, self._types)
        except CallerError as error:
            raise CallerError(
                error.found, allowed=error.allowed, where="deduplicate", action=error.action
            ) from None
        self._pool = Pool()
        self._clear()

    def _clear(self) -> None:
        """No id, and no column has shown a null yet."""
        self._key_nulls = False
        self._table = Table(self._layout(), self._pool)
        self._known: NDArray[np.bool_] = np.zeros(1, np.bool_)
        self._last: NDArray[np.int64] = np.zeros(1, np.int64)

    def _layout(self) -> Layout:
        return Layout(self._keys.words, self._keys.text, [], key_nulls=self._key_nulls, touch=False)

    @property
    def remembered(self) -> int:
        """How many ids are remembered."""
        return int(self._known.sum())

    def judge(
        self,
        columns: pa.RecordBatch,
        event_time: NDArray[np.int64],
        watermarks: NDArray[np.int64],
        rows: NDArray[np.uint32],
    ) -> NDArray[np.bool_]:
        """Which of some rows that are not late are repeats; the others are remembered.

        event_time and watermarks (W just before a row): one per row of the batch, which rows chooses
        from, in order.

        Law: A7.
        Cost: about 200 ns for a new id of 64 bits, 600 for a new text; less for one that is known.
        """
        found = [columns.schema.field(name).type for name in self._names]
        if found != self._types:
            raise InputError(
                f"ids of the types {', '.join(map(str, found))}",
                allowed=f"{', '.join(map(str, self._types))}, as the source's schema said",
                where="deduplicate",
                action="give every file of the source the same columns",
            )
        entries = self._locate([columns.column(name) for name in self._names], rows)
        repeated = np.zeros(len(rows), np.bool_)
        settle(
            entries,
            event_time[rows],
            watermarks[rows],
            self._known,
            self._last,
            self._remember,
            repeated,
        )
        return repeated

    def _locate(self, columns: list[Any], rows: NDArray[np.uint32]) -> NDArray[np.int64]:
        """The entry of each row's id; a new id makes one that is not known yet."""
        keys = self._keys.encode(columns)
        if keys.nulls is not None and not self._key_nulls:
            self._key_nulls = True
            self._table.adopt(self._layout())
        long = any(where is not None for where in keys.where)
        where, stride, streams = stream_addresses(keys, nulls=self._key_nulls, arena=long)
        inputs = Inputs(where, stride, long, _NONE, _NONE, _NONE, [streams, keys])
        entries = self._table.locate(inputs, rows, 0, len(rows))
        room = self._table.groups + 1
        if room > len(self._known):
            self._known = np.concatenate([self._known, np.zeros(room, np.bool_)])
            self._last = np.concatenate([self._last, np.zeros(room, np.int64)])
        return entries

    def forget(self, watermark: int) -> None:
        """Drop the ids that W has passed, at the end of an epoch.

        Law: A7, F3.
        Cost: nothing where there are none, else about 50 ns for each that stays.
        """
        groups = self._table.groups
        known, last = self._known[1 : groups + 1], self._last[1 : groups + 1]
        kept = known & (last >= watermark - self._remember if watermark != v.NEVER else True)
        if not bool(kept.all()):
            mask = pa.array(kept)
            self._fill([column.filter(mask) for column in self._ids()], last[kept])

    def _ids(self) -> list[Any]:
        """The id columns of all entries."""
        block = self._table.block(0)
        layout = block.layout
        nulls = block.word("nulls") if layout.key_nulls else None
        places = block.words[layout.words : layout.states_at]
        return self._keys.decode(block.words[: layout.key_words], nulls, places, block.arena)

    def _fill(self, ids: list[Any], times: NDArray[np.int64]) -> None:
        """Nothing but these ids is remembered from now on."""
        self._table.free()
        self._clear()
        if len(times):
            entries = self._locate(ids, np.arange(len(times), dtype=np.uint32))
            self._known[entries] = True
            self._last[entries] = times

    # ---- the state -------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, pa.Table]:
        """The state after `forget`, as the table that this file's first lines describe.

        Law: A7, F3.
        """
        columns = {f"id({n})": ids for n, ids in zip(self._names, self._ids(), strict=True)}
        last = self._last[1 : self._table.groups + 1]
        return {STATE: pa.table({**columns, "event_time": pa.array(last.copy(), pa.int64())})}

    def restore(self, tables: Mapping[str, pa.Table]) -> None:
        """Take over a snapshot; whatever was remembered is dropped."""
        table = tables[STATE].combine_chunks()
        ids = [table.column(f"id({name})").combine_chunks() for name in self._names]
        self._fill(ids, raw(table.column("event_time").combine_chunks()))
