"""Turn the event times of several partitions into one bound that never falls.

It knows nothing of windows, keys or files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from thund_contract.vocabulary import (
    MAX_EVENT_TIME,
    MIN_EVENT_TIME,
    NAN_TIME,
    NEVER,
    NULL_TIME,
    OUT_OF_RANGE,
    TOO_FAR_AHEAD,
    UNDECODABLE_TIME,
)


@dataclass(frozen=True, slots=True)
class Progress:
    """One partition: its largest valid event time, its counters, and whether it is assigned."""

    assigned: bool = True
    max_event_time: int | None = None
    accepted: int = 0
    admitted: int = 0
    late: int = 0
    invalid: int = 0

    def __post_init__(self) -> None:
        """Rows are counted once each. Law: A5."""
        assert self.accepted == self.admitted + self.late + self.invalid


def candidate(active: Iterable[int | None], delay_ms: int) -> int | None:
    """The least of the active partitions' largest event times, less the delay.

    NEVER while one of them has none yet; None with no active partition.

    Law: W2.
    """
    assert delay_ms >= 0
    times = list(active)
    if not times:
        return None
    known = [time for time in times if time is not None]
    return NEVER if len(known) < len(times) else min(known) - delay_ms


def advance(watermark: int, proposed: int | None) -> int:
    """W never falls, whatever is proposed. Law: W3, W5."""
    assert watermark >= NEVER
    return watermark if proposed is None else max(watermark, proposed)


def moved(watermark: int, partitions: Mapping[str, Progress], delay_ms: int) -> int:
    """W after a row or a change of the set of partitions. Law: W2, W3, W5."""
    active = [p.max_event_time for p in partitions.values() if p.assigned]
    return advance(watermark, candidate(active, delay_ms))


def why_invalid(event_time: object, clock_ms: int | None, max_future_ms: int | None) -> str | None:
    """The reason why an event time cannot be used, or None for a good one. Law: A4."""
    if event_time is None:
        return NULL_TIME
    if isinstance(event_time, float) and event_time != event_time:  # noqa: PLR0124 - NaN
        return NAN_TIME
    if isinstance(event_time, bool) or not isinstance(event_time, int):
        return UNDECODABLE_TIME
    if not MIN_EVENT_TIME <= event_time <= MAX_EVENT_TIME:
        return OUT_OF_RANGE
    if max_future_ms is None or clock_ms is None:
        return None
    return TOO_FAR_AHEAD if event_time > clock_ms + max_future_ms else None


def is_late(event_time: int, watermark: int) -> bool:
    """Strictly before W as it stood just before the row. Law: A1."""
    assert watermark >= NEVER
    return event_time < watermark


def is_behind(event_time: int, largest: int | None, delay_ms: int) -> bool:
    """More than the delay behind the largest event time of its own partition. Law: A3, T8."""
    assert delay_ms >= 0
    return largest is not None and event_time < largest - delay_ms


def seen(progress: Progress, event_time: int, *, late: bool) -> Progress:
    """A valid row is counted, and a late one, too, can raise the maximum. Law: W1, A5, A6."""
    largest = progress.max_event_time
    return replace(
        progress,
        max_event_time=event_time if largest is None else max(largest, event_time),
        accepted=progress.accepted + 1,
        admitted=progress.admitted + (not late),
        late=progress.late + late,
    )


def refused(progress: Progress) -> Progress:
    """An invalid row is counted and moves nothing. Law: A4, A5."""
    return replace(progress, accepted=progress.accepted + 1, invalid=progress.invalid + 1)
