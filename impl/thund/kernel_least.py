"""The least, or the greatest, string of bytes of each entry, kept in an arena."""

from __future__ import annotations

import numpy as np

from thund.words import Array, Scalar, address_of, byte_at, jit, part, word_at

_1 = np.uint64(1)


@part
def compare(p: Scalar, n: Scalar, q: Scalar, m: Scalar) -> Scalar:
    """Below 0, 0 or above 0 as n bytes at p come before, equal or come after m bytes at q."""
    for k in range(min(n, m)):
        x, y = np.int64(byte_at(p, np.uint64(k))), np.int64(byte_at(q, np.uint64(k)))
        if x != y:
            return x - y
    return n - m


@jit
def least(
    entries: Array,
    offsets: Scalar,
    data: Scalar,
    sign: Scalar,
    place: Array,
    length: Array,
    arena: Array,
    used: Scalar,
) -> Scalar:
    """Let each row replace what its entry has, where it is less (sign 1) or greater (sign -1).

    Row r has the bytes of data from offsets[r] to offsets[r + 1]; entry e those of the arena from
    place[e]; a length of -1 is none. The arena has room for all rows. Returns its bytes in use.
    """
    base = address_of(arena)
    for r in range(len(entries)):
        e, i = entries[r], np.uint64(r)
        start = word_at(offsets, i)
        n, p = word_at(offsets, i + _1) - start, data + np.uint64(start)
        if length[e] >= 0:
            order = compare(p, n, base + np.uint64(place[e]), length[e])
            if order * sign >= 0:
                continue
        for k in range(n):
            arena[used + k] = byte_at(p, np.uint64(k))
        place[e], length[e] = used, n
        used += n
    return used


@jit
def gather(entries: Array, place: Array, length: Array, arena: Array, out: Array) -> None:
    """The bytes of some entries, one after the other."""
    at = 0
    for i in range(len(entries)):
        start = place[entries[i]]
        for k in range(length[entries[i]]):
            out[at + k] = arena[start + k]
        at += max(0, length[entries[i]])
