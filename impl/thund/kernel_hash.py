"""BLAKE2b with a digest of 16 bytes (RFC 7693), over messages put together row by row."""

from __future__ import annotations

import numpy as np

from thund.words import Array, Scalar, address_of, byte_at, inline, jit, part, word_at

BLOCK_BYTES = 128
"""Bytes that one compression takes."""

PREFIX, PREFIX_BYTES, HAS_LENGTH, OFFSETS, DATA, VALID = range(6)
"""What `hash_rows` is told of a column: addresses, a size, a flag."""

_1, _32, _24, _16, _63 = (np.uint64(x) for x in (1, 32, 24, 16, 63))
_0, _40, _48 = (np.uint64(x) for x in (0, 40, 48))
_IV = np.array(
    [
        0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
        0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
    ],
    np.uint64,
)  # fmt: skip
_PARAMETERS = np.uint64(0x01010010)
"""No key, fan-out and depth 1, a digest of 16 bytes."""

_ORDER = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
        [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
        [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
        [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
        [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
        [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
        [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
        [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
        [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
    ],
    np.uint64,
)
_ROUNDS = 12


@inline
def stir(a: Scalar, b: Scalar, c: Scalar, d: Scalar, x: Scalar, y: Scalar) -> Scalar:
    """The function G of BLAKE2b: two words of the message into four of the state."""
    a = a + b + x
    d ^= a
    d = (d >> _32) | (d << _32)
    c += d
    b ^= c
    b = (b >> _24) | (b << _40)
    a = a + b + y
    d ^= a
    d = (d >> _16) | (d << _48)
    c += d
    b ^= c
    b = (b >> _63) | (b << _1)
    return a, b, c, d


@part
def compress(h: Array, message: Scalar, count: Scalar, last: Scalar) -> None:
    """One block at an address into the chained words; count: bytes up to its end."""
    a0, a1, a2, a3, b0, b1, b2, b3 = h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7]
    c0, c1, c2, c3 = _IV[0], _IV[1], _IV[2], _IV[3]
    d0, d1, d2, d3 = _IV[4] ^ np.uint64(count), _IV[5], _IV[6], _IV[7]
    if last:
        d2 = ~d2
    for i in range(_ROUNDS):
        s = _ORDER[i % 10]
        a0, b0, c0, d0 = stir(a0, b0, c0, d0, word_of(message, s[0]), word_of(message, s[1]))
        a1, b1, c1, d1 = stir(a1, b1, c1, d1, word_of(message, s[2]), word_of(message, s[3]))
        a2, b2, c2, d2 = stir(a2, b2, c2, d2, word_of(message, s[4]), word_of(message, s[5]))
        a3, b3, c3, d3 = stir(a3, b3, c3, d3, word_of(message, s[6]), word_of(message, s[7]))
        a0, b1, c2, d3 = stir(a0, b1, c2, d3, word_of(message, s[8]), word_of(message, s[9]))
        a1, b2, c3, d0 = stir(a1, b2, c3, d0, word_of(message, s[10]), word_of(message, s[11]))
        a2, b3, c0, d1 = stir(a2, b3, c0, d1, word_of(message, s[12]), word_of(message, s[13]))
        a3, b0, c1, d2 = stir(a3, b0, c1, d2, word_of(message, s[14]), word_of(message, s[15]))
    h[0] ^= a0 ^ c0
    h[1] ^= a1 ^ c1
    h[2] ^= a2 ^ c2
    h[3] ^= a3 ^ c3
    h[4] ^= b0 ^ d0
    h[5] ^= b1 ^ d1
    h[6] ^= b2 ^ d2
    h[7] ^= b3 ^ d3


@inline
def word_of(message: Scalar, i: Scalar) -> Scalar:
    """Word i of a message."""
    return np.uint64(word_at(message, i))


@part
def append(message: Array, at: Scalar, source: Scalar, n: Scalar) -> Scalar:
    """Copy n bytes to the message. Returns its new length."""
    for i in range(n):
        message[at + i] = byte_at(source, np.uint64(i))
    return at + n


@part
def append_number(message: Array, at: Scalar, x: Scalar, n: Scalar) -> Scalar:
    """Put the n low bytes of a number to the message, low byte first. Returns its new length."""
    for i in range(n):
        message[at + i] = (x >> (8 * i)) & 0xFF
    return at + n


@jit
def hash_rows(head: Array, columns: Array, starts: Array, message: Array, out: Array) -> None:
    """The digests of n rows, two words each: head, each column's value, and the window's start.

    columns: a line per column; a value is the byte 0 for null, else the prefix, the length in
    four bytes if it has one, and the bytes. message: scratch that holds the longest.
    """
    h = np.empty(8, np.uint64)
    base = address_of(message)
    for k in range(len(head)):
        message[k] = head[k]
    for r in range(len(starts)):
        n: Scalar = len(head)
        i = np.uint64(r)
        for c in range(len(columns)):
            line = columns[c]
            if line[VALID] != 0 and byte_at(np.uint64(line[VALID]), i) == 0:
                message[n] = 0
                n += 1
                continue
            n = append(message, n, np.uint64(line[PREFIX]), line[PREFIX_BYTES])
            begin = word_at(np.uint64(line[OFFSETS]), i)
            size = word_at(np.uint64(line[OFFSETS]), i + _1) - begin
            if line[HAS_LENGTH] != 0:
                n = append_number(message, n, size, 4)
            n = append(message, n, np.uint64(line[DATA] + begin), size)
        n = append_number(message, n, starts[r], 8)
        blocks = max(1, (n + BLOCK_BYTES - 1) // BLOCK_BYTES)
        for k in range(n, blocks * BLOCK_BYTES):
            message[k] = 0
        for k in range(8):
            h[k] = _IV[k]
        h[0] ^= _PARAMETERS
        for k in range(blocks):
            last = k == blocks - 1
            count = n if last else (k + 1) * BLOCK_BYTES
            compress(h, base + np.uint64(k * BLOCK_BYTES), count, last)
        out[2 * r], out[2 * r + 1] = h[0], h[1]
