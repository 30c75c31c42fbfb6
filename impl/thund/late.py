"""Which rows are late, and which windows a row that is not late has missed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thund.calendar import Calendar
from thund.kernel_time import BY_CLOSE, BY_PARTITION, BY_SESSION, BY_W, BY_WINDOW
from thund_contract import vocabulary as v

_NONE: NDArray[np.int64] = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class LateRule:
    """The late rule over a kind of windows, and when W moves.

    slide_ms: 0 where it is the size. gap_ms: of sessions, else 0. calendar: of calendar windows.

    Law: A1, A2, A3, W3.
    """

    kind: str = v.ROW_RULE
    update: str = v.BY_ROW
    size_ms: int = 1
    offset_ms: int = 0
    grace_ms: int = 0
    slide_ms: int = 0
    gap_ms: int = 0
    calendar: Calendar | None = None

    @staticmethod
    def of(config: v.Config) -> LateRule:
        """The rule of a configuration."""
        window = config.window
        by_calendar = window.kind == v.CALENDAR
        return LateRule(
            kind=config.late_rule,
            update=config.watermark_update,
            size_ms=window.size_ms,
            offset_ms=window.offset_ms,
            grace_ms=config.grace_ms,
            slide_ms=window.slide_ms,
            gap_ms=window.gap_ms,
            calendar=Calendar(window.zone, window.unit, window.offset_ms) if by_calendar else None,
        )

    @property
    def _slide(self) -> int:
        return self.slide_ms or self.size_ms

    def words(self) -> NDArray[np.int64]:
        """The rule as the kernel reads it: kind, size, slide, offset, grace."""
        kinds = {v.ROW_RULE: BY_W, v.PARTITION_RULE: BY_PARTITION, v.WINDOW_RULE: BY_WINDOW}
        kind = kinds[self.kind]
        if kind == BY_WINDOW and self.calendar:
            kind = BY_CLOSE
        elif kind == BY_WINDOW and self.gap_ms:
            kind = BY_SESSION
        return np.array([kind, self.size_ms, self._slide, self.offset_ms, self.grace_ms], np.int64)

    @property
    def by_window(self) -> bool:
        """Whether it is the windows that decide, so that W just before each row is of use."""
        return self.kind == v.WINDOW_RULE

    def first_close(self, event_time: int) -> int:
        """The least W at which a row of that time could be late or miss a window.

        Law: A2, F1, G2, G3, G5.
        """
        if self.calendar:
            return self.calendar.window(event_time)[1] + self.grace_ms
        if self.gap_ms:
            return event_time + self.grace_ms + 1
        first = (event_time - self.offset_ms - self.size_ms) // self._slide + 1
        return first * self._slide + self.offset_ms + self.size_ms + self.grace_ms

    def closes(self, event_time: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each row the W that closes its calendar window; none where no kernel asks.

        Law: A2, F1, G5.
        """
        if not self.by_window or self.calendar is None:
            return _NONE
        _, ends = self.calendar.windows_of(event_time)
        return ends + self.grace_ms

    def missed(
        self, event_time: NDArray[np.int64], seen: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For rows and the W just before them: the last closed window, how many of theirs are.

        None for windows that do not overlap: there a row that is not late has missed none.

        Law: A2, G2.
        """
        if not self.by_window or self._slide == self.size_ms or self.gap_ms or self.calendar:
            return _NONE, _NONE
        moved = seen != v.NEVER
        last = np.where(moved, seen, 0) - self.grace_ms - self.size_ms - self.offset_ms
        last //= self._slide
        before = (event_time - self.offset_ms - self.size_ms) // self._slide
        return last, np.where(moved, np.maximum(last - before, 0), 0)
