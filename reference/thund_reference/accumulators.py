"""Aggregates as commutative monoids, exact until they are shown.

A partial is what WindowState of the vocabulary describes, but for exact numbers, which are an int
over integers and a Fraction over all else. It knows no window and no time.
"""

from __future__ import annotations

import math
import struct
from decimal import Context, Decimal
from fractions import Fraction
from typing import Protocol, cast

from thund_contract.vocabulary import (
    ALL,
    ANY,
    COUNT,
    COUNT_DISTINCT,
    FIRST,
    G_COUNTER,
    LAST,
    LWW,
    MAX,
    MEAN,
    MIN,
    OR_SET,
    PN_COUNTER,
    STDDEV_POP,
    STDDEV_SAMP,
    SUM,
    VAR_POP,
    VAR_SAMP,
    Aggregate,
)

NAN = math.nan
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
TOTALS = (SUM, MEAN)
MOMENTS = (VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP)
LEAST, GREATEST = (MIN, ALL, FIRST), (MAX, ANY, LAST, LWW)
COUNTERS = (G_COUNTER, PN_COUNTER)
EXACT = frozenset((*TOTALS, *MOMENTS))
EXTREMES = frozenset((*LEAST, *GREATEST))

Moments = tuple[int, int | Fraction, int | Fraction, tuple[str, ...], str]
"""Non-null rows, their exact sum, the sum of squares, the specials among them, a decimal's type."""
Place = tuple[int, str, int]
"""(event time, partition, offset): the order of first and last."""

Counts = dict[object, tuple[int, ...]]
"""Per replica its count, or its increments and decrements."""
Sets = tuple[frozenset[tuple[object, object]], ...]
"""Of an OR-set: (element, tag) of the adds, and of the removes."""


class UserMonoid(Protocol):
    """A monoid that its user has registered. Law: G4."""

    def empty(self) -> object: ...
    def lift(self, *values: object) -> object: ...
    def merge(self, left: object, right: object) -> object: ...
    def encode(self, state: object) -> bytes: ...
    def show(self, state: object) -> object: ...


USER: dict[str, UserMonoid] = {}
"""By the name of the operation."""


# ---- values --------------------------------------------------------------------------------------


def special(value: object) -> str | None:
    """The name of a float that no exact sum can hold, or None. Law: G4."""
    if not isinstance(value, float) or math.isfinite(value):
        return None
    return "nan" if math.isnan(value) else "+inf" if value > 0 else "-inf"


def rank(value: object) -> object:
    """The order of min and max: -inf < … < -0.0 < 0.0 < … < +inf < NaN for floats. Law: G4."""
    if isinstance(value, float):
        (bits,) = struct.unpack("<q", struct.pack("<d", canonical(value)))
        assert isinstance(bits, int)
        return bits if bits >= 0 else bits ^ 0x7FFFFFFFFFFFFFFF
    return value[1] if isinstance(value, tuple) else value


def canonical(value: object) -> object:
    """One NaN for all. Law: G4."""
    return NAN if special(value) == "nan" else value


def same(value: object) -> object:
    """What equals another value is the same: also 0.0 and -0.0. Law: G4."""
    if not isinstance(value, float):
        return value
    return NAN if math.isnan(value) else value + 0.0


def number(value: object) -> tuple[int | Fraction, str]:
    """The exact number, and the type of a decimal. Law: G4."""
    if isinstance(value, tuple):
        return Fraction(value[1], 10 ** scale(value[0])), value[0]
    return (value, "") if isinstance(value, int) else (Fraction(cast("float", value)), "")


def scale(kind: str) -> int:
    """The digits after the point of "decimal128(10, 2)"."""
    return int(kind.rpartition(",")[2].strip(" )"))


# ---- the monoids ---------------------------------------------------------------------------------


def empty(operation: str) -> object:
    """The neutral element: what a null adds. Law: G4."""
    if operation in EXACT:
        return (0, 0, 0, (), "")
    if operation in EXTREMES:
        return None
    if operation == COUNT_DISTINCT:
        return frozenset()
    if operation in COUNTERS:
        return {}
    return (frozenset(), frozenset()) if operation == OR_SET else USER[operation].empty()


def lift(aggregate: Aggregate, value: object, place: Place) -> object:
    """One row as a partial: a null adds nothing but to count(*). Law: G4."""
    operation = aggregate.operation
    if operation == COUNT:
        return int(aggregate.column is None or value is not None)
    values = cast("tuple[object, ...]", value) if aggregate.others else (value,)
    if None in values:
        return empty(operation)
    if operation in EXACT:
        name = special(value)
        exact, kind = (Fraction(0), "") if name else number(value)
        squares = exact * exact if operation in MOMENTS else 0
        return (1, exact, squares, (name,) if name else (), kind)
    if operation in (FIRST, LAST):
        return (*place, value)
    if operation == LWW:
        return (values[1], values[0])
    if operation == COUNT_DISTINCT:
        return frozenset((same(value),))
    if operation in COUNTERS:
        return {same(values[-1]): values[:-1]}
    if operation == OR_SET:
        pair = frozenset(((same(values[0]), same(values[1])),))
        return (pair, frozenset()) if values[2] else (frozenset(), pair)
    return value if operation in EXTREMES else USER[operation].lift(*values)


def order(operation: str, partial: object) -> object:
    """What least and greatest compare. Law: G4."""
    if operation in (FIRST, LAST):
        return cast("tuple[object, ...]", partial)[:3]
    if operation == LWW:
        return tuple(map(rank, cast("tuple[object, ...]", partial)))
    return rank(partial)


def merge(operation: str, left: object, right: object) -> object:
    """Commutative and associative: no order can show. Law: G4."""
    if operation in EXTREMES:
        if left is None or right is None:
            return right if left is None else left
        ends = sorted((left, right), key=lambda p: order(operation, p))  # type: ignore[arg-type, return-value]
        return canonical(ends[0] if operation in LEAST else ends[1])
    if operation == COUNT:
        return cast("int", left) + cast("int", right)
    if operation in EXACT:
        return add(cast("Moments", left), cast("Moments", right))
    if operation == COUNT_DISTINCT:
        return cast("frozenset[object]", left) | cast("frozenset[object]", right)
    if operation in COUNTERS:
        a, b = cast("Counts", left), cast("Counts", right)
        most = {r: tuple(map(max, a[r], b[r])) for r in a.keys() & b.keys()}
        return {**a, **b, **most}
    if operation == OR_SET:
        pairs = zip(cast("Sets", left), cast("Sets", right), strict=True)
        return tuple(mine | theirs for mine, theirs in pairs)
    return USER[operation].merge(left, right)


def add(left: Moments, right: Moments) -> Moments:
    """Exact sums add exactly; counts and specials go beside. Law: G4."""
    specials = left[3] if left[3] == right[3] else tuple(sorted({*left[3], *right[3]}))
    sums = (left[1] + right[1], left[2] + right[2])
    return (left[0] + right[0], *sums, specials, max(left[4], right[4]))


# ---- what is kept and shown ------------------------------------------------------------------------


def normal(operation: str, partial: object) -> object:
    """The form in which WindowState shows a partial."""
    if operation in EXACT:
        count, total, squares, specials, _ = cast("Moments", partial)
        more = (squares.numerator, squares.denominator) if operation in MOMENTS else ()
        return (count, total.numerator, total.denominator, *more, specials)
    if operation == COUNT_DISTINCT:
        return tuple(sorted(cast("frozenset[object]", partial), key=rank))  # type: ignore[arg-type]
    if operation in COUNTERS:
        counts = cast("Counts", partial)
        return tuple((r, *counts[r]) for r in sorted(counts, key=rank))  # type: ignore[arg-type]
    if operation == OR_SET:
        return tuple(tuple(sorted(s, key=rank_pair)) for s in cast("Sets", partial))
    return USER[operation].encode(partial) if operation in USER else canonical(partial)


def rank_pair(pair: tuple[object, object]) -> tuple[object, ...]:
    """The order of an OR-set's tagged elements."""
    return (rank(pair[0]), rank(pair[1]))


def shown(operation: str, partial: object) -> tuple[object, str | None]:
    """The value to emit, and the exact text of one that does not fit its type. Law: G4."""
    if operation in EXACT:
        return shown_moments(operation, cast("Moments", partial))
    if operation in (FIRST, LAST, LWW):
        return (None if partial is None else canonical(cast("Place", partial)[-1])), None
    if operation == COUNT_DISTINCT:
        return len(cast("frozenset[object]", partial)), None
    if operation in COUNTERS:
        counts = cast("Counts", partial).values()
        return fitting(sum(c[0] - (c[1] if operation == PN_COUNTER else 0) for c in counts))
    if operation == OR_SET:
        adds, removes = cast("Sets", partial)
        elements = {element for element, _ in adds - removes}
        return ("list", tuple(sorted(elements, key=rank))), None  # type: ignore[arg-type]
    return (USER[operation].show(partial) if operation in USER else canonical(partial)), None


def fitting(total: int) -> tuple[int | None, str | None]:
    """An int64, or the text of what is none. Law: G4."""
    return (total, None) if INT64_MIN <= total <= INT64_MAX else (None, str(total))


def shown_moments(operation: str, partial: Moments) -> tuple[object, str | None]:
    """Sums, means, variances and deviations: exact, then rounded once. Law: G4."""
    count, total, squares, specials, kind = partial
    if count == 0 or (count == 1 and operation in (VAR_SAMP, STDDEV_SAMP)):
        return None, None
    if specials:
        mixed = operation in MOMENTS or len(specials) > 1 or "nan" in specials
        return (NAN if mixed else float(specials[0])), None
    if operation == SUM and kind:
        return decimal_sum(Fraction(total), kind)
    if operation == SUM and isinstance(total, int):
        return fitting(total)
    if operation in TOTALS:
        return rounded(Fraction(total, count if operation == MEAN else 1))
    samples = operation in (VAR_SAMP, STDDEV_SAMP)
    variance = (squares - Fraction(total * total) / count) / (count - samples)
    return rounded(variance) if operation in (VAR_POP, VAR_SAMP) else rounded_root(variance)


def rounded(exact: Fraction) -> tuple[float | None, str | None]:
    """The nearest double, ties to even. Law: G4."""
    try:
        return exact.numerator / exact.denominator, None  # Python rounds this correctly
    except OverflowError:
        return None, f"{exact.numerator}/{exact.denominator}"


def rounded_root(exact: Fraction) -> tuple[float | None, str | None]:
    """The double nearest to the square root: 64 bits of it or more, and a last one for the rest. Law: G4."""
    bits = exact.denominator.bit_length() - exact.numerator.bit_length()
    shift = max(0, 64 + bits // 2)
    scaled, rest = divmod(exact.numerator << 2 * shift, exact.denominator)
    root = math.isqrt(scaled)
    odd = root * root != scaled or rest != 0
    value, lost = rounded(Fraction(2 * root + odd, 2 << shift))
    return value, lost and f"sqrt({exact.numerator}/{exact.denominator})"


def decimal_sum(total: Fraction, kind: str) -> tuple[object, str | None]:
    """The widest decimal of the same bits, or the text of what it cannot hold. Law: G4."""
    digits, name = (76, "decimal256") if kind.startswith("decimal256") else (38, "decimal128")
    places = scale(kind)
    unscaled = total * 10**places
    assert unscaled.denominator == 1
    if abs(unscaled) < 10**digits:
        return (f"{name}({digits}, {places})", unscaled.numerator), None
    text = Decimal(unscaled.numerator).scaleb(-places, Context(prec=1000))
    return None, f"{text:f}"
