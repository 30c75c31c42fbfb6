"""Exact sums of doubles, each in four words and, where values lie far apart, a wide sum beside them.

The words are the head, and a 192-bit integer in units of 2**(base + UNIT). A double whose exponent lies
in [base, base + 64) is added to it as an integer, exactly. The base follows the largest value. What
has bits below the base goes to the group's wide sum, which holds every double: nothing is dropped.
"""

from __future__ import annotations

import numpy as np

from thund.words import Array, Scalar, add_192, inline, jit, rare, word_at

WIDE_WORDS = 36
"""Words of a wide sum: a two's complement integer in units of 2**UNIT, for any double at all."""

UNIT = -1075
"""A double of biased exponent e is an integer of 53 bits times 2**(e + UNIT)."""

LOWEST_BASE, HIGHEST_BASE = 32, 1952
"""Bounds of the base: the exponents 0 and 2047, which are not plain, are never within 64 above."""

BASE_BIAS, SPECIAL_SHIFT, WIDE_SHIFT = 64, 16, 32
"""The head of a float sum: base + BASE_BIAS (0: no value yet), specials, number of the wide sum."""

NAN, PLUS_INF, MINUS_INF = 1, 2, 4
"""Specials that a float sum has seen."""

WIDE_USED, QUEUED = 2, 4
"""Of a table's counters: wide sums in use, doubles that wait for one."""

_0, _1, _2, _3 = (np.uint64(x) for x in (0, 1, 2, 3))
_FRACTION, _HIDDEN = (1 << 52) - 1, 1 << 52
_INF, _QUIET_NAN, _POSITIVE = 0x7FF << 52, 0x7FF8 << 48, (1 << 63) - 1


@rare
def add_wide(wide: Array, at: Scalar, x: Scalar, e: Scalar) -> None:
    """Add x * 2**e to the wide sum that begins at word `at`."""
    i, shift = at + (e >> 6), e & 63
    parts = (np.uint64(x) << np.uint64(shift), np.uint64((x >> (63 - shift)) >> 1))
    sign = np.uint64(x >> 63)
    carry = _0
    for k in range(at + WIDE_WORDS - i):
        part = parts[k] if k < 2 else sign
        if k >= 2 and part + carry == _0:  # nothing left to add, or minus one and a carry
            break
        old = np.uint64(wide[i + k])
        new = old + part
        over = _1 if new < old else _0
        new += carry
        if new < carry:
            over = _1
        wide[i + k] = np.int64(new)
        carry = over


@rare
def wide_of(entries: Array, b: Scalar, wide: Array, counters: Array) -> Scalar:
    """The first word of the group's wide sum, made if there is room for it, else -1."""
    number = entries[b] >> WIDE_SHIFT
    if number == 0:
        number = counters[WIDE_USED] + 1
        if number * WIDE_WORDS > len(wide):
            return np.int64(-1)
        counters[WIDE_USED] = number
        entries[b] |= number << WIDE_SHIFT
        for k in range((number - 1) * WIDE_WORDS, number * WIDE_WORDS):
            wide[k] = 0
    return (number - 1) * WIDE_WORDS


@rare
def raise_base(entries: Array, b: Scalar, base: Scalar, wide: Array, counters: Array) -> Scalar:
    """Move the group's integer up to a new base, its low bits to the wide sum. False: no room."""
    head = entries[b]
    old = (head & 0xFFFF) - BASE_BIAS
    if head & 0xFFFF == 0:
        entries[b] = head | (base + BASE_BIAS)
        return True
    low, mid, high = entries[b + _1], entries[b + _2], entries[b + _3]
    while old < base and low & 0xFFFFFFFF == 0:
        low = ((low >> 32) & 0xFFFFFFFF) | (mid << 32)
        mid = ((mid >> 32) & 0xFFFFFFFF) | (high << 32)
        high >>= 32
        old += 32
    done = True
    if old < base:
        at = wide_of(entries, b, wide, counters)
        done = at >= 0
        if done:
            words = (low, mid, high)
            for k in range(3):
                add_wide(wide, at, words[k] & 0xFFFFFFFF, old + 64 * k)
                top = words[k] >> 32
                add_wide(wide, at, top if k == 2 else top & 0xFFFFFFFF, old + 64 * k + 32)
            low, mid, high, old = 0, 0, 0, base
    entries[b + _1], entries[b + _2], entries[b + _3] = low, mid, high
    entries[b] = (entries[b] & ~0xFFFF) | (old + BASE_BIAS)
    return done


@rare
def add_far(
    entries: Array, b: Scalar, bits: Scalar, wide: Array, counters: Array, queue: Array
) -> None:
    """Add a double that the group's integer cannot take as it is: special, far off, or the first.

    Where the wide sums are full, the double waits in the queue until there is room.
    """
    e = (bits >> 52) & 0x7FF
    x = bits & _FRACTION
    if e == 0x7FF:
        kind = NAN if x != 0 else PLUS_INF if bits >= 0 else MINUS_INF
        entries[b] |= kind << SPECIAL_SHIFT
        return
    if e != 0:
        x |= _HIDDEN
    else:
        e = 1
    if x == 0:
        return
    if bits < 0:
        x = -x
    shift = e - ((entries[b] & 0xFFFF) - BASE_BIAS)
    done = True
    if shift > 63:
        base = min(HIGHEST_BASE, max(LOWEST_BASE, 32 * ((e >> 5) - 1)))
        done = raise_base(entries, b, base, wide, counters)
        shift = e - base
    if done and 0 <= shift <= 63:
        add_192(entries, b + _1, x, np.uint64(shift))
    elif done and -53 < shift < 0 and x & ((1 << -shift) - 1) == 0:
        add_192(entries, b + _1, x >> -shift, _0)
    elif done:
        at = wide_of(entries, b, wide, counters)
        done = at >= 0
        if done:
            add_wide(wide, at, x, e)
    if not done:
        n = counters[QUEUED]
        queue[2 * n], queue[2 * n + 1] = np.int64(b), bits
        counters[QUEUED] = n + 1


@jit
def replay(entries: Array, wide: Array, counters: Array, queue: Array) -> None:
    """Add what waited for wide sums; the caller has made room for all of it."""
    waiting = counters[QUEUED]
    counters[QUEUED] = 0
    for i in range(waiting):
        add_far(entries, np.uint64(queue[2 * i]), queue[2 * i + 1], wide, counters, queue)


@inline
def add_floats(
    entries: Array,
    w: Scalar,
    data: Scalar,
    m: Scalar,
    slot: Array,
    wide: Array,
    counters: Array,
    queue: Array,
) -> None:
    """Add doubles exactly: order cannot show."""
    for r in range(m):
        bits = word_at(data, np.uint64(r))
        b = slot[r] + w
        shift = np.uint64(((bits >> 52) & 0x7FF) + BASE_BIAS - (entries[b] & 0xFFFF))
        if shift < np.uint64(64):
            sign = bits >> 63
            x = (((bits & _FRACTION) | _HIDDEN) ^ sign) - sign
            add_192(entries, b + _1, x, shift)
        else:
            add_far(entries, b, bits, wide, counters, queue)


@inline
def order_floats(data: Scalar, m: Scalar, ordered: Array) -> None:
    """Doubles as integers of the same order: -inf < ... < -0.0 < 0.0 < ... < +inf < NaN."""
    for r in range(m):
        bits = word_at(data, np.uint64(r))
        bits = _QUIET_NAN if bits & _POSITIVE > _INF else bits
        ordered[r] = bits ^ ((bits >> 63) & _POSITIVE)
