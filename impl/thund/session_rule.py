"""The window rule over sessions: a row before W is late unless an open session of its key holds it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from thund.batch import Delivery
from thund.repeats import Repeats
from thund.sessions import Sessions
from thund.watermark import Admission, Watermark
from thund_contract.vocabulary import NEVER


class SessionRule:
    """Judges and folds rows in order: what a row finds depends on what was folded before it.

    Law: A2, A5, A7.
    """

    def __init__(
        self, sessions: Sessions, watermark: Watermark, repeats: Repeats | None, grace_ms: int
    ) -> None:
        self._sessions, self._watermark = sessions, watermark
        self._repeats, self._grace = repeats, grace_ms

    def fold(
        self, delivery: Delivery, event_time: NDArray[np.int64], admission: Admission
    ) -> Admission:
        """Fold the admitted rows that prove not to be late; the others become late rows.

        Cost: as Sessions.fold; where repeats are looked for, 200 microseconds a row before W beside.
        """
        rows = admission.admitted
        rows = np.arange(delivery.num_rows, dtype=np.uint32) if rows is None else rows
        seen = admission.seen[rows]
        bars = np.where(event_time[rows] + self._grace < seen, seen, NEVER)
        if self._repeats is None:
            entered = self._sessions.judge(delivery, event_time, rows, bars)
        else:
            entered = np.ones(len(rows), np.bool_)
            for part in np.split(np.arange(len(rows)), np.flatnonzero(bars != NEVER)):
                if len(part):
                    lo, hi = int(rows[part[0]]), int(rows[part[-1]]) + 1
                    few = delivery.slice(lo, hi), event_time[lo:hi], admission.seen[lo:hi]
                    entered[part[0]] = self._fold_part(*few, rows[part] - np.uint32(lo), bars[part])
        late = rows[~entered]
        self._watermark.count_late(delivery.partition[late], delivery.partitions)
        return replace(
            admission,
            admitted=rows[entered],
            late=late,
            late_watermark=admission.seen[late],
        )

    def _fold_part(
        self,
        delivery: Delivery,
        event_time: NDArray[np.int64],
        seen: NDArray[np.int64],
        rows: NDArray[np.uint32],
        bars: NDArray[np.int64],
    ) -> bool:
        """Rows of which only the first may be late. Says whether it was not."""
        assert self._repeats is not None
        first = int(rows[0])
        entered = bars[0] == NEVER or self._sessions.holds(
            delivery.slice(first, first + 1), int(event_time[first]), int(bars[0])
        )
        if not entered:
            rows, bars = rows[1:], bars[1:]
        repeated = self._repeats.judge(delivery.columns, event_time, seen, rows)
        self._watermark.count_repeated(delivery.partition[rows[repeated]], delivery.partitions)
        self._sessions.judge(delivery, event_time, rows[~repeated], bars[~repeated])
        return bool(entered)
