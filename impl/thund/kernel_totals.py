"""Exact sums of groups, and sums of squares, as wide two's complement integers.

A group has a line of words: its count, its head, the sum (low word first), the squares. A row that
the line cannot take as it stands is named to the caller, who adds it with integers of any size.
"""

from __future__ import annotations

import numpy as np

from thund.words import Array, Scalar, inline, jit, prefetch

COUNT, HEAD, SUM = 0, 1, 2
"""Words of a line. The head of floats: base + 1 (0: no number yet), and above it the specials."""

SPECIAL_SHIFT = 16
NAN, PLUS_INF, MINUS_INF = 1, 2, 4
"""Specials that a group has seen."""

UNIT = -1075
"""A double of biased exponent e is an integer of 53 bits times 2**(e + UNIT)."""

SPAN = 128
"""Biased exponents from base to base + 127 fit the words. A base is a multiple of 64."""

_0, _1, _HALF, _TOP, _LOW = (np.uint64(x) for x in (0, 1, 32, 63, (1 << 32) - 1))
_AHEAD = 12
_FRACTION, _HIDDEN, _BASES = (1 << 52) - 1, 1 << 52, (1 << SPECIAL_SHIFT) - 1


@inline
def product(x: Scalar, y: Scalar) -> Scalar:
    """The low and the high word of the product of two words."""
    a, b, c, d = x >> _HALF, x & _LOW, y >> _HALF, y & _LOW
    low, mid, more = b * d, a * d, b * c
    mid += low >> _HALF
    more += mid & _LOW
    return (more << _HALF) | (low & _LOW), a * c + (mid >> _HALF) + (more >> _HALF)


@inline
def add_number(
    words: Array,
    at: Scalar,
    end: Scalar,
    a: Scalar,
    b: Scalar,
    c: Scalar,
    d: Scalar,
    sign: Scalar,
) -> None:
    """Add the number of the words a, b, c, d, then sign without end, to the one in [at, end)."""
    carry = _0
    for k in range(end - at):
        part = a if k == 0 else b if k == 1 else c if k == 2 else d if k == 3 else sign
        if k > 3 and part + carry == _0:  # nothing left to add, or minus one and a carry
            break
        total = np.uint64(words[at + k]) + part
        over = _1 if total < part else _0
        total += carry
        if total < carry:
            over = _1
        words[at + k] = np.int64(total)
        carry = over


@inline
def add_square(words: Array, at: Scalar, end: Scalar, low: Scalar, high: Scalar) -> None:
    """Add the square of a magnitude of two words to the number in [at, end)."""
    p, q = product(low, low)
    add_number(words, at, end, p, q, _0, _0, _0)
    if high != _0:
        p, q = product(high, high)
        add_number(words, at + 2, end, p, q, _0, _0, _0)
        p, q = product(low, high)
        twice = (q << _1) | (p >> _TOP)
        add_number(words, at + 1, end, p << _1, twice, q >> _TOP, _0, _0)


@inline
def ask(entries: Array, i: Scalar, flat: Array, size: Scalar) -> None:
    """Ask for the line of a row that comes soon."""
    if i + _AHEAD < len(entries):
        line = np.uint64(entries[i + _AHEAD] * size)
        prefetch(flat, line)
        prefetch(flat, line + np.uint64(size - 1))


@jit
def fold_integers(
    entries: Array, values: Array, unsigned: Scalar, words: Array, squares: Scalar, rare: Array
) -> Scalar:
    """Add integers of 1, 2 or 4 words. squares: their first word in a line, or its length.

    Returns how many rows have a square of more than four words; `rare` has them.
    """
    size, width, lost = words.shape[1], values.shape[1], 0
    flat = words.reshape(-1)
    for i in range(len(entries)):
        ask(entries, i, flat, size)
        line = entries[i] * size
        low = np.uint64(values[i, 0])
        sign = _0 if unsigned else np.uint64(values[i, width - 1] >> 63)
        high = np.uint64(values[i, 1]) if width > 1 else sign
        third, fourth = sign, sign
        if width > 2:
            third, fourth = np.uint64(values[i, 2]), np.uint64(values[i, 3])
            if squares < size and (third != sign or fourth != sign or (high ^ sign) >> _TOP != _0):
                rare[lost] = i
                lost += 1
                continue
        flat[line + COUNT] += 1
        add_number(flat, line + SUM, line + squares, low, high, third, fourth, sign)
        if squares < size:
            if sign != _0:
                low, high = ~low + _1, ~high + (_1 if low == _0 else _0)
            add_square(flat, line + squares, line + size, low, high)
    return lost


@jit
def base_of(e: Scalar) -> Scalar:
    """The base for a first double of exponent e: there is room on both sides."""
    return max(0, (e - 32) >> 6 << 6)


@jit
def fold_floats(
    entries: Array, values: Array, words: Array, squares: Scalar, rare: Array
) -> Scalar:
    """Add doubles, given as bits. Returns how many lie too far from their base; `rare` has them."""
    size, lost = words.shape[1], 0
    flat = words.reshape(-1)
    for i in range(len(entries)):
        ask(entries, i, flat, size)
        line, bits = entries[i] * size, values[i]
        e, x = (bits >> 52) & 0x7FF, bits & _FRACTION
        if e == 0x7FF:
            kind = NAN if x != 0 else PLUS_INF if bits >= 0 else MINUS_INF
            flat[line + HEAD] |= kind << SPECIAL_SHIFT
            flat[line + COUNT] += 1
            continue
        if e != 0:
            x |= _HIDDEN
        else:
            e = 1
        if x == 0:
            flat[line + COUNT] += 1
            continue
        base = (flat[line + HEAD] & _BASES) - 1
        if base < 0:
            base = base_of(e)
            flat[line + HEAD] |= base + 1
        shift = e - base
        if not 0 <= shift < SPAN:
            rare[lost] = i
            lost += 1
            continue
        flat[line + COUNT] += 1
        low, high = product(np.uint64(x), np.uint64(x))
        at, s = line + SUM + (shift >> 6), shift & 63
        value = -x if bits < 0 else x
        sign = np.uint64(value >> 63)
        over = np.uint64((value >> (63 - s)) >> 1)
        add_number(
            flat, at, line + squares, np.uint64(value) << np.uint64(s), over, sign, sign, sign
        )
        at, s = line + squares + (shift >> 5), (2 * shift) & 63
        t = np.uint64(63 - s)
        a, b = low << np.uint64(s), (high << np.uint64(s)) | ((low >> t) >> _1)
        add_number(flat, at, line + size, a, b, (high >> t) >> _1, _0, _0)
    return lost


@jit
def merge(entries: Array, lines: Array, words: Array, squares: Scalar, rare: Array) -> Scalar:
    """Add whole lines. Returns how many have another base than their group; `rare` has them."""
    size, lost = words.shape[1], 0
    flat = words.reshape(-1)
    for i in range(len(entries)):
        line = entries[i] * size
        mine, theirs = flat[line + HEAD] & _BASES, lines[i, HEAD] & _BASES
        if mine != theirs and mine != 0 and theirs != 0:
            rare[lost] = i
            lost += 1
            continue
        flat[line + COUNT] += lines[i, COUNT]
        flat[line + HEAD] |= lines[i, HEAD]
        carry = _0
        for k in range(SUM, size):
            if k == squares:
                carry = _0
            part = np.uint64(lines[i, k])
            total = np.uint64(flat[line + k]) + part
            over = _1 if total < part else _0
            total += carry
            if total < carry:
                over = _1
            flat[line + k] = np.int64(total)
            carry = over
    return lost
