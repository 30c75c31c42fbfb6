"""What an operator shows: result rows by the output mode, tombstones, and values that do not fit.

In complete mode `operator-results` has the rows of closed windows as they were shown (`_gar_id`,
key columns, `window_start`, `window_end`, aggregates), and `operator-results-unfit` their unfit
values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thund.accumulators import UnfitValues
from thund.coding import Coding
from thund.columns import build
from thund.epoch import UNFIT_SCHEMA
from thund.ids import ID_BYTES, gar_ids
from thund.table import Block, concat
from thund_contract import vocabulary as v
from thund_contract.errors import CallerError

RESULTS = "operator-results"
RESULTS_UNFIT = "operator-results-unfit"
OWN_COLUMNS = ("_gar_id", "_epoch", "_deleted", "window_start", "window_end")

NO_IDS = pa.array([], pa.binary(ID_BYTES))
_TIME = pa.timestamp("ms", tz="UTC")
_NO_ENDS: NDArray[np.int64] = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups to show: a block, and where the window of each one ends."""

    block: Block
    ends: NDArray[np.int64]

    def own(self) -> Groups:
        """The same with memory of its own, so that its table may go."""
        return Groups(self.block.own(), self.ends)


class Results:
    """The results of one operator. In each epoch: leave as windows close, then emit, then snapshot.

    Law: E1, E2, E3, E4, E5.
    Raises: CallerError for two output columns of one name, and an unknown output mode.
    """

    def __init__(self, config: v.Config, coding: Coding) -> None:
        _check(config)
        self._config, self._coding = config, coding
        self._leaving: list[Groups] = []
        self._rows: list[pa.Table] = []
        self._unfit: list[pa.Table] = []

    @property
    def shows_open(self) -> bool:
        """Whether the mode shows windows that are still open. Law: E1, E2, E3."""
        return self._config.output != v.APPEND

    @property
    def shows_touched(self) -> bool:
        """Whether the mode shows only groups that this epoch changed. Law: E2."""
        return self._config.output == v.UPDATE

    def leave(self, groups: Groups) -> None:
        """Groups of closed windows, with memory of their own; they wait for emit. Law: E1, F1."""
        self._leaving.append(groups)

    def ids(self, keys: Sequence[Any], starts: NDArray[np.int64]) -> Any:
        """The `_gar_id` of each (key, window start). Law: E5."""
        return gar_ids(self._config, keys, starts)

    def emit(
        self, epoch: int, still_open: Sequence[Groups], gone: Any = NO_IDS
    ) -> tuple[pa.Table, pa.Table]:
        """The epoch's outbox rows and unfit values, by the output mode.

        still_open: what the mode shows of open windows. gone: ids that get a tombstone: its other
        columns are null.
        Shape: `_gar_id`, `_epoch`, `_deleted`, key columns, `window_start`, `window_end`, one column
        per aggregate; unfit: `_gar_id`, `aggregate`, `value`.

        Law: E1, E2, E3, E4, E5, M1.
        """
        leaving, self._leaving = self._leaving, []
        if self._config.output == v.COMPLETE:
            self._keep(leaving)
            leaving = []
        shown, unfit = self._show([*leaving, *still_open])
        shown = pa.concat_tables([*self._rows, shown])
        unfit = pa.concat_tables([*self._unfit, unfit])
        rows = _stamped(shown, epoch, deleted=False)
        if len(gone):
            rows = pa.concat_tables(
                [rows, _stamped(_nulls(shown.schema, gone), epoch, deleted=True)]
            )
        return rows, unfit

    def _keep(self, leaving: Sequence[Groups]) -> None:
        """Closed rows go to the store that only grows.

        Law: E3.
        """
        if leaving:
            shown, unfit = self._show(leaving)
            self._rows.append(shown)
            self._unfit.append(unfit)

    def _show(self, groups: Sequence[Groups]) -> tuple[pa.Table, pa.Table]:
        block = concat(self._coding.layout, [each.block for each in groups])
        keys = self._coding.key_columns(block)
        ids = self.ids(keys, block.starts)
        values, unfit = self._coding.accumulators.show(block)
        columns = {"_gar_id": ids}
        columns.update(zip(self._config.key, keys, strict=True))
        columns["window_start"] = build(_TIME, block.starts)
        ends = np.concatenate([_NO_ENDS, *(each.ends for each in groups)])
        columns["window_end"] = build(_TIME, ends)
        columns.update(zip((a.name for a in self._config.aggregates), values, strict=True))
        return pa.table(columns), _unfit_table(ids, unfit)

    # ---- the store of complete mode ----------------------------------------------------------------

    def snapshot(self) -> dict[str, pa.Table]:
        """The store after an emit, in complete mode; no table in the others. Law: E3."""
        if self._config.output != v.COMPLETE:
            return {}
        shown, unfit = self._show([])
        return {
            RESULTS: pa.concat_tables([*self._rows, shown]),
            RESULTS_UNFIT: pa.concat_tables([*self._unfit, unfit]),
        }

    def restore(self, tables: Mapping[str, pa.Table]) -> None:
        """Take over a snapshot; what waited for emit is dropped."""
        self._leaving = []
        self._rows = [tables[RESULTS]] if RESULTS in tables else []
        self._unfit = [tables[RESULTS_UNFIT]] if RESULTS_UNFIT in tables else []


def outbox_schema(config: v.Config, schema: pa.Schema) -> pa.Schema:
    """The columns of the outbox rows over a source's schema: what a sink's table needs.

    Law: E1.
    Raises: CallerError for a column that is missing or cannot be used.
    """
    return Results(config, Coding(config, schema)).emit(0, [])[0].schema


def _check(config: v.Config) -> None:
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
    if config.output not in (v.APPEND, v.UPDATE, v.COMPLETE):
        raise CallerError(
            f"output mode {config.output!r}",
            allowed=f"{v.APPEND}, {v.UPDATE}, {v.COMPLETE}",
            where=f"pipeline {config.pipeline!r}",
            action="set output",
        )


def _stamped(shown: pa.Table, epoch: int, *, deleted: bool) -> pa.Table:
    n = shown.num_rows
    out = shown.add_column(1, "_epoch", build(pa.int64(), np.full(n, epoch, np.int64)))
    return out.add_column(2, "_deleted", build(pa.bool_(), np.full(n, deleted, np.bool_)))


def _nulls(schema: pa.Schema, ids: Any) -> pa.Table:
    """Rows of ids alone."""
    rest = [pa.nulls(len(ids), field.type) for field in schema if field.name != "_gar_id"]
    return pa.table([ids, *rest], schema=schema)


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
        schema=UNFIT_SCHEMA,
    )
