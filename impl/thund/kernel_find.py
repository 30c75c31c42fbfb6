"""Rows of a block to the entries of a table; a row with a new key makes one.

A table is `index` (open addressing, 0 = free) over dense entries of `size` words, which begin with
the key's words and a place in the arena for each text column. Equality is decided on all key words
and on the bytes of long texts, never on the hash.
"""

from __future__ import annotations

import numpy as np

from thund.words import (
    Array,
    Scalar,
    address_of,
    inline,
    jit,
    mix,
    part,
    prefetch,
    put_word,
    word_at,
)

INLINE_TEXT = 12
"""Bytes of a text that its two key words hold in full."""

ARENA = 1
"""Of a table's counters: bytes of the arena in use."""

PREFETCH_FROM = 1 << 15
"""Slots of an index that no longer lies in the nearest caches."""

_C0, _C1 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_0, _1, _8 = (np.uint64(x) for x in (0, 1, 8))
_LENGTH, _LONG, _FREE = np.uint64(0xFFFFFFFF), np.uint64(INLINE_TEXT), np.uint32(0)


@part
def locate_1(
    key: Scalar,
    entries: Array,
    size: Scalar,
    index: Array,
    shift: Scalar,
    count: Scalar,
    limit: Scalar,
    init: Array,
    m: Scalar,
    slot: Array,
    q: Array,
    big: Scalar,
) -> Scalar:
    """Entries of m rows with one key word; new ones are made. Returns (rows done, entries)."""
    mask = np.uint64(len(index) - 1)
    if big:  # no load depends on another: the cache misses overlap
        for r in range(m):
            q[r] = (mix(np.uint64(word_at(key, np.uint64(r))), _C0) >> shift) & mask
            prefetch(index, q[r])
        for r in range(m):
            b = np.uint64(index[q[r]]) * size
            prefetch(entries, b)
            prefetch(entries, b + size - _1)
    for r in range(m):
        x = word_at(key, np.uint64(r))
        p = (mix(np.uint64(x), _C0) >> shift) & mask
        while True:
            j = np.uint64(index[p])
            b = j * size
            if j == _0:
                if count == limit:
                    return r, count
                b = np.uint64(count) * size
                for c in range(len(init)):
                    entries[b + np.uint64(c)] = init[c]
                entries[b] = x
                index[p] = count
                count += 1
                break
            if entries[b] == x:
                break
            p = (p + _1) & mask
        slot[r] = b
    return m, count


@part
def locate_2(
    key0: Scalar,
    key1: Scalar,
    entries: Array,
    size: Scalar,
    index: Array,
    shift: Scalar,
    count: Scalar,
    limit: Scalar,
    init: Array,
    m: Scalar,
    slot: Array,
    q: Array,
    big: Scalar,
) -> Scalar:
    """As locate_1 for two key words: a short text, two integers, or one with nulls."""
    mask = np.uint64(len(index) - 1)
    for r in range(m):
        h = mix(np.uint64(word_at(key0, np.uint64(r))), _C0)
        q[r] = (mix(h ^ np.uint64(word_at(key1, np.uint64(r))), _C1) >> shift) & mask
    if big:
        for r in range(m):
            prefetch(index, q[r])
        for r in range(m):
            b = np.uint64(index[q[r]]) * size
            prefetch(entries, b)
            prefetch(entries, b + size - _1)
    for r in range(m):
        x, y = word_at(key0, np.uint64(r)), word_at(key1, np.uint64(r))
        p = q[r]
        while True:
            j = np.uint64(index[p])
            b = j * size
            if j == _0:
                if count == limit:
                    return r, count
                b = np.uint64(count) * size
                for c in range(len(init)):
                    entries[b + np.uint64(c)] = init[c]
                entries[b] = x
                entries[b + _1] = y
                index[p] = count
                count += 1
                break
            if entries[b] == x and entries[b + _1] == y:
                break
            p = (p + _1) & mask
        slot[r] = b
    return m, count


@inline
def same_bytes(p: Scalar, q: Array, n: Scalar) -> Scalar:
    """Whether n > 8 bytes at two addresses are equal: whole words, then the last eight bytes."""
    last = p + n - _8
    while p < last:
        if word_at(p, _0) != word_at(q, _0):
            return False
        p += _8
        q += _8
    return word_at(last, _0) == word_at(q + last - p, _0)


@inline
def copy_bytes(to: Scalar, source: Scalar, n: Scalar) -> None:
    """Copy n > 8 bytes: whole words, then the last eight bytes."""
    last = source + n - _8
    ahead = to - source
    while source < last:
        put_word(source + ahead, word_at(source, _0))
        source += _8
    put_word(last + ahead, word_at(last, _0))


@part
def same_key(
    streams: Array, words: Scalar, text: Array, entries: Array, b: Scalar, arena: Array, r: Scalar
) -> Scalar:
    """Whether row r of the block has the key of the entry at b, word for word, byte for byte."""
    i = np.uint64(r)
    for c in range(words):
        if entries[b + np.uint64(c)] != word_at(streams[c], i):
            return False
    for t in range(len(text)):
        n = np.uint64(word_at(streams[text[t]], i)) & _LENGTH
        if n > _LONG:
            here = np.uint64(word_at(streams[words + t], i))
            kept = address_of(arena) + np.uint64(entries[b + np.uint64(words + t)])
            if not same_bytes(here, kept, n):
                return False
    return True


@part
def keep_key(
    streams: Array,
    words: Scalar,
    text: Array,
    entries: Array,
    b: Scalar,
    arena: Array,
    used: Scalar,
    r: Scalar,
) -> Scalar:
    """Write the key of row r into the entry at b. Returns the arena's bytes, or -1: no room."""
    i = np.uint64(r)
    need = used
    for t in range(len(text)):
        n = np.uint64(word_at(streams[text[t]], i)) & _LENGTH
        if n > _LONG:
            need += np.int64(n)
    if need > len(arena):
        return np.int64(-1)
    for c in range(words):
        entries[b + np.uint64(c)] = word_at(streams[c], i)
    for t in range(len(text)):
        n = np.uint64(word_at(streams[text[t]], i)) & _LENGTH
        if n > _LONG:
            copy_bytes(
                address_of(arena) + np.uint64(used), np.uint64(word_at(streams[words + t], i)), n
            )
            entries[b + np.uint64(words + t)] = used
            used += np.int64(n)
    return used


@part
def locate_n(
    streams: Array,
    words: Scalar,
    text: Array,
    arena: Array,
    counters: Array,
    entries: Array,
    size: Scalar,
    index: Array,
    shift: Scalar,
    count: Scalar,
    limit: Scalar,
    init: Array,
    m: Scalar,
    slot: Array,
    q: Array,
) -> Scalar:
    """As locate_1 for any key.

    Stream c holds word c of each row; of a text longer than INLINE_TEXT bytes the words are
    length, first bytes and hash, and stream words + t holds its address.
    """
    mask = np.uint64(len(index) - 1)
    for r in range(m):
        q[r] = mix(np.uint64(word_at(streams[0], np.uint64(r))), _C0)
    for c in range(1, words):
        for r in range(m):
            q[r] = mix(q[r] ^ np.uint64(word_at(streams[c], np.uint64(r))), _C1)
    for r in range(m):
        q[r] = (q[r] >> shift) & mask
    if len(index) > PREFETCH_FROM:
        for r in range(m):
            prefetch(index, q[r])
        for r in range(m):
            b = np.uint64(index[q[r]]) * size
            prefetch(entries, b)
            prefetch(entries, b + size - _1)
        if len(text):
            for r in range(m):
                b = np.uint64(index[q[r]]) * size
                prefetch(arena, np.uint64(entries[b + np.uint64(words)]))
    for r in range(m):
        p = q[r]
        while True:
            j = np.uint64(index[p])
            b = j * size
            if j == _0:
                if count == limit:
                    return r, count
                b = np.uint64(count) * size
                for c in range(len(init)):
                    entries[b + np.uint64(c)] = init[c]
                used = keep_key(streams, words, text, entries, b, arena, counters[ARENA], r)
                if used < 0:
                    return r, count
                counters[ARENA] = used
                index[p] = count
                count += 1
                break
            if same_key(streams, words, text, entries, b, arena, r):
                break
            p = (p + _1) & mask
        slot[r] = b
    return m, count


@jit
def reindex(
    entries: Array, size: Scalar, words: Scalar, index: Array, shift: Scalar, count: Scalar
) -> None:
    """Fill an empty index with the entries 1 to count - 1."""
    mask = np.uint64(len(index) - 1)
    for j in range(1, count):
        b = np.uint64(j) * size
        h = mix(np.uint64(entries[b]), _C0)
        for c in range(1, words):
            h = mix(h ^ np.uint64(entries[b + np.uint64(c)]), _C1)
        p = (h >> shift) & mask
        while index[p] != _FREE:
            p = (p + _1) & mask
        index[p] = j
