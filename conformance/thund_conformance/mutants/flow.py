"""Seeded bugs on the way of a row from its source to its window: source, credits, watermark."""

# ruff: noqa: D103, SLF001 (catalogue.py says what each bug does; a bug reaches into what is private)
from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import thund.connectors.files
import thund.connectors.logs
import thund.credits
import thund.kernel_time
import thund.pipeline
import thund.prepare
import thund.repeats
import thund.source
import thund.standing
import thund.watermark
from thund_conformance.mutants.patches import Patches
from thund_contract.vocabulary import NEVER, ROW_RULE, Rows

FileSource = thund.connectors.files.FileSource
FileLog = thund.connectors.logs.FileLog
Sequencer = thund.source.Sequencer
Credits = thund.credits.Credits
Core = thund.pipeline.Core
Repeats = thund.repeats.Repeats
Watermark = thund.watermark.Watermark


# ---- source and link ------------------------------------------------------------------------------


def reread_one_row_late(p: Patches) -> None:
    def around(original: Any, self: Any, partition: str, first: int, last: int) -> Any:
        return original(self, partition, min(first + 1, last), last)

    p.wrap(FileSource, "read_rows", around)


def order_of_arrival(p: Patches) -> None:
    def deliver(self: Any, d: Any) -> Any:
        for name, (_, last) in d.by_partition().items():
            self._logs[name].last = max(self._logs[name].last, last)
        return d

    p.replace(Sequencer, "deliver", deliver)


def held_again_uncounted(p: Patches) -> None:
    def around(original: Any, self: Any, d: Any, row: int, *rest: Any) -> None:
        if int(d.offset[row]) not in self._logs[d.partitions[d.partition[row]]].held:
            original(self, d, row, *rest)

    p.wrap(Sequencer, "_take", around)


def lost_rows_skipped(p: Patches) -> None:
    p.replace(FileLog, "verify", lambda self, marks: None)


def partitions_one_after_the_other(p: Patches) -> None:
    def order(self: Any, stretch: Any) -> Any:
        return np.zeros(len(stretch.offsets), np.int64)

    p.replace(FileSource, "_order", order)


def duplicate_takes_a_credit(p: Patches) -> None:
    def around(original: Any, self: Any, delivery: Any) -> None:
        before = self.duplicates
        original(self, delivery)
        window = self.credits._windows[delivery.partitions[0]]
        window.in_flight = min(window.in_flight + self.duplicates - before, self.credits.window)

    p.wrap(Core, "deliver", around)


def full_window_unseen(p: Patches) -> None:
    p.replace(Credits, "full", lambda self: False)
    p.replace(Core, "_stop", lambda self, delivery, limit: limit)


def credits_come_back_once(p: Patches) -> None:
    def around(original: Any, self: Any) -> None:
        if not getattr(self, "_came_back", False):
            original(self)
        self._came_back = True

    p.wrap(Core, "committed", around)


def credit_not_asked(p: Patches) -> None:
    def around(original: Any, self: Any, after: Any, credit: Any, max_rows: int) -> Any:
        return original(self, after, dict.fromkeys(credit, 1 << 40), max_rows)

    p.wrap(FileSource, "read", around)


# ---- watermark ------------------------------------------------------------------------------------


def maximum_not_restored(p: Patches) -> None:
    def around(original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self._tops[:] = NEVER

    p.wrap(Watermark, "__init__", around)


def delay_forgotten(p: Patches) -> None:
    def around(original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self._delay = 0

    p.wrap(Watermark, "__init__", around)


def partition_without_rows_ignored(p: Patches) -> None:
    def candidate(self: Any, tops: Any) -> int:
        known = tops[self._assigned & ~self._idle & (tops != NEVER)]
        return int(known.min()) - self._delay if len(known) else NEVER

    p.replace(Watermark, "_candidate", candidate)


def watermark_falls(p: Patches) -> None:
    def settle(self: Any) -> None:
        self.W = self._candidate(self._tops)

    p.replace(Watermark, "_settle", settle)


def watermark_moves_with_the_batch(p: Patches) -> None:
    def admit_all(self: Any, event_time: Any, partition: Any, slots: Any, rows: Any) -> bool:
        edge, self.LATE_EDGE = self.W, -(1 << 62)
        try:
            return event_time.low >= edge and bool(
                original(self, event_time, partition, slots, rows)
            )
        finally:
            del self.LATE_EDGE

    original = p.original(Watermark, "_admit_all")
    p.replace(Watermark, "_admit_all", admit_all)


def removed_partition_forgotten(p: Patches) -> None:
    def around(original: Any, self: Any, partition: str) -> None:
        original(self, partition)
        self._tops[self._slot[partition]] = NEVER

    p.wrap(Watermark, "remove", around)


def drain_stops_at_the_largest_time(p: Patches) -> None:
    def drain(self: Any) -> None:
        self.W = max(self.W, int(self._tops.max()))

    p.replace(Watermark, "drain", drain)


# ---- idle partitions, and what status says ----------------------------------------------------------


def idle_clock_runs_at_work(p: Patches) -> None:
    p.replace(Core, "resume", lambda self: self.waited())


def idleness_read_inside_an_epoch(p: Patches) -> None:
    def around(original: Any, self: Any) -> None:
        original(self)
        if self.idle_now:
            self.idle(self._quiet.over())

    p.wrap(Core, "tick", around)


def idle_one_after_the_other(p: Patches) -> None:
    def around(original: Any, self: Any, partitions: Any) -> None:
        for name in partitions:
            original(self, (name,))

    p.wrap(Watermark, "idle", around)


def reading_not_recorded(p: Patches) -> None:
    def idle(self: Any, partitions: Any) -> None:
        for name in partitions:
            self._quiet.stop(name)
        self.watermark.idle(partitions)

    p.replace(Core, "idle", idle)


def wake_seen_by_the_next_move(p: Patches) -> None:
    def around(original: Any, self: Any, *args: Any) -> Any:
        asleep = self._assigned & self._idle
        self._assigned[asleep] = False
        try:
            return original(self, *args)
        finally:
            self._assigned[asleep] = True

    p.wrap(Watermark, "_admit_each", around)


def waking_batch_taken_whole(p: Patches) -> None:
    def around(original: Any, self: Any, *args: Any) -> bool:
        self._idle[args[-1] > 0] = False
        return bool(original(self, *args))

    p.wrap(Watermark, "_admit_all", around)


def restart_wakes(p: Patches) -> None:
    def around(original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self._idle[:] = False

    p.wrap(Watermark, "__init__", around)


def removed_partition_wakes(p: Patches) -> None:
    def around(original: Any, self: Any, partition: str) -> None:
        original(self, partition)
        self._idle[self._slot[partition]] = False

    p.wrap(Watermark, "remove", around)


def resumed_partition_lowers_the_watermark(p: Patches) -> None:
    def around(original: Any, self: Any, *args: Any) -> Any:
        asleep = int(self._idle.sum())
        found = original(self, *args)
        if self._idle.sum() < asleep:
            self.W = self._candidate(self._tops)
        return found

    p.wrap(Watermark, "_admit_each", around)


def invalid_row_does_not_end_the_quiet(p: Patches) -> None:
    def around(original: Any, self: Any, delivery: Any) -> None:
        clocks = dict(self._quiet._clocks)
        before = {one.partition: one.invalid for one in self.partitions()}
        original(self, delivery)
        for one in self.partitions():
            rows, _ = delivery.by_partition().get(one.partition, (0, 0))
            if rows and one.invalid - before[one.partition] == rows:
                self._quiet._clocks[one.partition] = clocks[one.partition]

    p.wrap(Core, "_process", around)


def held_row_does_not_stop_the_clock(p: Patches) -> None:
    p.replace(Sequencer, "held", lambda self, partition: 0)


def status_counts_idle_partitions(p: Patches) -> None:
    def active(partitions: Any) -> Any:
        return [one for one in partitions if one.assigned]

    p.replace(thund.standing, "active", active)


def status_keeps_the_holder_in_the_bound(p: Patches) -> None:
    def without(watermark: int, partitions: Any, delay_ms: int, name: str) -> int:
        found = thund.standing.bound(partitions, delay_ms)
        return watermark if found is None else max(watermark, found)

    p.replace(thund.standing, "without", without)


def status_since_the_newest_epoch(p: Patches) -> None:
    def around(original: Any, name: str, history: Any) -> Any:
        return original(name, list(history)[:1])

    p.wrap(thund.standing, "since", around)


# ---- admission ------------------------------------------------------------------------------------


def late_at_the_watermark(p: Patches) -> None:
    p.replace(Watermark, "LATE_EDGE", 1)


def guard_off(p: Patches) -> None:
    p.replace(Watermark, "_guard", lambda self, event_time: event_time)


def late_rows_counted_twice(p: Patches) -> None:
    def around(original: Any, self: Any, event_time: Any, partition: Any, slots: Any) -> Any:
        admission = original(self, event_time, partition, slots)
        for row in admission.late:
            self._counts[slots[partition[row]], thund.kernel_time.ADMITTED] += 1
        return admission

    p.wrap(Watermark, "_admit_each", around)


def late_lane_has_a_later_watermark(p: Patches) -> None:
    def around(original: Any, self: Any, event_time: Any, partition: Any, slots: Any) -> Any:
        admission = original(self, event_time, partition, slots)
        admission.late_watermark[:] = self.W
        return admission

    p.wrap(Watermark, "_admit_each", around)


def slow_partition_overtaken(p: Patches) -> None:
    def candidate(self: Any, tops: Any) -> int:
        active = tops[self._assigned & ~self._idle]
        high = int(active.max()) if len(active) else NEVER
        return NEVER if high == NEVER else high - self._delay

    p.replace(Watermark, "_candidate", candidate)


def duplicate_accepted_again(p: Patches) -> None:
    def around(original: Any, self: Any, d: Any) -> Any:
        accepted = original(self, d)
        single = d.num_rows == 1 and accepted.num_rows == 0
        held = single and int(d.offset[0]) in self._logs[d.partitions[0]].held
        return d if single and not held else accepted

    p.wrap(Sequencer, "deliver", around)


# ---- late rules -----------------------------------------------------------------------------------


def _with_another_rule(p: Patches, **changes: Any) -> None:
    """Rows are judged by a rule that is not the configured one."""

    def around(original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self._rule = dataclasses.replace(self._rule, **changes)

    p.wrap(Watermark, "__init__", around)


def every_rule_is_the_row_rule(p: Patches) -> None:
    _with_another_rule(p, kind=ROW_RULE)


def window_rule_without_grace(p: Patches) -> None:
    _with_another_rule(p, grace_ms=0)


def window_rule_without_offset(p: Patches) -> None:
    _with_another_rule(p, offset_ms=0)


def partition_rule_overlooked_in_a_batch(p: Patches) -> None:
    def around(original: Any, self: Any, low: int, after: int, tops: Any) -> bool:
        own = np.full(len(tops), NEVER + self._delay)
        return bool(original(self, low, after, own))

    p.wrap(Watermark, "_may_be_late", around)


def rows_always_move_the_watermark(p: Patches) -> None:
    p.replace(Watermark, "_moves_by_row", property(lambda self: True))


def epochs_end_moves_nothing(p: Patches) -> None:
    p.replace(Watermark, "end_epoch", lambda self: None)


def epochs_end_closes_nothing(p: Patches) -> None:
    p.replace(Core, "end_epoch", lambda self: self.watermark.end_epoch())


# ---- repeats and the filter -------------------------------------------------------------------------


def _settling(p: Patches, knows: Callable[[int, int], bool], *, renewed: bool = False) -> None:
    """An id that was seen is known if `knows` says so of W and of event time + remember."""

    def settle(*of: Any) -> None:
        entries, times, watermarks, seen, last, remember, repeated = of
        for r, entry in enumerate(entries):
            repeated[r] = seen[entry] and knows(watermarks[r], last[entry] + remember)
            if renewed or not repeated[r]:
                seen[entry], last[entry] = True, times[r]

    p.replace(thund.repeats, "settle", settle)


def repeats_renew(p: Patches) -> None:
    _settling(p, operator.le, renewed=True)


def forgotten_at_the_bound(p: Patches) -> None:
    _settling(p, operator.lt)


def known_while_in_memory(p: Patches) -> None:
    _settling(p, lambda watermark, until: True)


def late_rows_remembered(p: Patches) -> None:
    def around(original: Any, self: Any, delivery: Any, times: Any, admission: Any) -> Any:
        if self._repeats and len(admission.late):
            late = admission.late
            self._repeats.judge(delivery.columns, times.values, admission.seen, late)
        return original(self, delivery, times, admission)

    p.wrap(Core, "_without_repeats", around)


def ids_lost_by_a_restart(p: Patches) -> None:
    p.replace(Repeats, "restore", lambda self, tables: None)


def ids_lost_at_the_cut(p: Patches) -> None:
    p.replace(Repeats, "forget", lambda self, watermark: self._clear())


def ids_never_forgotten(p: Patches) -> None:
    p.replace(Repeats, "forget", lambda self, watermark: None)


def filtered_rows_move_nothing(p: Patches) -> None:
    def around(original: Any, event_time: Any, passes: Any) -> Any:
        marked = original(event_time, passes)
        if passes is None:
            return marked
        values = np.where(marked.reasons == thund.kernel_time.NOT_PASSED, NEVER, marked.values)
        return dataclasses.replace(marked, values=values)

    p.wrap(thund.watermark, "_filtered", around)


def null_passes(p: Patches) -> None:
    p.edit(thund.prepare.Preparation, "apply", "fill_null(False)", "fill_null(True)")


def filtered_rows_are_late_first(p: Patches) -> None:
    def admit(
        original: Any,
        self: Any,
        times: Any,
        partition: Any,
        names: Any,
        *,
        passes: Any,
        **more: Any,
    ) -> Any:
        found = original(self, times, partition, names, **more)
        if passes is None:
            return found
        rows = found.admitted
        rows = np.arange(len(passes), dtype=np.uint32) if rows is None else rows
        gone = partition[rows[~passes[rows]]]
        self._count_as(thund.kernel_time.FILTERED, gone, names)
        return dataclasses.replace(found, admitted=rows[passes[rows]])

    p.wrap(Watermark, "admit", admit)


# ---- the order of items ---------------------------------------------------------------------------


def one_range_for_each_partition(p: Patches) -> None:
    def append_run(self: Any, run: Rows) -> None:
        for place, item in enumerate(self._items):
            if isinstance(item, Rows) and item.partition == run.partition:
                self._items[place] = Rows(
                    item.partition, item.first, run.last, item.rows + run.rows
                )
                return
        self._record(run)

    p.replace(Core, "_append_run", append_run)


def tick_not_recorded(p: Patches) -> None:
    def tick(self: Any) -> None:
        if self._items and self.config.max_future_ms is not None:
            self.watermark.clock(self.now())

    p.replace(Core, "tick", tick)
