"""Open tumbling windows: rows in, results out when a window closes or an epoch ends.

The state as tables, for whoever reads it without this code. `operator-windows` has a row per open
(window, key): `window_start` int64 (ms); `key(c)` per key column, in the source's type (a
dictionary's values); `rows` int64; and per column c that an aggregate reads:

- `count(c)` int64: values that are not null;
- `sum(c)`, where sum or mean is asked for. Integers: decimal128(38, 0), the exact sum. Floats: the
  exact sum of the finite values is `sum(c)` * 2**`sum(c).exponent` + w * 2**-1075, where `sum(c)`
  is decimal256(76, 0), `sum(c).exponent` int64, and w the two's complement little-endian integer in
  the binary `sum(c).wide` (0 for null); `sum(c).specials` int8 has the bits 1 for a NaN, 2 for
  +inf, 4 for -inf seen;
- `min(c)`, `max(c)` in the column's type, null for no value.

In complete mode `operator-results` has the rows of closed windows as they were shown (`_gar_id`,
key columns, `window_start`, `window_end`, aggregates), and `operator-results-unfit` their unfit
values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thund.accumulators import Accumulators, UnfitValues, column_type
from thund.columns import address, build, raw
from thund.grid import rows_by_window, window_numbers
from thund.ids import gar_ids
from thund.kernel_time import span
from thund.keys import Keys, KeyWords, stream_addresses
from thund.table import NO_ROWS, Block, Inputs, Layout, Pool, Table, concat
from thund.words import Array
from thund_contract import vocabulary as v
from thund_contract.errors import CallerError, InputError, LawBroken

STATE = "operator-windows"
RESULTS = "operator-results"
RESULTS_UNFIT = "operator-results-unfit"
OWN_COLUMNS = ("_gar_id", "_epoch", "_deleted", "window_start", "window_end")

_TIME = pa.timestamp("ms", tz="UTC")
_UNFIT = pa.schema([("_gar_id", pa.binary(16)), ("aggregate", pa.utf8()), ("value", pa.utf8())])
_EMPTY_PROGRAM: NDArray[np.int64] = np.empty((0, 3), np.int64)
_FEW_WINDOWS = 4


def is_closed(end_ms: int, *, grace_ms: int, watermark: int) -> bool:
    """Whether W has passed a window's end and its grace.

    Law: F1, F3.
    """
    return watermark != v.NEVER and end_ms + grace_ms <= watermark


class Windows:
    """The window operator. In each epoch: fold and close as rows come, then emit, then snapshot.

    Law: G1, G4, F1, F2, F3, F4, E1, E2, E3.
    Raises: CallerError for a column that is missing or cannot be used.
    """

    def __init__(self, config: v.Config, schema: pa.Schema) -> None:
        _check(config, schema)
        self._config = config
        self._size, self._offset = config.window.size_ms, config.window.offset_ms
        kinds = [column_type(schema, name, "key") for name in config.key]
        self._keys = Keys(config.key, kinds)
        self._accumulators = Accumulators(config.aggregates, schema)
        names = dict.fromkeys([*config.key, *(c.name for c in self._accumulators.columns)])
        self._types = {name: schema.field(name).type for name in names}
        self._touches = config.output == v.UPDATE
        self._layouts: dict[tuple[bool, bool], Layout] = {}
        self._layout = self._layout_with(key_nulls=False, nulls=False)
        self._nulls = (False, False)
        self._pool = Pool()
        self._tables: dict[int, Table] = {}
        self._closed_before: int | None = None
        self._expected = 0
        self._epoch = 1
        self._order: NDArray[np.uint32] = np.empty(0, np.uint32)
        self._leaving: list[Block] = []
        self._results: list[pa.Table] = []
        self._results_unfit: list[pa.Table] = []

    @property
    def open_groups(self) -> int:
        """How many (key, window) the state holds."""
        return sum(table.groups for table in self._tables.values())

    # ---- rows in ---------------------------------------------------------------------------------

    def fold(
        self,
        batch: pa.RecordBatch,
        event_time: NDArray[np.int64],
        rows: NDArray[np.uint32] | None,
    ) -> None:
        """Fold admitted rows into their windows; rows: which, or None for all.

        Law: G1, G4.
        Cost: 1 to 3 ns a row and aggregate, 2 for the key, 4 where a batch spans several windows.
        """
        chosen = NO_ROWS if rows is None else np.require(rows, np.uint32, ["C", "W"])
        n = len(event_time) if rows is None else len(rows)
        if n == 0:
            return
        inputs = self._inputs(batch)
        event_time = np.ascontiguousarray(event_time)
        bounds = np.array(self._span(event_time, chosen), np.int64)
        first, last = self._number(bounds, NO_ROWS).tolist()
        self._refuse_closed(first)
        if first == last:
            self._table(first).update(inputs, chosen, 0, n)
            return
        numbers = self._number(event_time, chosen)
        if len(self._order) <= n:  # kept from batch to batch: fresh memory is slow
            self._order = np.empty(n + 1, np.uint32)
        for number, order, lo, hi in rows_by_window(
            numbers, chosen, self._order, first=first, last=last
        ):
            self._table(number).update(inputs, order, lo, hi)

    def _number(self, event_time: NDArray[np.int64], rows: NDArray[np.uint32]) -> NDArray[np.int64]:
        return window_numbers(event_time, rows, size_ms=self._size, offset_ms=self._offset)

    def _span(self, times: NDArray[np.int64], rows: NDArray[np.uint32]) -> tuple[int, int]:
        if len(rows):
            times = times[rows]
        low, high = span(np.uint64(address(times)), len(times))
        return low, high

    def _refuse_closed(self, number: int) -> None:
        """A closed window never opens again.

        Law: F2.
        """
        if self._closed_before is not None and number < self._closed_before:
            raise LawBroken(
                f"a row for the window that starts at {number * self._size + self._offset} ms",
                allowed="rows of open windows: this one is closed (law F2)",
                where=f"pipeline {self._config.pipeline!r}",
                action="report this; what is committed stands",
            )

    def _inputs(self, batch: pa.RecordBatch) -> Inputs:
        self._check_types(batch)
        keys = self._keys.encode([batch.column(name) for name in self._keys.names])
        values = self._accumulators.encode(batch)
        self._see_nulls(keys.nulls is not None, values.nulls)
        return self._joined(keys, values.data, values.bitmap, values.offset, values.keep)

    def _joined(
        self, keys: KeyWords, data: Array, bitmap: Array, offset: Array, keep: list[Any]
    ) -> Inputs:
        long = any(where is not None for where in keys.where)
        where, stride, streams = stream_addresses(keys, nulls=self._layout.key_nulls, arena=long)
        return Inputs(where, stride, long, data, bitmap, offset, [streams, keys, *keep])

    def _check_types(self, batch: pa.RecordBatch) -> None:
        for name, kind in self._types.items():
            found = batch.schema.field(name).type if name in batch.schema.names else None
            if found != kind:
                raise InputError(
                    f"column {name!r} of type {found}" if found else f"no column {name!r}",
                    allowed=f"type {kind}, as the source's schema said",
                    where=f"pipeline {self._config.pipeline!r}",
                    action="give every file of the source the same columns",
                )

    def _layout_with(self, *, key_nulls: bool, nulls: bool) -> Layout:
        """The layout for columns that had nulls or had none; it is made once."""
        layout = self._layouts.get((key_nulls, nulls))
        if layout is None:
            layout = self._layouts[key_nulls, nulls] = Layout(
                self._keys.words,
                self._keys.text,
                self._accumulators.states(nulls=nulls),
                key_nulls=key_nulls,
                touch=self._touches,
            )
        return layout

    def _see_nulls(self, key_nulls: bool, nulls: bool) -> None:
        """Give the entries words for nulls when the first null comes."""
        seen = (self._nulls[0] or key_nulls, self._nulls[1] or nulls)
        if seen != self._nulls:
            self._nulls = seen
            self._layout = self._layout_with(key_nulls=seen[0], nulls=seen[1])
            for table in self._tables.values():
                table.adopt(self._layout)

    def _table(self, number: int) -> Table:
        table = self._tables.get(number)
        if table is None:
            expected = self._expected if len(self._tables) < _FEW_WINDOWS else 0
            table = self._tables[number] = Table(self._layout, self._pool, expected=expected)
            table.stamp(self._epoch)
        return table

    # ---- results out -----------------------------------------------------------------------------

    def close(self, watermark: int) -> None:
        """Windows with end + grace <= W leave the state; what they show waits for emit.

        Law: F1, F2, F3, E1.
        """
        for number in sorted(n for n in self._tables if self._is_due(n, watermark)):
            table = self._tables.pop(number)
            self._leaving.append(_own(self._block(number, table)))
            self._expected = table.groups
            table.free()
        self._forbid(watermark)

    def _is_due(self, number: int, watermark: int) -> bool:
        end = (number + 1) * self._size + self._offset
        return is_closed(end, grace_ms=self._config.grace_ms, watermark=watermark)

    def _forbid(self, watermark: int) -> None:
        if watermark == v.NEVER:
            return
        past = watermark - self._config.grace_ms - self._offset
        before = past // self._size
        if self._closed_before is None or before > self._closed_before:
            self._closed_before = before

    def _block(self, number: int, table: Table) -> Block:
        """What a table shows at close or at the end of an epoch: in update mode what changed.

        Law: E1, E2, E3, F4.
        """
        return table.block(number * self._size + self._offset, touched=self._touches)

    def emit(self, epoch: int) -> tuple[pa.Table, pa.Table]:
        """The epoch's outbox rows and unfit values, by the output mode; they are then forgotten.

        Shape: `_gar_id`, `_epoch`, `_deleted`, key columns, `window_start`, `window_end`, one column
        per aggregate; unfit: `_gar_id`, `aggregate`, `value`.

        Law: E1, E2, E3, E4, E5.
        """
        blocks = self._leaving
        if self._config.output == v.COMPLETE:
            self._keep_results()
            blocks = []
        if self._config.output != v.APPEND:
            blocks = blocks + [self._block(n, t) for n, t in sorted(self._tables.items())]
        shown, unfit = self._show(blocks)
        shown = pa.concat_tables([*self._results, shown])
        unfit = pa.concat_tables([*self._results_unfit, unfit])
        self._leaving = []
        self._epoch += 1
        for table in self._tables.values():
            table.stamp(self._epoch)
        return _stamped(shown, epoch), unfit

    def _keep_results(self) -> None:
        """Closed rows go to the store that only grows.

        Law: E3.
        """
        if self._leaving:
            shown, unfit = self._show(self._leaving)
            self._results.append(shown)
            self._results_unfit.append(unfit)
            self._leaving = []

    def _show(self, blocks: Sequence[Block]) -> tuple[pa.Table, pa.Table]:
        block = concat(self._layout, blocks)
        keys = self._key_columns(block)
        ids = gar_ids(self._config, keys, block.starts)
        values, unfit = self._accumulators.show(block)
        columns = {"_gar_id": ids}
        columns.update(zip(self._keys.names, keys, strict=True))
        columns["window_start"] = build(_TIME, block.starts)
        columns["window_end"] = build(_TIME, block.starts + self._size)
        columns.update(zip((a.name for a in self._config.aggregates), values, strict=True))
        return pa.table(columns), _unfit_table(ids, unfit)

    def _key_columns(self, block: Block) -> list[Any]:
        layout = block.layout
        nulls = block.word("nulls") if layout.key_nulls else None
        places = block.words[layout.words : layout.states_at]
        return self._keys.decode(block.words[: layout.key_words], nulls, places, block.arena)

    # ---- the state -------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, pa.Table]:
        """The state after an emit, as the tables that this file's first lines describe.

        Law: F3.
        """
        starts = sorted(self._tables)
        blocks = [self._tables[n].block(n * self._size + self._offset) for n in starts]
        block = concat(self._layout, blocks)
        columns = {"window_start": build(pa.int64(), block.starts)}
        for name, column in zip(self._keys.names, self._key_columns(block), strict=True):
            columns[f"key({name})"] = column
        columns.update(self._accumulators.partials(block))
        out = {STATE: pa.table(columns)}
        if self._config.output == v.COMPLETE:
            self._keep_results()
            shown, unfit = self._show([])
            out[RESULTS] = pa.concat_tables([*self._results, shown])
            out[RESULTS_UNFIT] = pa.concat_tables([*self._results_unfit, unfit])
        return out

    def restore(self, tables: Mapping[str, pa.Table]) -> None:
        """Take over a snapshot; whatever the windows held is dropped."""
        for table in self._tables.values():
            table.free()
        self._tables, self._leaving, self._closed_before = {}, [], None
        self._results = [tables[RESULTS]] if RESULTS in tables else []
        self._results_unfit = [tables[RESULTS_UNFIT]] if RESULTS_UNFIT in tables else []
        state = tables[STATE]
        if state.num_rows == 0:
            return
        batch = state.combine_chunks().to_batches()[0]
        words: dict[str, NDArray[np.int64]] = {}
        wide = self._accumulators.restore(batch, words)
        keys = self._keys.encode([batch.column(f"key({name})") for name in self._keys.names])
        nulls = any(bool(x.any()) for label, x in words.items() if label.startswith("nulls:"))
        self._see_nulls(keys.nulls is not None, nulls)
        none = np.zeros(1, np.uint64)
        inputs = self._joined(keys, none, none, none, [])
        states = np.zeros((self._layout.size, batch.num_rows), np.int64)
        for label, w in self._layout.at.items():
            states[w] = words.get(label, 0)
        starts = raw(batch.column("window_start"))
        order = np.argsort(starts, kind="stable").astype(np.uint32)
        cuts = [0, *(np.flatnonzero(np.diff(starts[order])) + 1).tolist(), len(order)]
        for lo, hi in pairwise(cuts):
            self._restore_window(int(starts[order[lo]]), inputs, order[lo:hi], states, wide)

    def _restore_window(
        self,
        start: int,
        inputs: Inputs,
        rows: NDArray[np.uint32],
        states: NDArray[np.int64],
        wide: NDArray[np.int64],
    ) -> None:
        number, rest = divmod(start - self._offset, self._size)
        table = self._table(number)
        table.insert(inputs, _EMPTY_PROGRAM, rows, 0, len(rows))
        if rest != 0 or table.groups != len(rows):
            raise LawBroken(
                f"{len(rows)} groups with {table.groups} keys at {start} ms",
                allowed="one group per key and window of the grid",
                where=f"state of pipeline {self._config.pipeline!r}",
                action="report this; what is committed stands",
            )
        table.fill(states[:, rows], wide)


def _check(config: v.Config, schema: pa.Schema) -> None:
    column_type(schema, config.event_time, "event_time")
    names = [*OWN_COLUMNS, *config.key, *(a.name for a in config.aggregates)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise CallerError(
            f"two output columns named {', '.join(twice)}",
            allowed="each key column and aggregate has a name of its own, none of "
            + ", ".join(OWN_COLUMNS),
            where=f"pipeline {config.pipeline!r}",
            action="rename the column or the aggregate",
        )
    if config.window.kind != v.TUMBLING or config.window.size_ms <= 0:
        raise CallerError(
            f"window {config.window.kind} of {config.window.size_ms} ms",
            allowed=f"{v.TUMBLING} of at least 1 ms",
            where=f"pipeline {config.pipeline!r}",
            action="set window size_ms",
        )
    if config.output not in (v.APPEND, v.UPDATE, v.COMPLETE):
        raise CallerError(
            f"output mode {config.output!r}",
            allowed=f"{v.APPEND}, {v.UPDATE}, {v.COMPLETE}",
            where=f"pipeline {config.pipeline!r}",
            action="set output",
        )


def _own(block: Block) -> Block:
    """The block with memory of its own, so that its table may go."""
    return Block(block.layout, block.starts, block.words, block.arena.copy(), block.wide.copy())


def _stamped(shown: pa.Table, epoch: int) -> pa.Table:
    n = shown.num_rows
    deleted = build(pa.bool_(), np.zeros(n, np.bool_))
    out = shown.add_column(1, "_epoch", build(pa.int64(), np.full(n, epoch, np.int64)))
    return out.add_column(2, "_deleted", deleted)


def _unfit_table(ids: Any, unfit: Sequence[UnfitValues]) -> pa.Table:
    groups = [i for each in unfit for i in each.groups]
    names = [each.aggregate for each in unfit for _ in each.groups]
    values = [value for each in unfit for value in each.values]
    return pa.table(
        [
            ids.take(pa.array(groups, pa.int64())),
            pa.array(names, pa.utf8()),
            pa.array(values, pa.utf8()),
        ],
        schema=_UNFIT,
    )


def outbox_schema(config: v.Config, schema: pa.Schema) -> pa.Schema:
    """The columns of the outbox rows over a source's schema: what a sink's table needs.

    Law: E1.
    Raises: CallerError as Windows does.
    """
    return Windows(config, schema).emit(0)[0].schema
