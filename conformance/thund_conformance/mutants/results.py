"""Seeded bugs in windows, aggregates and what an epoch shows."""

# ruff: noqa: D103, SLF001 (catalogue.py says what each bug does; a bug reaches into what is private)
from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa

import thund.grid
import thund.results
import thund.sums
import thund.watermark
import thund.windows
from thund.accumulators import Accumulators
from thund.table import Table
from thund_conformance.mutants.patches import Patches
from thund_contract.vocabulary import UPDATE

Results = thund.results.Results
Windows = thund.windows.Windows


def truncated_start(p: Patches) -> None:
    def numbers(event_time: Any, rows: Any, *, size_ms: int, offset_ms: int) -> Any:
        times = event_time[rows] if len(rows) else event_time
        return np.array([int((int(t) - offset_ms) / size_ms) for t in times], np.int64)

    p.replace(thund.grid, "cell_numbers", numbers)


def sum_wraps_silently(p: Patches) -> None:
    def around(original: Any, block: Any, column: Any, count: Any) -> Any:
        values, _ = original(block, column, count)
        return values, {}

    p.wrap(thund.sums, "show_integer_sums", around)


def null_counted_as_a_value(p: Patches) -> None:
    p.replace(thund.sums, "counts", lambda block, column: block.word("rows").copy())


def closes_one_later(p: Patches) -> None:
    def passed(self: Any) -> int:
        return int(self._closed_by - self._config.grace_ms - 1)

    p.replace(Windows, "_passed", property(passed))


def closed_window_opens_again(p: Patches) -> None:
    p.replace(thund.watermark.Watermark, "LATE_EDGE", -(1 << 50))
    p.replace(Windows, "_refuse_closed", lambda self, cell: None)


def tables_stay(p: Patches, column: str) -> None:
    """Closed tables of the windows whose state has this column stay in it."""

    def close(original: Any, self: Any, watermark: int) -> None:
        before = dict(self._tables)
        original(self, watermark)
        gone = {cell: table for cell, table in before.items() if cell not in self._tables}
        self.__dict__.setdefault("_gone", {}).update(gone)

    def snapshot(original: Any, self: Any) -> Any:
        still_open = self._tables
        if self._start == column:
            self._tables = self.__dict__.get("_gone", {}) | still_open
        try:
            return original(self)
        finally:
            self._tables = still_open

    p.replace(Table, "free", lambda self: None)
    p.wrap(Windows, "close", close)
    p.wrap(Windows, "snapshot", snapshot)


def closed_windows_stay(p: Patches) -> None:
    tables_stay(p, "window_start")


def shown_without_a_new_row(p: Patches) -> None:
    def around(original: Any, self: Any, start_ms: int, *, touched: bool = False) -> Any:
        del touched
        return original(self, start_ms)

    p.wrap(Table, "block", around)


def append_shows_open_windows(p: Patches) -> None:
    p.replace(Results, "shows_open", property(lambda self: True))


def update_shows_a_close(p: Patches) -> None:
    def around(original: Any, self: Any, watermark: int) -> None:
        self._results.closing = True
        original(self, watermark)
        self._results.closing = False

    def touched(self: Any) -> bool:
        return bool(self._config.output == UPDATE and not getattr(self, "closing", False))

    p.wrap(Windows, "close", around)
    p.replace(Results, "shows_touched", property(touched))


def update_misses_what_closed(p: Patches) -> None:
    def around(original: Any, self: Any, watermark: int) -> None:
        original(self, watermark)
        if self._config.output == UPDATE:
            self._results._leaving = []

    p.wrap(Windows, "close", around)


def complete_forgets_over_a_restart(p: Patches) -> None:
    def around(original: Any, self: Any, tables: Any) -> None:
        original(self, tables)
        self._rows, self._unfit = [], []

    p.wrap(Results, "restore", around)


def identity_without_operator(p: Patches) -> None:
    def around(original: Any, config: Any, *rest: Any) -> Any:
        return original(dataclasses.replace(config, operator=""), *rest)

    p.wrap(thund.results, "gar_ids", around)


def state_not_restored(p: Patches) -> None:
    def around(original: Any, self: Any, tables: Any, watermark: int) -> None:
        empty = {name: table.slice(0, 0) for name, table in tables.items()}
        original(self, empty, watermark)

    p.wrap(Windows, "restore", around)


def partials_rounded_in_the_state(p: Patches) -> None:
    def around(original: Any, self: Any, block: Any) -> Any:
        tables = original(self, block)
        for name in tables:
            if name.endswith(".wide"):
                tables[name] = pa.nulls(len(tables[name]), tables[name].type)
        return tables

    p.wrap(Accumulators, "partials", around)
