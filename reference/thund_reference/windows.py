"""Assign rows to windows, close windows, and say what an epoch shows of them.

It is handed the watermark; it does not know where it comes from.
"""

from __future__ import annotations

import hashlib
import math
import struct

from thund_contract.vocabulary import Aggregate, Config, WindowSpec
from thund_reference import accumulators

Key = tuple[object, ...]
Group = tuple[Key, int]
"""The key and the start of its window."""
Partials = tuple[object, ...]


def window_start(event_time: int, size_ms: int, offset_ms: int) -> int:
    """The start of the one window [start, start + size) that holds the time. Law: G1."""
    assert size_ms > 0
    start = (event_time - offset_ms) // size_ms * size_ms + offset_ms
    assert start <= event_time < start + size_ms
    return start


def canonical_key(key: Key) -> Key:
    """NaN equals NaN, and -0.0 is 0.0. Law: G4, E5."""
    return tuple(
        (accumulators.NAN if math.isnan(v) else v + 0.0) if isinstance(v, float) else v for v in key
    )


def fold(
    partials: Partials | None, aggregates: tuple[Aggregate, ...], values: Partials
) -> Partials:
    """Add one admitted row to the partials of its group. Law: G4."""
    before = partials or tuple(accumulators.empty(a.operation) for a in aggregates)
    return tuple(
        accumulators.merge(a.operation, old, accumulators.lift(a.operation, a.column, value))
        for a, old, value in zip(aggregates, before, values, strict=True)
    )


def is_closed(start_ms: int, window: WindowSpec, grace_ms: int, watermark: int) -> bool:
    """W has passed the end and the grace: no longer open, and for good. Law: F1, F2, F3, F4, A2."""
    assert window.size_ms > 0
    assert grace_ms >= 0
    return start_ms + window.size_ms + grace_ms <= watermark


def identity(config: Config, group: Group) -> str:
    """`_gar_id`: 128 bits over an unambiguous encoding, as 32 hex digits. Law: E5."""
    key, start_ms = group
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
            return b"\x03" + struct.pack(
                "<d", accumulators.NAN if math.isnan(value) else value + 0.0
            )
        case str():
            return b"\x04" + encode_text(value)
        case bytes():
            return b"\x05" + struct.pack("<I", len(value)) + value
        case (str() as kind, inner):
            return b"\x06" + encode_text(kind) + encode_text(str(inner))
    raise TypeError(f"no encoding for a key of type {type(value).__name__}")
