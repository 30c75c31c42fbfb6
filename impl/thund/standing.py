"""Where a pipeline stands: which partition holds W, since when, and what waits for it.

It reads no store: what an epoch has committed is handed in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from thund.columns import unviewed
from thund.manifest import Manifest
from thund.windows import grid_of
from thund_contract.vocabulary import HOPPING, NEVER, SESSION, Config, PartitionState

LOOK_BACK = 10_000
"""The most epochs that are looked at for the first one under the same holder."""


@dataclass(frozen=True, slots=True)
class OpenWindow:
    """A window that is open, and how many keys have a result in it so far.

    operator: the name of a further window; "" for the first one.
    """

    start_ms: int
    end_ms: int
    groups: int
    operator: str = ""


@dataclass(frozen=True, slots=True)
class Since:
    """The first epoch from which on the holder is the same, and when it was committed.

    earlier: it was the same before, in epochs that were not looked at. written_ms: None where the
    store does not know.
    """

    epoch: int
    earlier: bool
    written_ms: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionStanding:
    """One partition. behind_ms: how far its largest event time is behind the largest of all assigned.

    Law: W7.
    """

    partition: str
    assigned: bool
    idle: bool
    holds: bool
    last: int
    max_event_time: int | None
    behind_ms: int | None
    accepted: int
    admitted: int
    late: int
    invalid: int
    filtered: int
    repeated: int
    late_window_drops: int


@dataclass(frozen=True, slots=True)
class Standing:
    """A pipeline as its newest epoch left it.

    holder: the partition that W waits for; None after a drain, and where none is active. bound: the
    W that the holder allows; where that is less than W, W stands where it was before the holder came
    or came back, and moves on when the holder has passed it. without: what W would be without the
    holder; waiting: the open windows that would close then.

    Law: W7.
    """

    pipeline: str
    epoch: int
    generation: str
    drained: bool
    watermark: int
    holder: str | None
    bound: int | None
    since: Since | None
    without: int | None
    waiting: tuple[OpenWindow, ...]
    partitions: tuple[PartitionStanding, ...]


def standing_of(
    config: Config,
    manifest: Manifest,
    *,
    windows: Sequence[OpenWindow],
    history: Iterable[tuple[int, Sequence[PartitionState]]],
) -> Standing:
    """A pipeline after an epoch. history: that epoch and those before it, newest first.

    Law: W7.
    """
    partitions, w = manifest.partitions, manifest.watermark
    held_by = None if manifest.drained else holder(partitions)
    rest = None if held_by is None else without(w, partitions, config.delay_ms, held_by)
    return Standing(
        pipeline=manifest.pipeline,
        epoch=manifest.epoch,
        generation=manifest.generation,
        drained=manifest.drained,
        watermark=w,
        holder=held_by,
        bound=None if held_by is None else bound(partitions, config.delay_ms),
        since=None if held_by is None else since(held_by, history),
        without=rest,
        waiting=() if rest is None else waiting(config, rest, windows),
        partitions=partitions_of(partitions, held_by),
    )


def active(partitions: Iterable[PartitionState]) -> list[PartitionState]:
    """Those that W waits for: assigned and not idle. Law: W2, W4."""
    return [p for p in partitions if p.assigned and not p.idle]


def holder(partitions: Iterable[PartitionState]) -> str | None:
    """The partition that W waits for: the furthest behind, none yet before all, then by name.

    Law: W7.
    """
    order = [
        (p.max_event_time is not None, p.max_event_time or 0, p.partition)
        for p in active(partitions)
    ]
    return min(order)[2] if order else None


def bound(partitions: Iterable[PartitionState], delay_ms: int) -> int | None:
    """The W that the active partitions allow; None where there is none. Law: W2, W4."""
    times = [p.max_event_time for p in active(partitions)]
    known = [time for time in times if time is not None]
    if len(known) < len(times):
        return NEVER
    return min(known) - delay_ms if known else None


def without(watermark: int, partitions: Iterable[PartitionState], delay_ms: int, name: str) -> int:
    """What W would be if one partition were not there. Law: W7."""
    rest = bound([p for p in partitions if p.partition != name], delay_ms)
    return watermark if rest is None else max(watermark, rest)


def waiting(
    config: Config, watermark: int, windows: Iterable[OpenWindow]
) -> tuple[OpenWindow, ...]:
    """Those of the open windows that some W would close. Law: W7, F1."""
    return tuple(w for w in windows if w.end_ms + config.grace_ms <= watermark)


def since(
    name: str, history: Iterable[tuple[int, Sequence[PartitionState]]], look_back: int = LOOK_BACK
) -> Since | None:
    """Since when a partition is the holder. history: epochs and their partitions, newest first.

    Law: W7.
    Cost: it takes one epoch more from `history` than the holder has held, at most look_back + 1.
    """
    first = None
    for looked, (epoch, partitions) in enumerate(history):
        if holder(partitions) != name:
            break
        if looked == look_back:
            return Since(first or epoch, earlier=True)
        first = epoch
    return None if first is None else Since(first, earlier=False)


def partitions_of(
    partitions: Sequence[PartitionState], held_by: str | None
) -> tuple[PartitionStanding, ...]:
    """Every partition beside the one that is furthest on. Law: W7."""
    known = [p.max_event_time for p in partitions if p.assigned and p.max_event_time is not None]
    lead = max(known, default=None)
    return tuple(
        PartitionStanding(
            partition=p.partition,
            assigned=p.assigned,
            idle=p.idle,
            holds=p.partition == held_by,
            last=p.last,
            max_event_time=p.max_event_time,
            behind_ms=None
            if lead is None or p.max_event_time is None
            else max(0, lead - p.max_event_time),
            accepted=p.accepted,
            admitted=p.admitted,
            late=p.late,
            invalid=p.invalid,
            filtered=p.filtered,
            repeated=p.repeated,
            late_window_drops=p.late_window_drops,
        )
        for p in partitions
    )


def open_windows(
    config: Config, watermark: int, state: pa.Table, *, operator: str = ""
) -> tuple[OpenWindow, ...]:
    """The windows with rows that W has not closed, sorted, from a state's table of groups.

    config: of one operator, which has that name.

    Law: F3, G1, G2, G3, G5.
    """
    if config.window.kind == SESSION:
        bounds = (state.column(name).to_pylist() for name in ("window_start", "window_end"))
        found = Counter(zip(*bounds, strict=True))
    else:
        found = _over_cells(config, state)
    return tuple(
        OpenWindow(start, end, groups, operator)
        for (start, end), groups in sorted(found.items())
        if end + config.grace_ms > watermark
    )


def _over_cells(config: Config, state: pa.Table) -> Counter[tuple[int, int]]:
    """Start and end of each window over the cells of a grid, and the keys in it."""
    grid = grid_of(config)
    cells = state.column(
        "cell_start" if config.window.kind == HOPPING else "window_start"
    ).to_numpy()
    order = np.argsort(cells, kind="stable")
    names = [f"key({name})" for name in config.key]
    keys = pa.table({name: _movable(state.column(name)) for name in names})
    cells = cells[order]
    found: Counter[tuple[int, int]] = Counter()
    for window in {window for cell in np.unique(cells).tolist() for window in grid.windows(cell)}:
        first, last = np.searchsorted(cells, window).tolist()
        several = cells[first] != cells[last - 1]
        found[window] = last - first
        if several and names:
            inside = keys.take(pa.array(order[first:last]))
            found[window] = inside.group_by(names).aggregate([]).num_rows
        elif several:
            found[window] = 1
    return found


def _movable(column: Any) -> Any:
    return column.cast(unviewed(column.type))
