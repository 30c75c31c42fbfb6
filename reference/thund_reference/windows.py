"""Assign rows to windows, close windows, and say what an epoch shows of them.

It is handed the watermark; it does not know where it comes from.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable

from thund_contract.vocabulary import (
    CALENDAR,
    SESSION,
    TUMBLING,
    Aggregate,
    Config,
    WindowSpec,
)
from thund_reference import accumulators, calendar
from thund_reference.accumulators import Place

Key = tuple[object, ...]
Span = tuple[int, int]
"""[start, end) of a window."""
Group = tuple[Key, Span]
Name = tuple[Key, int]
"""What gives a result its identity: the key and the start of its window. Law: E5."""
Partials = tuple[object, ...]


def window_start(event_time: int, size_ms: int, offset_ms: int) -> int:
    """The start of the one window [start, start + size) that holds the time. Law: G1."""
    assert size_ms > 0
    start = (event_time - offset_ms) // size_ms * size_ms + offset_ms
    assert start <= event_time < start + size_ms
    return start


def spans(window: WindowSpec, event_time: int) -> list[Span]:
    """The windows that a row is in; of a session, what the row covers. Law: G1, G2, G3, G5."""
    if window.kind == SESSION:
        return [(event_time, event_time + window.gap_ms)]
    if window.kind == CALENDAR:
        return [calendar.window(window.unit, window.zone, window.offset_ms, event_time)]
    if window.kind == TUMBLING:
        start = window_start(event_time, window.size_ms, window.offset_ms)
        return [(start, start + window.size_ms)]
    start = window_start(event_time, window.slide_ms, window.offset_ms)
    starts = range(start, event_time - window.size_ms, -window.slide_ms)
    return [(start, start + window.size_ms) for start in reversed(starts)]


def joined(sessions: Iterable[Span], cover: Span) -> tuple[Span, list[Span]]:
    """A cover with the sessions of its key that it overlaps, and which these are. Law: G3."""
    parts = [s for s in sessions if s[0] < cover[1] and cover[0] < s[1]]
    both = [cover, *parts]
    return (min(start for start, _ in both), max(end for _, end in both)), parts


def canonical_key(key: Key) -> Key:
    """NaN equals NaN, and -0.0 is 0.0. Law: G4, E5."""
    return tuple(map(accumulators.same, key))


def lift(aggregates: tuple[Aggregate, ...], values: Partials, place: Place) -> Partials:
    """One admitted row as partials. Law: G4."""
    pairs = zip(aggregates, values, strict=True)
    return tuple(accumulators.lift(a, value, place) for a, value in pairs)


def merge(aggregates: tuple[Aggregate, ...], left: Partials, right: Partials) -> Partials:
    """Two partials of one group. Law: G4."""
    return tuple(
        accumulators.merge(a.operation, x, y)
        for a, x, y in zip(aggregates, left, right, strict=True)
    )


def is_closed(end_ms: int, grace_ms: int, watermark: int) -> bool:
    """W has passed the end and the grace: no longer open, and for good. Law: F1, F2, F3, F4, A2."""
    assert grace_ms >= 0
    return end_ms + grace_ms <= watermark


def identity(config: Config, name: Name) -> str:
    """`_gar_id`: 128 bits over an unambiguous encoding, as 32 hex digits. Law: E5."""
    key, start_ms = name
    encoded = b"".join(
        [
            encode_text(config.pipeline),
            encode_text(config.operator),
            struct.pack("<I", len(key)),
            *map(encode_value, key),
            struct.pack("<q", start_ms),
        ]
    )
    return hashlib.blake2b(encoded, digest_size=16).hexdigest()


def encode_text(text: str) -> bytes:
    """Length first, so that two texts never run into each other. Law: E5."""
    return struct.pack("<I", len(text.encode())) + text.encode()


def encode_value(value: object) -> bytes:
    """A tag for the type, then the value; no two values share an encoding. Law: E5."""
    match value:
        case None:
            return b"\x00"
        case bool():
            return b"\x01" + bytes([value])
        case int():
            return b"\x02" + value.to_bytes(16, "little", signed=True)
        case float():
            return b"\x03" + struct.pack("<d", accumulators.same(value))
        case str():
            return b"\x04" + encode_text(value)
        case bytes():
            return b"\x05" + struct.pack("<I", len(value)) + value
        case (str() as kind, inner):
            return b"\x06" + encode_text(kind) + encode_text(str(inner))
    raise TypeError(f"no encoding for a key of type {type(value).__name__}")
