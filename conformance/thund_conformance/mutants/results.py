"""Seeded bugs in windows, aggregates and what an epoch shows."""

# ruff: noqa: D103, SLF001 (catalogue.py says what each bug does; a bug reaches into what is private)
from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa

import thund.sums
import thund.watermark
import thund.windows
from thund.accumulators import Accumulators
from thund_conformance.mutants.patches import Patches
from thund_contract.vocabulary import APPEND, NEVER, UPDATE

Windows = thund.windows.Windows


def truncated_start(p: Patches) -> None:
    def numbers(event_time: Any, rows: Any, *, size_ms: int, offset_ms: int) -> Any:
        times = event_time[rows] if len(rows) else event_time
        return np.array([int((int(t) - offset_ms) / size_ms) for t in times], np.int64)

    p.replace(thund.windows, "window_numbers", numbers)


def sum_wraps_silently(p: Patches) -> None:
    def around(original: Any, block: Any, column: Any, count: Any) -> Any:
        values, _ = original(block, column, count)
        return values, {}

    p.wrap(thund.sums, "show_integer_sums", around)


def null_counted_as_a_value(p: Patches) -> None:
    p.replace(thund.sums, "counts", lambda block, column: block.word("rows").copy())


def closes_one_later(p: Patches) -> None:
    def is_closed(end_ms: int, *, grace_ms: int, watermark: int) -> bool:
        return watermark != NEVER and end_ms + grace_ms < watermark

    p.replace(thund.windows, "is_closed", is_closed)


def closed_window_opens_again(p: Patches) -> None:
    p.replace(thund.watermark.Watermark, "LATE_EDGE", -(1 << 50))
    p.replace(Windows, "_refuse_closed", lambda self, number: None)


def closed_windows_stay(p: Patches) -> None:
    def close(self: Any, watermark: int) -> None:
        shown = self.__dict__.setdefault("_shown", set())
        for number in sorted(n for n in self._tables if self._is_due(n, watermark)):
            if number not in shown:
                shown.add(number)
                self._leaving.append(thund.windows._own(self._block(number, self._tables[number])))
        self._forbid(watermark)

    p.replace(Windows, "close", close)


def shown_without_a_new_row(p: Patches) -> None:
    def block(self: Any, number: int, table: Any) -> Any:
        return table.block(number * self._size + self._offset)

    p.replace(Windows, "_block", block)


def append_shows_open_windows(p: Patches) -> None:
    def around(original: Any, self: Any, epoch: int) -> Any:
        rows, unfit = original(self, epoch)
        if self._config.output == APPEND:
            blocks = [self._block(n, table) for n, table in sorted(self._tables.items())]
            shown, _ = self._show(blocks)
            rows = pa.concat_tables([rows, thund.windows._stamped(shown, epoch)])
        return rows, unfit

    p.wrap(Windows, "emit", around)


def update_shows_a_close(p: Patches) -> None:
    def around(original: Any, self: Any, watermark: int) -> None:
        touches, self._touches = self._touches, False
        original(self, watermark)
        self._touches = touches

    p.wrap(Windows, "close", around)


def update_misses_what_closed(p: Patches) -> None:
    def around(original: Any, self: Any, watermark: int) -> None:
        original(self, watermark)
        if self._config.output == UPDATE:
            self._leaving = []

    p.wrap(Windows, "close", around)


def complete_forgets_over_a_restart(p: Patches) -> None:
    def around(original: Any, self: Any, tables: Any) -> None:
        original(self, tables)
        self._results, self._results_unfit = [], []

    p.wrap(Windows, "restore", around)


def identity_without_operator(p: Patches) -> None:
    def around(original: Any, config: Any, *rest: Any) -> Any:
        return original(dataclasses.replace(config, operator=""), *rest)

    p.wrap(thund.windows, "gar_ids", around)


def state_not_restored(p: Patches) -> None:
    def around(original: Any, self: Any, tables: Any) -> None:
        original(self, {name: table.slice(0, 0) for name, table in tables.items()})

    p.wrap(Windows, "restore", around)


def partials_rounded_in_the_state(p: Patches) -> None:
    def around(original: Any, self: Any, block: Any) -> Any:
        tables = original(self, block)
        for name in tables:
            if name.endswith(".wide"):
                tables[name] = pa.nulls(len(tables[name]), tables[name].type)
        return tables

    p.wrap(Accumulators, "partials", around)
