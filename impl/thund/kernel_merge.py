"""Groups of a block into the entries of a table, word by word: what a program did to rows, to partials."""

from __future__ import annotations

import numpy as np

from thund.kernel import MAX, MIN, NULLS, ROWS, STAMP, SUM_FLOAT, SUM_INTEGER, TOUCH, TOUCHED
from thund.kernel_sum import (
    BASE_BIAS,
    WIDE_SHIFT,
    WIDE_USED,
    WIDE_WORDS,
    add_wide,
    raise_base,
    wide_of,
)
from thund.words import Array, Scalar, jit, part

_1, _2, _3 = (np.uint64(x) for x in (1, 2, 3))
_BASE, _NUMBERLESS, _HALF = 0xFFFF, (1 << 32) - 1, 0xFFFFFFFF


@part
def add_words(entries: Array, b: Scalar, low: Scalar, high: Scalar) -> None:
    """Add the 128-bit integer (low, high) to the one that words b and b + 1 hold."""
    before = np.uint64(entries[b])
    total = before + np.uint64(low)
    entries[b] = np.int64(total)
    entries[b + _1] += high + (1 if total < before else 0)


@part
def may_need_wide(entries: Array, b: Scalar, head: Scalar) -> Scalar:
    """Whether merging a float sum of this head into the entry's can need a wide sum."""
    base, own = head & _BASE, entries[b] & _BASE
    return head >> WIDE_SHIFT != 0 or (base != 0 and own != 0 and base != own)


@part
def add_sum(
    entries: Array, b: Scalar, words: Array, w: Scalar, i: Scalar, wide: Array, counters: Array,
    others: Array,
) -> None:  # fmt: skip
    """Add the float sum of group i, whose words begin at w, to the one at b; there is room."""
    head = words[w, i]
    low, mid, high = words[w + 1, i], words[w + 2, i], words[w + 3, i]
    base = head & _BASE
    if base != 0:
        if base > entries[b] & _BASE:
            raise_base(entries, b, base - BASE_BIAS, wide, counters)
        own = entries[b] & _BASE
        while base < own:
            if low & _HALF != 0:
                add_wide(wide, wide_of(entries, b, wide, counters), low & _HALF, base - BASE_BIAS)
            low = ((low >> 32) & _HALF) | (mid << 32)
            mid = ((mid >> 32) & _HALF) | (high << 32)
            high >>= 32
            base += 32
        before = np.uint64(entries[b + _1])
        total = before + np.uint64(low)
        entries[b + _1] = np.int64(total)
        before = np.uint64(entries[b + _2])
        carried = before + np.uint64(1 if total < np.uint64(low) else 0)
        over = 1 if carried < before else 0
        total = carried + np.uint64(mid)
        over += 1 if total < carried else 0
        entries[b + _2] = np.int64(total)
        entries[b + _3] += high + over
    number = head >> WIDE_SHIFT
    if number != 0:
        at, source = wide_of(entries, b, wide, counters), (number - 1) * WIDE_WORDS
        carry = np.uint64(0)
        for k in range(WIDE_WORDS):
            old = np.uint64(wide[at + k])
            new = old + np.uint64(others[source + k])
            lost = np.uint64(1 if new < old else 0)
            new += carry
            carry = lost + np.uint64(1 if new < carry else 0)
            wide[at + k] = np.int64(new)
    entries[b] |= head & _NUMBERLESS & ~_BASE


@jit
def merge(
    program: Array,
    words: Array,
    others: Array,
    located: Array,
    entries: Array,
    size: Scalar,
    wide: Array,
    counters: Array,
    touched: Array,
    done: Scalar,
) -> Scalar:
    """Line by line, group i of a block into entry located[i]. Returns the steps done.

    A step is a line and a group. Short of all where the wide sums are full: the caller makes room
    and calls again. others: the block's wide sums.
    """
    n = len(located)
    for line in range(done // n, len(program)):
        operation, w = program[line, 0], program[line, 1]
        at = np.uint64(w)
        for i in range(done - line * n if done > line * n else 0, n):
            b, x = np.uint64(located[i] * size) + at, words[w, i]
            if operation in (ROWS, NULLS):
                entries[b] += x
            elif operation == SUM_INTEGER:
                add_words(entries, b, x, words[w + 1, i])
            elif operation == SUM_FLOAT:
                full = (counters[WIDE_USED] + 1) * WIDE_WORDS > len(wide)
                if full and entries[b] >> WIDE_SHIFT == 0 and may_need_wide(entries, b, x):
                    return line * n + i
                add_sum(entries, b, words, w, i, wide, counters, others)
            elif operation == MIN:
                entries[b] = min(entries[b], x)
            elif operation == MAX:
                entries[b] = max(entries[b], x)
            elif operation == TOUCH and x > entries[b]:
                if x == counters[STAMP]:
                    touched[counters[TOUCHED]] = np.int64(b - at)
                    counters[TOUCHED] += 1
                entries[b] = x
    return len(program) * n
