"""What an append-only sink is shown of each result, each time it changes: numbered panes.

The state as a table, for whoever reads it without this code: `operator-panes` has the last pane of
each open (key, window) that was shown: `_gar_id`, `_pane` int64, its number from 0, `_timing`, then
the key columns, `window_start`, `window_end` and the aggregates as they were shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thund.batch import Delivery
from thund.columns import raw
from thund.results import outbox_schema
from thund.windows import STATE as WINDOWS
from thund.windows import Windows
from thund_contract import vocabulary as v
from thund_contract.errors import CallerError

STATE = "operator-panes"

OWN_COLUMNS = (("_pane", pa.int64()), ("_timing", pa.string()), ("_retraction", pa.bool_()))
_KEPT = ("_epoch", "_retraction")
"""Columns of the lane that the state has no use for."""
_TIMINGS = pa.array(v.TIMINGS, pa.string())
_EARLY, _ON_TIME, _LATE = range(3)


class FreshWindows(Windows):
    """Windows that also show, in an epoch, the aggregates over the rows of that epoch alone.

    fresh: the rows of the last emit with those aggregates.

    Law: E6.
    Cost: each row is folded twice.
    """

    fresh: pa.Table

    def __init__(self, config: v.Config, schema: pa.Schema) -> None:
        super().__init__(config, schema)
        self._fresh = Windows(config, schema)

    def fold(
        self, delivery: Delivery, event_time: NDArray[np.int64], rows: NDArray[np.uint32] | None
    ) -> None:
        """See Windows. Law: E6, G4."""
        super().fold(delivery, event_time, rows)
        self._fresh.fold(delivery, event_time, rows)

    def close(self, watermark: int) -> None:
        """See Windows. Law: E6, F1."""
        super().close(watermark)
        self._fresh.close(watermark)

    def emit(self, epoch: int) -> tuple[pa.Table, pa.Table]:
        """See Windows. Law: E2, E6."""
        self.fresh = self._fresh.emit(epoch)[0]
        self._empty()
        return super().emit(epoch)

    def restore(self, tables: Mapping[str, pa.Table], watermark: int) -> None:
        """See Windows; an epoch that begins has no rows yet. Law: E6."""
        super().restore(tables, watermark)
        self._empty()

    def _empty(self) -> None:
        self._fresh.restore({WINDOWS: pa.table({})}, self._closed_by)


def pane_schema(config: v.Config, schema: pa.Schema) -> pa.Schema:
    """The columns of the lane of panes over the operator's columns.

    Law: E6.
    Raises: CallerError for a key or an aggregate that has the name of one of the lane's columns.
    """
    rows = outbox_schema(config, schema)
    twice = [name for name, _ in OWN_COLUMNS if name in rows.names]
    if twice:
        raise CallerError(
            f"a column named {', '.join(twice)}",
            allowed=f"any name but {', '.join(name for name, _ in OWN_COLUMNS)}, where panes are on",
            where=f"pipeline {config.pipeline!r}",
            action="rename the column or the aggregate",
        )
    fields = [field for field in rows if field.name != "_deleted"]
    return pa.schema([*fields[:2], *(pa.field(*own) for own in OWN_COLUMNS), *fields[2:]])


class Panes:
    """The panes of one operator in update mode; the last one of each open result is remembered.

    Law: E6, F3.
    """

    def __init__(self, config: v.Config, schema: pa.Schema) -> None:
        self._kind, self._grace = config.panes, config.grace_ms
        self.schema = pane_schema(config, schema)
        self._values = [a.name for a in config.aggregates]
        self._last = self.schema.empty_table()

    def show(self, rows: pa.Table, fresh: pa.Table, *, epoch: int, watermark: int) -> pa.Table:
        """The panes of an epoch, sorted by id and number, from the outbox rows of it.

        fresh: the rows with the aggregates of the epoch alone, where panes discard; else not read.
        watermark: W at the end of the epoch.

        Law: E6.
        """
        live = rows.filter(pc.invert(rows.column("_deleted")))
        before = _places(live, self._last)
        shown = self._panes(live, before, epoch, watermark)
        if self._kind == v.DISCARDING:
            own = fresh.take(_places(live, fresh))
            for name in self._values:
                place = shown.schema.get_field_index(name)
                shown = shown.set_column(place, name, own.column(name))
        gone = rows.filter(rows.column("_deleted"))
        back = [self._last.take(_places(gone, self._last))]
        if self._kind == v.RETRACTING:
            back.append(self._last.take(before.drop_null()))
        self._remember(shown, rows.column("_gar_id"), watermark)
        taken = _with(pa.concat_tables(back), "_retraction", True)
        lane = pa.concat_tables([_with(taken, "_epoch", epoch), shown])
        return lane.sort_by([("_gar_id", "ascending"), ("_pane", "ascending")])

    def _panes(self, live: pa.Table, before: Any, epoch: int, watermark: int) -> pa.Table:
        """A new pane of each row, numbered on from the one before it."""
        number = pc.add(self._last.column("_pane").take(before), 1).fill_null(0)
        timing = self._last.column("_timing").take(before)
        first = pc.or_kleene(timing.is_null(), pc.equal(timing, v.EARLY)).combine_chunks()
        passed = raw(live.column("window_end").combine_chunks()) <= watermark
        timings = np.where(passed, np.where(first, _ON_TIME, _LATE), _EARLY)
        own = {
            "_epoch": pa.repeat(pa.scalar(epoch, pa.int64()), live.num_rows),
            "_pane": number,
            "_timing": _TIMINGS.take(pa.array(timings)),
            "_retraction": pa.repeat(pa.scalar(False), live.num_rows),
        }
        columns = [own[f.name] if f.name in own else live.column(f.name) for f in self.schema]
        return pa.table(columns, schema=self.schema)

    def _remember(self, shown: pa.Table, ids: Any, watermark: int) -> None:
        """The new panes go over those of the same id; what is closed or was taken away goes.

        Law: E6, F3.
        """
        old = self._last.filter(pc.invert(pc.is_in(self._last.column("_gar_id"), ids)))
        both = pa.concat_tables([old, shown])
        ends = raw(both.column("window_end").combine_chunks())
        still = ends > watermark - self._grace if watermark != v.NEVER else np.ones(len(ends), bool)
        self._last = both.filter(pa.array(still)).combine_chunks()

    # ---- the state -------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, pa.Table]:
        """The state after `show`, as the table that this file's first lines describe. Law: E6, F3."""
        return {STATE: self._last.drop_columns(list(_KEPT))}

    def restore(self, tables: Mapping[str, pa.Table]) -> None:
        """Take over a snapshot; whatever was remembered is dropped."""
        table = tables[STATE]
        columns = [
            pa.nulls(table.num_rows, f.type) if f.name in _KEPT else table.column(f.name)
            for f in self.schema
        ]
        self._last = pa.table(columns, schema=self.schema)


def _places(rows: pa.Table, among: pa.Table) -> Any:
    """Where the ids of rows stand in another table; null where they do not."""
    found = pc.index_in(rows.column("_gar_id"), value_set=among.column("_gar_id"))
    return found.combine_chunks()


def _with(table: pa.Table, name: str, value: object) -> pa.Table:
    """A table with one value in a whole column."""
    field = table.schema.field(name)
    column = pa.repeat(pa.scalar(value, field.type), table.num_rows)
    return table.set_column(table.schema.get_field_index(name), field, column)
