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

FILTERED, LATE, REPEATED, ADMITTED = "filtered", "late", "repeated", "admitted"
"""What becomes of a valid row, in the order in which it is judged. Law: A5."""


@dataclass(frozen=True, slots=True)
class Progress:
    """One partition: its largest valid event time, its counters, whether assigned, whether idle."""

    assigned: bool = True
    max_event_time: int | None = None
    accepted: int = 0
    admitted: int = 0
    late: int = 0
    invalid: int = 0
    idle: bool = False
    filtered: int = 0
    repeated: int = 0
    late_window_drops: int = 0

    def __post_init__(self) -> None:
        """Rows are counted once each. Law: A5."""
        judged = self.admitted + self.late + self.invalid + self.filtered + self.repeated
        assert self.accepted == judged


def candidate(largest: Iterable[int | None], delay_ms: int) -> int | None:
    """The least of the active partitions' largest event times, less the delay.

    NEVER while one of them has none yet; None with no active partition.

    Law: W2.
    """
    assert delay_ms >= 0
    times = list(largest)
    if not times:
        return None
    known = [time for time in times if time is not None]
    return NEVER if len(known) < len(times) else min(known) - delay_ms


def advance(watermark: int, proposed: int | None) -> int:
    """W never falls, whatever is proposed. Law: W3, W5."""
    assert watermark >= NEVER
    return watermark if proposed is None else max(watermark, proposed)


def moved(watermark: int, partitions: Mapping[str, Progress], delay_ms: int) -> int:
    """W after a row, an idle reading or a change of the set of partitions. Law: W2, W3, W4, W5."""
    times = [p.max_event_time for p in active(partitions).values()]
    return advance(watermark, candidate(times, delay_ms))


def active(partitions: Mapping[str, Progress]) -> dict[str, Progress]:
    """Those that W waits for. Law: W2, W4."""
    return {name: p for name, p in partitions.items() if p.assigned and not p.idle}


def holder(partitions: Mapping[str, Progress]) -> str | None:
    """The partition that the candidate comes from: the least, none yet before all, then by name.

    Law: W7.
    """
    order = sorted(
        (p.max_event_time is not None, p.max_event_time or 0, name)
        for name, p in active(partitions).items()
    )
    return order[0][2] if order else None


def without(watermark: int, partitions: Mapping[str, Progress], delay_ms: int, name: str) -> int:
    """What W would be if one partition were not there. Law: W7."""
    return moved(watermark, {n: p for n, p in partitions.items() if n != name}, delay_ms)


def quiet_enough(
    partitions: Mapping[str, Progress], quiet: Mapping[str, int], timeout_ms: int
) -> tuple[str, ...]:
    """The partitions that one reading finds idle; 0 turns idleness off. Law: W4."""
    if timeout_ms == 0:
        return ()
    return tuple(sorted(name for name in active(partitions) if quiet[name] >= timeout_ms))


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


def counted(progress: Progress, event_time: int, verdict: str) -> Progress:
    """A valid row is counted under its verdict, wakes its partition, and can raise the maximum.

    Law: W1, W4, A5, A6, A7, A8.
    """
    largest = progress.max_event_time
    return replace(
        progress,
        idle=False,
        max_event_time=event_time if largest is None else max(largest, event_time),
        accepted=progress.accepted + 1,
        admitted=progress.admitted + (verdict == ADMITTED),
        late=progress.late + (verdict == LATE),
        filtered=progress.filtered + (verdict == FILTERED),
        repeated=progress.repeated + (verdict == REPEATED),
    )


def refused(progress: Progress) -> Progress:
    """An invalid row is counted, wakes its partition and moves nothing. Law: A4, A5, W4."""
    return replace(
        progress, idle=False, accepted=progress.accepted + 1, invalid=progress.invalid + 1
    )
