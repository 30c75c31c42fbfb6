"""Means, variances and deviations of exact sums: integers to the end, then one rounding."""

from __future__ import annotations

import numpy as np

from thund.kernel_round import nearest
from thund.kernel_totals import COUNT, SUM, product
from thund.words import Array, Scalar, inline, jit

MEAN, VARIANCE, DEVIATION = 0, 1, 2
"""What to show."""

DIVISOR_MAX = 1 << 31
"""Counts up to this."""

_0, _1, _HALF, _TOP, _LOW = (np.uint64(x) for x in (0, 1, 32, 63, (1 << 32) - 1))
_TEN_MAX, _STEP = np.uint64(10**9), 9
_SPARE = 6
"""32-bit zeros below: 128 bits of a quotient by a count and a smaller one, before tens."""


@inline
def split(words: Array, digits: Array, at: Scalar) -> Scalar:
    """The 32-bit digits of the magnitude of a number of words. Returns whether it is negative."""
    negative = words[len(words) - 1] < 0
    carry = _1 if negative else _0
    for k in range(len(words)):
        word = np.uint64(words[k])
        if negative:
            word = ~word + carry
            carry = _1 if carry != _0 and word == _0 else _0
        digits[at + 2 * k], digits[at + 2 * k + 1] = word & _LOW, word >> _HALF
    return negative


@inline
def scatter(digits: Array, at: Scalar, sums: Array, squares: Array, count: Scalar) -> None:
    """Set the digits from `at` on to count * squares - sum * sum, which is not negative."""
    total = np.zeros(2 * len(sums), np.uint64)
    split(sums, total, 0)
    used = len(total)
    while used > 0 and total[used - 1] == _0:
        used -= 1
    split(squares, digits, at)
    carry, n = _0, np.uint64(count)
    for k in range(at, len(digits)):
        part = digits[k] * n + carry
        digits[k], carry = part & _LOW, part >> _HALF
    for i in range(used):
        carry, borrow = _0, _0
        for k in range(len(digits) - at - i):
            if k >= used and carry == _0 and borrow == _0:
                break
            part = carry
            if k < used:
                part += total[i] * total[k]
            less = (part & _LOW) + borrow
            carry = part >> _HALF
            old = digits[at + i + k]
            borrow = _1 if old < less else _0
            digits[at + i + k] = (old - less) & _LOW


@inline
def divide(digits: Array, divisor: Scalar) -> Scalar:
    """Divide in place; whether something is left over."""
    rest = _0
    for k in range(len(digits) - 1, -1, -1):
        part = (rest << _HALF) | digits[k]
        digits[k] = part // divisor
        rest = part - digits[k] * divisor
    return rest != _0


@inline
def root(digits: Array, exponent: Scalar, rest: Scalar, out: Array) -> Scalar:
    """The double nearest to the square root of the digits times 2**exponent, which is even.

    Where there is a rest, the digits have 128 bits or more.
    """
    j = len(digits) - 1
    while j > 3 and digits[j] == _0:
        j -= 1
    a, b = digits[j] << _HALF | digits[j - 1], digits[j - 2] << _HALF | digits[j - 3]
    if a | b == _0:
        return 0.0
    shift = 0
    while a >> np.uint64(62) == _0:
        a, b = (a << np.uint64(2)) | (b >> np.uint64(62)), b << np.uint64(2)
        shift += 2
    if j > 3:
        more = digits[j - 4] << _HALF
        if j > 4:
            more |= digits[j - 5]
        b |= (more >> np.uint64(63 - shift)) >> _1
        rest |= more << np.uint64(shift) != _0
    for k in range(j - 5):
        rest |= digits[k] != _0
    found, bit = _0, _1 << _TOP
    while bit != _0:
        low, high = product(found | bit, found | bit)
        if high < a or (high == a and low <= b):
            found |= bit
        bit >>= _1
    low, high = product(found, found)
    rest |= low != b or high != a
    out[0], out[1] = found & _LOW, found >> _HALF
    return nearest(out, (exponent + 32 * (j - 3) - shift) // 2, rest)


@jit
def show(
    operation: Scalar,
    lines: Array,
    at: Scalar,
    less: Scalar,
    exponents: Array,
    scale: Scalar,
    out: Array,
) -> None:
    """One double per line, from its sum * 2**exponent / 10**scale, and squares in that unit squared.

    at: where the squares begin in a line. A variance is divided by count - less; counts are in
    (less, DIVISOR_MAX], a scale is from 0 on. What is too large becomes infinite.
    """
    sums, squares = 2 * (at - SUM), 2 * (lines.shape[1] - at)
    tens, wide = scale, sums
    if operation != MEAN:
        tens, wide = 2 * scale, max(2 * sums, squares + 1)
    spare = _SPARE + (tens * 107 + 1023) // 1024  # 32 * 107 / 1024 bits are more than log2(10)
    digits, two = np.empty(spare + wide, np.uint64), np.empty(2, np.uint64)
    for i in range(len(out)):
        digits[:] = _0
        negative, exponent, n = False, exponents[i], lines[i, COUNT]
        if operation == MEAN:
            negative = split(lines[i, SUM:at], digits, spare)
        else:
            scatter(digits, spare, lines[i, SUM:at], lines[i, at:], n)
            exponent *= 2
        rest = divide(digits, np.uint64(n))
        if operation != MEAN and n - less > 1:
            rest |= divide(digits, np.uint64(n - less))
        left = tens
        while left > 0:
            step = _TEN_MAX if left >= _STEP else np.uint64(10**left)
            rest |= divide(digits, step)
            left -= _STEP
        exponent -= 32 * spare
        if operation == DEVIATION:
            x = root(digits, exponent, rest, two)
        else:
            x = nearest(digits, exponent, rest)
        out[i] = -x if negative and x != 0.0 else x
