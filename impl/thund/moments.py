"""Variance and standard deviation of integers, decimals and floats: exact, then rounded once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thund import kernel_moments as kernel
from thund.columns import build, null_mask, raw
from thund.extras import Extra, Places, wrong_type
from thund.kernel_totals import COUNT, SUM
from thund.totals import STATE, Shape, Totals, apart, line_sums, shape_of
from thund_contract import vocabulary as v

_SAMPLES = (v.VAR_SAMP, v.STDDEV_SAMP)
_ROOTS = (v.STDDEV_POP, v.STDDEV_SAMP)
_ROOT_BITS = 64


class MomentKind:
    """var_pop, var_samp, stddev_pop and stddev_samp of a column share one partial.

    State: as `totals.STATE` says.

    Law: G4.
    """

    def __init__(self, column: str, shape: Shape) -> None:
        self.label = f"var({column})"
        self.state_type = STATE
        self._shape = shape

    def new(self) -> Extra:
        """The partials of a new table."""
        return TotalsExtra(self._shape)

    def show(self, states: Any, operation: str) -> tuple[Any, dict[int, str]]:
        """As float64: null for too few values, NaN where a special was seen.

        A value too large for a double shows null; its text is "numerator/denominator", of a
        deviation "sqrt(numerator/denominator)".

        Law: G4.
        Cost: 0.3 to 0.6 microseconds a group.
        """
        shown = np.zeros(len(states), np.float64)
        mask = null_mask(states)
        rows = np.arange(len(states)) if mask is None else np.flatnonzero(~mask)
        present = states if mask is None else states.drop_null()
        values, lost = self._values(present, operation)
        shown[rows] = values
        valid = np.zeros(len(states), np.bool_)
        valid[rows] = raw(present.field("count")) > (operation in _SAMPLES)
        unfit = {int(rows[i]): text for i, text in lost.items()}
        valid[list(unfit)] = False
        return build(pa.float64(), shown, valid), unfit

    def _values(self, states: Any, operation: str) -> tuple[NDArray[np.float64], dict[int, str]]:
        shape, less = self._shape, int(operation in _SAMPLES)
        parts, out = apart(states, shape), np.zeros(len(states), np.float64)
        counts, exponents = parts.lines[:, COUNT], raw(states.field("exponent"))
        near = (counts > less) & (counts <= kernel.DIVISOR_MAX) & (shape.scale >= 0)
        near[list(parts.far)] = False
        lines, quotients = parts.lines[near], np.empty(int(near.sum()), np.float64)
        kernel.show(
            kernel.DEVIATION if operation in _ROOTS else kernel.VARIANCE,
            lines,
            SUM + shape.sums,
            less,
            exponents[near] if shape.base == 2 else np.zeros(len(lines), np.int64),
            max(0, shape.scale),
            quotients,
        )
        out[near] = quotients
        special = raw(states.field("specials")) != 0
        lost = {}
        for i in np.flatnonzero((~near | np.isinf(out)) & (counts > less) & ~special).tolist():
            sums = parts.far.get(i) or line_sums(parts.lines[i], shape)
            exact = variance(int(counts[i]), *sums, shape, less)
            value = root_of(*exact) if operation in _ROOTS else quotient(*exact)
            if value is None:
                reduced = Fraction(*exact)
                text = f"{reduced.numerator}/{reduced.denominator}"
                lost[i] = f"sqrt({text})" if operation in _ROOTS else text
            else:
                out[i] = value
        out[special] = np.nan
        return out, lost


def moment_kind(aggregate: v.Aggregate, schema: Any) -> MomentKind:
    """Of integers, decimals and floats."""
    kind = schema.field(aggregate.column).type
    shape = shape_of(kind, squares=True)
    if shape is None:
        raise wrong_type(aggregate, kind, "integers, floats and decimals")
    return MomentKind(str(aggregate.column), shape)


class TotalsExtra:
    """Totals as the partials of a table."""

    def __init__(self, shape: Shape) -> None:
        self._totals = Totals(shape)
        self.absorb, self.states = self._totals.absorb, self._totals.states

    def fold(self, entries: NDArray[np.int64], columns: Sequence[Any], places: Places) -> None:
        """The values of the one column."""
        self._totals.fold(entries, columns[0])


def variance(count: int, total: int, squares: int, shape: Shape, less: int) -> tuple[int, int]:
    """Numerator and denominator of the variance, from sums in the unit of the shape."""
    numerator, denominator = count * squares - total * total, count * (count - less)
    power = int(shape.base) ** abs(2 * shape.unit)
    return (numerator * power, denominator) if shape.unit > 0 else (numerator, denominator * power)


def quotient(numerator: int, denominator: int) -> float | None:
    """The double nearest to a quotient; None where it is too large."""
    try:
        return numerator / denominator
    except OverflowError:
        return None


def root_of(numerator: int, denominator: int) -> float | None:
    """The same of the square root: 64 bits of it or more, and one that says "and more"."""
    lack = denominator.bit_length() - numerator.bit_length()
    shift = max(0, _ROOT_BITS + lack // 2 + 1)
    whole, rest = divmod(numerator << 2 * shift, denominator)
    root = math.isqrt(whole)
    more = int(rest != 0 or root * root != whole)
    return quotient(2 * root + more, 2 << shift)
