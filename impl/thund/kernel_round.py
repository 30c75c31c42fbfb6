"""Exact sums to doubles: one rounding, to nearest, ties to even."""

from __future__ import annotations

import math

import numpy as np

from thund.words import Array, Scalar, inline, jit

_0, _1 = np.uint64(0), np.uint64(1)
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
_DIGITS, _SPARE = 6, 3
"""32-bit digits of a sum, and zeros below them, so that a quotient has more bits than a double."""


@inline
def magnitude(low: Scalar, mid: Scalar, high: Scalar, digits: Array) -> Scalar:
    """The digits of |sum| above the spare ones. Returns whether the sum is negative."""
    negative = high < 0
    a, b, c = np.uint64(low), np.uint64(mid), np.uint64(high)
    if negative:
        a, b, c = ~a + _1, ~b, ~c
        if a == _0:
            b += _1
            if b == _0:
                c += _1
    digits[_SPARE], digits[_SPARE + 1] = a & _LOW, a >> _HALF
    digits[_SPARE + 2], digits[_SPARE + 3] = b & _LOW, b >> _HALF
    digits[_SPARE + 4], digits[_SPARE + 5] = c & _LOW, c >> _HALF
    for i in range(_SPARE):
        digits[i] = _0
    return negative


@jit
def nearest(digits: Array, base: Scalar, rest: Scalar) -> Scalar:
    """The double nearest to the number of the digits times 2**base; rest: something lies below."""
    j = len(digits) - 1
    while j >= 0 and digits[j] == _0:
        j -= 1
    if j < 0:
        return 0.0
    top = digits[j] << _HALF
    lead = 0
    while top >> np.uint64(63) == _0:
        top <<= _1
        lead += 1
    if j >= 1:
        top |= digits[j - 1] << np.uint64(lead)
    if j >= 2:  # a shift by 32 where lead is 0 leaves nothing of a 32-bit digit
        top |= digits[j - 2] >> np.uint64(32 - lead)
        rest |= digits[j - 2] & ((_1 << np.uint64(32 - lead)) - _1) != _0
    for i in range(j - 2):
        rest |= digits[i] != _0
    exponent = base + 32 * j + 31 - lead
    keep = min(53, exponent + 1075)  # a subnormal has fewer bits
    if keep < 0:
        return 0.0
    drop = np.uint64(64 - keep)
    half = _1 << (drop - _1)
    whole = top >> drop if keep > 0 else _0
    below = top & (half + (half - _1))
    if below > half or (below == half and (rest or whole & _1 != _0)):
        whole += _1
    return math.ldexp(float(whole), exponent - keep + 1)


@jit
def round_sums(
    low: Array, mid: Array, high: Array, base: Array, divisor: Array, out: Array
) -> None:
    """The double nearest to sum * 2**base / divisor, for each group; divisor from 1 to 2**31.

    The sum is the 192-bit integer in the three words. What is too large becomes infinite.
    """
    digits = np.empty(_DIGITS + _SPARE, np.uint64)
    for i in range(len(out)):
        negative = magnitude(low[i], mid[i], high[i], digits)
        d = np.uint64(divisor[i])
        remainder = _0
        if d > _1:
            for j in range(_DIGITS + _SPARE - 1, -1, -1):
                part = (remainder << _HALF) | digits[j]
                digits[j] = part // d
                remainder = part - digits[j] * d
        x = nearest(digits, base[i] - 32 * _SPARE, remainder != _0)
        out[i] = -x if negative and x != 0.0 else x
