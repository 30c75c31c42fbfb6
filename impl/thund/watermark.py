"""Event times per partition to one bound that never falls, and the rows it admits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from thund.columns import address
from thund.event_time import REASONS, EventTimes, decode_event_time
from thund.kernel_time import (
    ACCEPTED,
    ADMITTED,
    COUNTS,
    LATE,
    MISSED,
    NOT_PASSED,
    REPEATED,
    peaks,
    walk,
)
from thund.late import LateRule
from thund_contract import vocabulary as v
from thund_contract.errors import LawBroken

__all__ = [
    "REASONS",
    "Admission",
    "EventTimes",
    "LateRule",
    "PartitionCounts",
    "Watermark",
    "decode_event_time",
]

_TOO_FAR_AHEAD = REASONS.index(v.TOO_FAR_AHEAD)
_NO_REASONS: NDArray[np.uint8] = np.empty(0, np.uint8)
_NO_ROWS: NDArray[np.uint32] = np.empty(0, np.uint32)
_SCRATCH = (np.uint32, np.uint32, np.uint32, np.int64, np.int64)
_NO_WORDS: NDArray[np.int64] = np.empty(0, np.int64)


class Counts(Protocol):
    """What is restored of a partition: a PartitionCounts, or the vocabulary's PartitionState."""

    @property
    def partition(self) -> str: ...
    @property
    def assigned(self) -> bool: ...
    @property
    def max_event_time(self) -> int | None: ...
    @property
    def accepted(self) -> int: ...
    @property
    def admitted(self) -> int: ...
    @property
    def late(self) -> int: ...
    @property
    def invalid(self) -> int: ...
    @property
    def idle(self) -> bool: ...
    @property
    def late_window_drops(self) -> int: ...
    @property
    def filtered(self) -> int: ...
    @property
    def repeated(self) -> int: ...


@dataclass(frozen=True, slots=True)
class PartitionCounts:
    """A partition's largest event time and its rows, and whether W goes on without it.

    Law: W1, W4, A5.
    """

    partition: str
    assigned: bool
    max_event_time: int | None
    accepted: int
    admitted: int
    late: int
    invalid: int
    idle: bool
    late_window_drops: int
    filtered: int
    repeated: int


@dataclass(frozen=True, slots=True)
class Admission:
    """What became of the rows of a batch, as row indices. admitted is None for all of them.

    Each late and invalid row has the W that it saw; a reason is an index into REASONS. Where windows
    decide what is late and some may be, each row of the batch has the W just before it in seen;
    where they overlap too, the number of the last window closed then in closed, and in missed how
    many of those that hold it are.
    """

    admitted: NDArray[np.uint32] | None
    late: NDArray[np.uint32] = field(default_factory=lambda: _NO_ROWS)
    late_watermark: NDArray[np.int64] = field(default_factory=lambda: _NO_WORDS)
    invalid: NDArray[np.uint32] = field(default_factory=lambda: _NO_ROWS)
    invalid_reason: NDArray[np.uint8] = field(default_factory=lambda: _NO_REASONS)
    invalid_watermark: NDArray[np.int64] = field(default_factory=lambda: _NO_WORDS)
    seen: NDArray[np.int64] = field(default_factory=lambda: _NO_WORDS)
    closed: NDArray[np.int64] = field(default_factory=lambda: _NO_WORDS)
    missed: NDArray[np.int64] = field(default_factory=lambda: _NO_WORDS)


class Watermark:
    """The bound W of some partitions, moved row by row. tells_seen: Admission.seen is always wanted.

    Law: W1, W2, W3, W4, W5, W6, A1, A2, A3, A4, A5, A6.
    """

    LATE_EDGE = 0
    """A row is late iff its event time < W + LATE_EDGE: strictly before W.

    Law: A1.
    """

    def __init__(
        self,
        delay_ms: int,
        max_future_ms: int | None = None,
        partitions: Iterable[Counts] = (),
        watermark: int = v.NEVER,
        rule: LateRule | None = None,
        *,
        tells_seen: bool = False,
    ) -> None:
        self.W, self._tells_seen = watermark, tells_seen
        self._rule = rule or LateRule()
        self._delay, self._max_future = delay_ms, max_future_ms
        self._now: int | None = None
        self.names: list[str] = []
        self._slot: dict[str, int] = {}
        self._tops = np.empty(0, np.int64)
        self._assigned = np.empty(0, np.bool_)
        self._idle = np.empty(0, np.bool_)
        self._counts = np.empty((0, COUNTS), np.int64)
        self._scratch: list[NDArray[Any]] = [np.empty(0, kind) for kind in _SCRATCH]
        for one in partitions:
            slot = self._new_slot(one.partition)
            self._assigned[slot] = one.assigned
            self._idle[slot] = one.idle
            if one.max_event_time is not None:
                self._tops[slot] = one.max_event_time
            self._counts[slot] = (
                one.accepted,
                one.admitted,
                one.late,
                one.invalid,
                one.late_window_drops,
                one.filtered,
                one.repeated,
            )

    # ---- the set of partitions, the clock, the end -----------------------------------------------

    def add(self, partition: str) -> None:
        """Assign a partition; one known by its name goes on with what it had, and is active.

        Law: W4, W5, W3.
        """
        slot = self._slot.get(partition)
        if slot is None:
            slot = self._new_slot(partition)
        self._assigned[slot], self._idle[slot] = True, False
        self._settle()

    def remove(self, partition: str) -> None:
        """Assign it no longer; its largest event time and counters stay.

        Law: W5, W1, W3.
        """
        self._assigned[self._known(partition)] = False
        self._settle()

    def idle(self, partitions: Iterable[str]) -> None:
        """One reading found these partitions idle: W goes on without them.

        Law: W4, W3.
        """
        for name in partitions:
            self._idle[self._known(name)] = True
        self._settle()

    def end_epoch(self) -> None:
        """W moves now, where rows do not move it. Law: W3."""
        if self._rule.update == v.BY_EPOCH and v.END != self.W:
            self._settle()

    def drain(self) -> None:
        """Every row was accepted and the caller asks: W becomes END.

        Law: W6.
        """
        self.W = v.END

    def clock(self, now_ms: int) -> None:
        """A reading of the clock, for the guard.

        Law: A4.
        """
        self._now = now_ms

    def partitions(self) -> tuple[PartitionCounts, ...]:
        """All partitions ever seen, removed ones too, sorted by name.

        Law: W1, W5.
        """
        out = []
        for name in sorted(self._slot):
            slot = self._slot[name]
            top = int(self._tops[slot])
            counts = self._counts[slot].tolist()
            accepted, admitted, late, invalid, missed, filtered, repeated = counts
            out.append(
                PartitionCounts(
                    name,
                    bool(self._assigned[slot]),
                    None if top == v.NEVER else top,
                    accepted,
                    admitted,
                    late,
                    invalid,
                    bool(self._idle[slot]),
                    missed,
                    filtered,
                    repeated,
                )
            )
        return tuple(out)

    def _new_slot(self, partition: str) -> int:
        slot = self._slot[partition] = len(self.names)
        self.names.append(partition)
        self._tops = np.append(self._tops, np.int64(v.NEVER))
        self._assigned = np.append(self._assigned, np.bool_(True))
        self._idle = np.append(self._idle, np.bool_(False))
        self._counts = np.vstack([self._counts, np.zeros((1, COUNTS), np.int64)])
        return slot

    def _known(self, partition: str) -> int:
        slot = self._slot.get(partition)
        if slot is None or not self._assigned[slot]:
            raise LawBroken(
                f"partition {partition!r}",
                allowed="an assigned partition",
                where="watermark",
                action="report this; what is committed stands",
            )
        return slot

    def _candidate(self, tops: NDArray[np.int64]) -> int:
        """The least of the active partitions' largest times, minus the delay.

        Active is what is assigned and not idle. NEVER where one of them has no time yet, or none is
        active.

        Law: W2, W4.
        """
        active = tops[self._assigned & ~self._idle]
        low = int(active.min()) if len(active) else v.NEVER
        return v.NEVER if low == v.NEVER else low - self._delay

    def _settle(self) -> None:
        """Let W follow the candidate, upwards only.

        Law: W3.
        """
        self.W = max(self.W, self._candidate(self._tops))

    # ---- rows ------------------------------------------------------------------------------------

    def admit(
        self,
        event_time: EventTimes,
        partition: NDArray[np.int32],
        names: Sequence[str],
        *,
        passes: NDArray[np.bool_] | None = None,
    ) -> Admission:
        """Decide each row of a batch in order, and move W with it.

        partition: per row an index into names. passes: the rows that the filter passes, None for
        all.

        Law: A1, A4, A5, A6, A8, W1, W2, W3.
        Cost: 0 to 1 ns a row where no row can be late or is invalid, else 2 to 3 ns.
        """
        n = len(event_time.values)
        if n == 0:
            return Admission(_NO_ROWS)
        event_time = _filtered(self._guard(event_time), passes)
        slots, rows = self._slots_of(partition, names, n)
        plain = event_time.reasons is None and not self._tells_seen
        if plain and self._admit_all(event_time, partition, slots, rows):
            return Admission(None)
        return self._admit_each(event_time, partition, slots)

    def count_repeated(self, partition: NDArray[np.int32], names: Sequence[str]) -> None:
        """These admitted rows were no more than repeats.

        partition: per row an index into names.

        Law: A5, A7.
        """
        self._count_as(REPEATED, partition, names)

    def count_late(self, partition: NDArray[np.int32], names: Sequence[str]) -> None:
        """These rows were late, though they counted as admitted: the open sessions say so.

        partition: per row an index into names.

        Law: A2, A5.
        """
        self._count_as(LATE, partition, names)

    def _count_as(self, column: int, partition: NDArray[np.int32], names: Sequence[str]) -> None:
        for i, rows in enumerate(np.bincount(partition, minlength=len(names)).tolist()):
            if rows:
                slot = self._known(names[i])
                self._counts[slot, ADMITTED] -= rows
                self._counts[slot, column] += rows

    def _slots_of(
        self, partition: NDArray[np.int32], names: Sequence[str], n: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Per name its slot, and how many rows each slot gets; only assigned ones may have any."""
        slots = np.array([self._slot.get(name, -1) for name in names], np.int64)
        rows = np.zeros(len(self.names), np.int64)
        if len(names) == 1:
            rows[self._known(names[0])] = n
            return slots, rows
        by_name = np.bincount(partition, minlength=len(names))
        for i in np.flatnonzero(by_name).tolist():
            rows[self._known(names[i])] += by_name[i]
        return slots, rows

    def _guard(self, event_time: EventTimes) -> EventTimes:
        """Mark times beyond the last clock reading and max_future_ms.

        Law: A4.
        """
        if self._max_future is None or self._now is None:
            return event_time
        limit = self._now + self._max_future
        if event_time.high <= limit:
            return event_time
        reasons = event_time.reasons
        reasons = np.zeros(len(event_time.values), np.uint8) if reasons is None else reasons.copy()
        reasons[(event_time.values > limit) & (reasons == 0)] = _TOO_FAR_AHEAD
        return EventTimes(event_time.values, reasons, event_time.low, limit)

    def _admit_all(
        self,
        event_time: EventTimes,
        partition: NDArray[np.int32],
        slots: NDArray[np.int64],
        rows: NDArray[np.int64],
    ) -> bool:
        """Admit a whole batch without a look at its order, if that cannot show.

        W only rises: where the batch's lowest time is not below W after it, no row was late. A row
        that wakes its partition may stop W half-way, so such a batch is not for here.
        Law: A1, W3, W4.
        """
        if self._idle[rows > 0].any():
            return False
        tops = self._tops.copy()
        if len(slots) == 1:
            tops[slots[0]] = max(int(tops[slots[0]]), event_time.high)
        else:
            times = np.uint64(address(event_time.values))
            part = np.ascontiguousarray(partition, np.int32)
            peaks(times, np.uint64(address(part)), slots, len(event_time.values), tops)
        after = max(self.W, self._candidate(tops)) if self._moves_by_row else self.W
        if self._may_be_late(event_time.low, after, tops[rows > 0]):
            return False
        self._tops, self.W = tops, after
        self._counts[:, ACCEPTED] += rows
        self._counts[:, ADMITTED] += rows
        return True

    @property
    def _moves_by_row(self) -> bool:
        return self._rule.update == v.BY_ROW

    def _may_be_late(self, low: int, after: int, tops: NDArray[np.int64]) -> bool:
        """Whether a batch's lowest time could be late by what stands after the batch.

        Everything that a rule looks at only rises, so what is not late then was not late before.
        Law: A1, A2, A3.
        """
        if self._rule.by_window:
            return self._rule.first_close(low) <= after
        behind = self._rule.kind == v.PARTITION_RULE and low < int(tops.max()) - self._delay
        return behind or low < after + self.LATE_EDGE

    def _admit_each(
        self, event_time: EventTimes, partition: NDArray[np.int32], slots: NDArray[np.int64]
    ) -> Admission:
        """The late rule, row by row; a row wakes its partition.

        Law: A1, A2, A3, A4, A5, A6, T8, W1, W3, W4.
        """
        n = len(event_time.values)
        part = np.ascontiguousarray(partition, np.int32)
        reasons = _NO_REASONS if event_time.reasons is None else event_time.reasons
        admitted, late, invalid, late_watermark, invalid_watermark = self._scratch_for(n)
        seen = np.empty(n, np.int64) if self._tells_seen or self._rule.by_window else _NO_WORDS
        self.W, a, b, c = walk(
            np.uint64(address(event_time.values)),
            reasons,
            np.uint64(address(part)),
            slots,
            n,
            self._tops,
            self._assigned,
            self._idle,
            self._counts,
            self.W,
            self._delay,
            self.LATE_EDGE,
            self._rule.words(),
            self._rule.closes(event_time.values),
            self._moves_by_row,
            admitted,
            late,
            late_watermark,
            invalid,
            invalid_watermark,
            seen,
        )
        closed, missed = self._rule.missed(event_time.values, seen)
        return Admission(
            None if a == n else admitted[:a].copy(),
            late[:b].copy(),
            late_watermark[:b].copy(),
            invalid[:c].copy(),
            reasons[invalid[:c]],
            invalid_watermark[:c].copy(),
            seen,
            closed,
            missed,
        )

    def count_missed(self, partitions: Sequence[str], missed: Sequence[int]) -> None:
        """Windows that rows of some partitions missed, though they were admitted.

        Law: A2.
        """
        for name, windows in zip(partitions, missed, strict=True):
            self._counts[self._slot[name], MISSED] += windows

    def _scratch_for(self, n: int) -> list[NDArray[Any]]:
        """Room for n rows of each kind, kept from batch to batch: fresh memory is slow."""
        if len(self._scratch[0]) < n:
            self._scratch = [np.empty(n, kind) for kind in _SCRATCH]
        return self._scratch


def _filtered(event_time: EventTimes, passes: NDArray[np.bool_] | None) -> EventTimes:
    """Mark the valid times of rows that the filter does not pass.

    Law: A8.
    """
    if passes is None:
        return event_time
    reasons = event_time.reasons
    reasons = np.zeros(len(passes), np.uint8) if reasons is None else reasons.copy()
    reasons[~passes & (reasons == 0)] = NOT_PASSED
    return EventTimes(event_time.values, reasons, event_time.low, event_time.high)
