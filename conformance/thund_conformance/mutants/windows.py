"""Seeded bugs in hopping, session and calendar windows, in tombstones, and in panes."""

# ruff: noqa: D103, SLF001 (catalogue.py says what each bug does; a bug reaches into what is private)
from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import thund.calendar
import thund.grid
import thund.late
import thund.panes
import thund.pipeline
import thund.results
import thund.session_table
import thund.sessions
import thund.watermark
import thund.windows
from thund.kernel_sessions import EARLIER, KEY, SHOWN, START
from thund_conformance.mutants.patches import Patches
from thund_conformance.mutants.results import tables_stay
from thund_contract.vocabulary import (
    COMPLETE,
    LATE,
    NEVER,
    ON_TIME,
    RETRACTING,
    ROW_RULE,
    UPDATE,
)

Calendar = thund.calendar.Calendar
Core = thund.pipeline.Core
FreshWindows = thund.panes.FreshWindows
LateRule = thund.late.LateRule
Panes = thund.panes.Panes
Results = thund.results.Results
SessionTable = thund.session_table.SessionTable
Sessions = thund.sessions.Sessions
Slides = thund.grid.Slides
Watermark = thund.watermark.Watermark
Windows = thund.windows.Windows


# ---- hopping windows --------------------------------------------------------------------------------


def hops_by_the_quotient(p: Patches) -> None:
    def around(original: Any, self: Any, cell: int, **after: int) -> Any:
        last = self.last_window(cell)[0]
        first = last - (self._size // self._slide - 1) * self._slide
        return [window for window in original(self, cell, **after) if window[0] >= first]

    p.wrap(Slides, "windows", around)


def ends_cut_no_cell(p: Patches) -> None:
    def around(original: Any, self: Any, **sizes: int) -> None:
        original(self, **sizes)
        self._rest = 0

    p.wrap(Slides, "__init__", around)


def cell_dropped_early(p: Patches) -> None:
    def around(original: Any, self: Any, watermark: int) -> None:
        original(self, watermark)
        for cell in list(self._tables):
            if self._grid.windows(cell)[0][1] <= self._passed:
                self._tables.pop(cell).free()

    p.wrap(Windows, "close", around)


def cells_merged_in_place(p: Patches) -> None:
    def merged(self: Any, start: int, tables: Any) -> Any:
        whole, *rest = tables
        for table in rest:
            block = table.block(start)
            whole.merge(block, block.inputs(self._coding.layout))
        return whole.block(start, touched=self._results.shows_touched).own()

    p.replace(Windows, "_merged", merged)


def cells_stay(p: Patches) -> None:
    tables_stay(p, "cell_start")


# ---- the window rule --------------------------------------------------------------------------------


def late_by_the_first_window(p: Patches) -> None:
    def around(original: Any, self: Any) -> Any:
        words = original(self)
        words[1] = words[2]
        return words

    p.wrap(LateRule, "words", around)


def missed_windows_counted_as_one(p: Patches) -> None:
    def around(original: Any, self: Any, partitions: Any, missed: Any) -> None:
        original(self, partitions, [1] * len(missed))

    p.wrap(Watermark, "count_missed", around)


def missed_windows_take_the_row(p: Patches) -> None:
    def fold(self: Any, delivery: Any, times: Any, admission: Any) -> None:
        self.windows.fold(delivery, times.values, admission.admitted)
        if len(admission.missed):
            rows = np.flatnonzero(admission.missed)
            names = [delivery.partitions[index] for index in delivery.partition[rows].tolist()]
            self.watermark.count_missed(names, admission.missed[rows].tolist())

    p.replace(Core, "_fold", fold)


def open_sessions_hold_no_late_row(p: Patches) -> None:
    def around(original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if self._rule.gap_ms and self._rule.by_window:
            self.LATE_EDGE = -self._rule.grace_ms
            self._rule = dataclasses.replace(self._rule, kind=ROW_RULE)

    p.wrap(Watermark, "__init__", around)


def closed_sessions_take_rows(p: Patches) -> None:
    def around(original: Any, self: Any, *args: Any, grace_ms: int, epoch: int) -> Any:
        return original(self, *args, grace_ms=1 << 52, epoch=epoch)

    p.wrap(SessionTable, "place", around)


# ---- sessions ---------------------------------------------------------------------------------------


def gap_counts_both_ends(p: Patches) -> None:
    def init(original: Any, self: Any, layout: Any, pool: Any, gap_ms: int) -> None:
        original(self, layout, pool, gap_ms + 1)

    def expire(original: Any, self: Any, limit: int) -> Any:
        return original(self, limit + 1)

    def groups(original: Any, self: Any, blocks: Any) -> Any:
        found = original(self, blocks)
        return dataclasses.replace(found, ends=found.ends - 1)

    p.wrap(SessionTable, "__init__", init)
    p.wrap(SessionTable, "expire", expire)
    p.wrap(Sessions, "_groups", groups)


def bridge_joins_one_side(p: Patches) -> None:
    p.edit(
        thund.session_table,
        "place",
        "if entries[b + END] <= t:",
        "if entries[b + END] <= t or target != 0:",
    )


def bridge_forgets_what_was_there(p: Patches) -> None:
    p.replace(SessionTable, "_merge_states", lambda self, pairs: None)


def closes_without_the_gap(p: Patches) -> None:
    def around(original: Any, self: Any, limit: int) -> Any:
        return original(self, limit + self._gap)

    p.wrap(SessionTable, "expire", around)


def older_sessions_lost_by_a_restart(p: Patches) -> None:
    def around(original: Any, self: Any, *args: Any) -> None:
        original(self, *args)
        self._words()[:, EARLIER] = 0

    p.wrap(SessionTable, "restore", around)


def closed_sessions_stay(p: Patches) -> None:
    p.replace(SessionTable, "drop", lambda self, numbers: None)


def _without_tombstones(p: Patches, mode: str) -> None:
    def around(original: Any, self: Any, epoch: int, still_open: Any, *gone: Any) -> Any:
        kept = () if self._config.output == mode else gone
        return original(self, epoch, still_open, *kept)

    p.wrap(Results, "emit", around)


def update_keeps_taken_sessions(p: Patches) -> None:
    _without_tombstones(p, UPDATE)


def complete_keeps_taken_sessions(p: Patches) -> None:
    _without_tombstones(p, COMPLETE)


def closed_sessions_taken_back(p: Patches) -> None:
    def around(original: Any, self: Any, limit: int) -> Any:
        numbers = original(self, limit)
        shown = numbers[self._words()[numbers, SHOWN] == 1]
        self._taken.append(self._words()[shown][:, [KEY, START]])
        return numbers

    p.wrap(SessionTable, "expire", around)


def restored_sessions_were_never_shown(p: Patches) -> None:
    def around(original: Any, self: Any, *args: Any) -> None:
        original(self, *args)
        self._words()[:, SHOWN] = 0

    p.wrap(SessionTable, "restore", around)


# ---- calendar windows -------------------------------------------------------------------------------


def one_distance_a_year(p: Patches) -> None:
    def around(original: Any, zone: str, low: int, high: int) -> Any:
        return tuple(each[:1] for each in original(zone, low, high))

    p.wrap(thund.calendar, "_distances", around)


def negative_local_time_truncated(p: Patches) -> None:
    def around(original: Any, self: Any, *args: Any) -> Any:
        found = original(self, *args)
        return [(self.window(cell)[1] if cell < 0 else cell, *rest) for cell, *rest in found]

    p.wrap(Calendar, "cells", around)


def second_midnight_starts_a_day(p: Patches) -> None:
    def around(original: Any, local: Any, changes: Any, distances: Any) -> Any:
        starts = [original(local, changes, distances)]
        for at in range(1, len(changes)):
            low, high = changes[at] + distances[at], changes[at] + distances[at - 1]
            starts.append(local[(low <= local) & (local < high)] - distances[at])
        return np.unique(np.concatenate(starts))

    p.wrap(thund.calendar, "_reached", around)


def skipped_midnight_too_early(p: Patches) -> None:
    p.edit(
        thund.calendar,
        "_reached",
        "np.maximum(changes[at], local - distances[at])",
        "local - distances[at]",
    )


def hours_by_their_label(p: Patches) -> None:
    def around(original: Any, changes: Any, distances: Any, high: int, offset_ms: int) -> Any:
        starts = original(changes, distances, high, offset_ms)
        local = starts + distances[np.searchsorted(changes, starts, "right") - 1] - offset_ms
        labels = local // thund.calendar._HOUR_MS
        return starts[np.flatnonzero(np.diff(labels, prepend=labels[0] - 1))]

    p.wrap(thund.calendar, "_hours", around)


def cycle_of_one_day_more(p: Patches) -> None:
    def around(original: Any, times: Any) -> Any:
        home, shift = original(times)
        return home, shift + np.sign(shift) * thund.calendar._DAY_MS

    p.wrap(thund.calendar, "_at_home", around)


# ---- panes ------------------------------------------------------------------------------------------


def numbers_start_again(p: Patches) -> None:
    def around(original: Any, self: Any, tables: Any) -> None:
        original(self, tables)
        self._last = self._last.slice(0, 0)

    p.wrap(Panes, "restore", around)


def taken_back_with_the_new_values(p: Patches) -> None:
    def around(original: Any, self: Any, rows: Any, fresh: Any, **when: int) -> Any:
        lane = original(self, rows, fresh, **when)
        ids, back = lane.column("_gar_id"), lane.column("_retraction").to_numpy()
        following = np.minimum(np.arange(len(back)) + 1, len(back) - 1)
        same = pc.equal(ids, ids.take(pa.array(following))).to_numpy()
        taken = np.where(back & same, following, np.arange(len(back)))
        for name in self._values if self._kind == RETRACTING else ():
            place = lane.schema.get_field_index(name)
            lane = lane.set_column(place, name, lane.column(name).take(pa.array(taken)))
        return lane

    p.wrap(Panes, "show", around)


def on_time_each_time(p: Patches) -> None:
    def around(original: Any, self: Any, *args: Any) -> Any:
        shown = original(self, *args)
        place, timing = shown.schema.get_field_index("_timing"), shown.column("_timing")
        again = pc.if_else(pc.equal(timing, LATE), ON_TIME, timing)
        return shown.set_column(place, shown.schema.field(place), again)

    p.wrap(Panes, "_panes", around)


def discarding_keeps_its_rows(p: Patches) -> None:
    p.replace(FreshWindows, "_empty", lambda self: None)


def tombstones_take_no_pane_back(p: Patches) -> None:
    def around(original: Any, self: Any, rows: Any, fresh: Any, **when: int) -> Any:
        return original(self, rows.filter(pc.invert(rows.column("_deleted"))), fresh, **when)

    p.wrap(Panes, "show", around)


def panes_stay(p: Patches) -> None:
    def around(original: Any, self: Any, shown: Any, ids: Any, watermark: int) -> None:
        del watermark
        original(self, shown, ids, NEVER)

    p.wrap(Panes, "_remember", around)
