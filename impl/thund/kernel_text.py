"""Texts and byte strings as two key words each, and back.

Word 0 is the length in the low half and the first four bytes in the high half. Word 1 is the next
eight bytes, or for more than INLINE_TEXT bytes a hash: then the bytes themselves decide.
"""

from __future__ import annotations

import numpy as np

from thund.words import Array, Scalar, address_of, byte_at, inline, jit, mix, put_word, word_at

_C0, _C1 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_0, _1, _3, _4, _7, _8 = (np.uint64(x) for x in (0, 1, 3, 4, 7, 8))
_LONG, _HALF, _LENGTH = np.uint64(12), np.uint64(32), np.uint64(0xFFFFFFFF)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@inline
def low_bytes(n: Scalar) -> Scalar:
    """A mask of the n lowest bytes, n at most 8."""
    return (_1 << (_8 * n)) - _1 if n < _8 else _ALL


@inline
def load(data: Scalar, i: Scalar, end: Scalar) -> Scalar:
    """Eight bytes at i, zero beyond the end: it never reads outside the buffer."""
    if i + _8 <= end:
        return np.uint64(word_at(data + i, _0))
    x = _0
    for j in range(8):
        if i + np.uint64(j) < end:
            x |= np.uint64(byte_at(data, i + np.uint64(j))) << np.uint64(8 * j)
    return x


@inline
def hash_bytes(p: Scalar, n: Scalar) -> Scalar:
    """A hash of n > 8 bytes: whole words, then the last eight bytes."""
    h = mix(n, _C0)
    last = p + n - _8
    while p < last:
        h = mix(h ^ np.uint64(word_at(p, _0)), _C1)
        p += _8
    return mix(h ^ np.uint64(word_at(last, _0)), _C1)


@jit
def encode_text(
    offsets: Scalar,
    n: Scalar,
    data: Scalar,
    end: Scalar,
    bitmap: Scalar,
    offset: Scalar,
    word0: Array,
    word1: Array,
    where: Array,
) -> Scalar:
    """The two words of each of n texts, zero for a null, and its address. Returns how many are long.

    offsets: the address of n + 1 places, 64 bits each. end: the bytes at data.
    """
    long = 0
    for i in range(n):
        a = np.uint64(word_at(offsets, np.uint64(i)))
        size = np.uint64(word_at(offsets, np.uint64(i + 1))) - a
        j = np.uint64(i) + offset
        if bitmap != _0 and (byte_at(bitmap, j >> _3) >> (j & _7)) & 1 == 0:
            size = _0
        first = min(size, _4)
        x = load(data, a, end) & low_bytes(first)
        if size > _LONG:
            y = hash_bytes(data + a, size)
            long += 1
        else:
            y = load(data, a + _4, end) & low_bytes(size - first)
        word0[i] = np.int64(size | (x << _HALF))
        word1[i] = np.int64(y)
        where[i] = np.int64(data + a)
    return long


@jit
def text_offsets(word0: Array, offsets: Array) -> Scalar:
    """The 64-bit offsets of n texts one after the other. Returns their bytes in all."""
    total = 0
    offsets[0] = 0
    for i in range(len(word0)):
        total += word0[i] & 0xFFFFFFFF
        offsets[i + 1] = total
    return total


@jit
def decode_text(
    word0: Array, word1: Array, place: Array, arena: Array, offsets: Array, data: Array
) -> None:
    """The bytes of n texts; data has sixteen bytes to spare at its end."""
    to = address_of(data)
    for i in range(len(word0)):
        n = np.uint64(word0[i]) & _LENGTH
        at = to + np.uint64(offsets[i])
        if n <= _LONG:  # the next text overwrites what is stored too far
            put_word(at, np.int64(np.uint64(word0[i]) >> _HALF))
            put_word(at + _4, word1[i])
            continue
        source = address_of(arena) + np.uint64(place[i])
        last = source + n - _8
        ahead = at - source
        while source < last:
            put_word(source + ahead, word_at(source, _0))
            source += _8
        put_word(last + ahead, word_at(last, _0))
