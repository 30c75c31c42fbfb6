"""Aggregates as commutative monoids, exact until they are shown.

A partial is what WindowState of the vocabulary describes, but for the exact sum, which is an int
over integers and a Fraction over floats. It knows no window and no time.
"""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import cast

from thund_contract.vocabulary import COUNT, MAX, MEAN, MIN, SUM

NAN = math.nan
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
Total = tuple[int, int | Fraction, tuple[str, ...]]
"""Non-null rows, their exact sum, and the specials among them."""


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


def empty(operation: str) -> object:
    """The neutral element. Law: G4."""
    return {COUNT: 0, SUM: (0, 0, ()), MEAN: (0, 0, ()), MIN: None, MAX: None}[operation]


def lift(operation: str, column: str | None, value: object) -> object:
    """One row as a partial: null adds nothing but to count(*). Law: G4."""
    if operation == COUNT:
        return int(column is None or value is not None)
    if value is None or operation in (MIN, MAX):
        return empty(operation) if value is None else value
    if not isinstance(value, float):
        return (1, cast("int", value), ())
    name = special(value)
    return (1, Fraction(0), (name,)) if name else (1, Fraction(value), ())


def merge(operation: str, left: object, right: object) -> object:
    """Commutative and associative: no order can show. Law: G4."""
    if operation == COUNT:
        return cast("int", left) + cast("int", right)
    if operation in (SUM, MEAN):
        return add_totals(cast("Total", left), cast("Total", right))
    if left is None or right is None:
        return right if left is None else left
    least, largest = sorted((left, right), key=rank)  # type: ignore[arg-type, type-var]
    return canonical(least if operation == MIN else largest)


def add_totals(left: Total, right: Total) -> Total:
    """Exact sums add exactly; counts and specials go beside. Law: G4."""
    specials = left[2] if left[2] == right[2] else tuple(sorted({*left[2], *right[2]}))
    return (left[0] + right[0], left[1] + right[1], specials)


def canonical(value: object) -> object:
    """One NaN for all. Law: G4."""
    return NAN if special(value) == "nan" else value


def normal(operation: str, partial: object) -> object:
    """The form in which WindowState shows a partial."""
    if operation not in (SUM, MEAN):
        return canonical(partial)
    count, exact, specials = cast("Total", partial)
    return (count, exact.numerator, exact.denominator, specials)


def shown(operation: str, partial: object) -> tuple[object, str | None]:
    """The value to emit, and the exact text of one that does not fit its type. Law: G4."""
    if operation not in (SUM, MEAN):
        return canonical(partial), None
    count, exact, specials = cast("Total", partial)
    if count == 0:
        return None, None
    if specials:
        return (NAN if len(specials) > 1 or "nan" in specials else float(specials[0])), None
    if operation == SUM and isinstance(exact, int):
        return (exact, None) if INT64_MIN <= exact <= INT64_MAX else (None, str(exact))
    quotient = Fraction(exact, count if operation == MEAN else 1)
    try:
        return quotient.numerator / quotient.denominator, None  # Python rounds this correctly
    except OverflowError:
        return None, f"{quotient.numerator}/{quotient.denominator}"
