"""Seeded bugs in aggregates beyond counts and sums of numbers."""

# ruff: noqa: D103, SLF001 (catalogue.py says what each bug does; a bug reaches into what is private)
from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import thund.decimals
import thund.extra_distinct
import thund.extra_extreme
import thund.extra_first
import thund.kernel_totals
import thund.lattices
import thund.moments
import thund.totals
from thund.columns import is_bytes, is_text, raw
from thund_conformance.mutants.patches import Patches
from thund_contract.vocabulary import VAR_POP, VAR_SAMP

Counters = thund.lattices.Counters
LastWriters = thund.lattices.LastWriters
MomentKind = thund.moments.MomentKind
SetKind = thund.lattices.SetKind


def sample_of_one_is_zero(p: Patches) -> None:
    p.replace(thund.moments, "_SAMPLES", ())


def variance_of_rounded_sums(p: Patches) -> None:
    def values(self: Any, states: Any, operation: str) -> Any:
        less = int(operation in thund.moments._SAMPLES)
        parts, shape = thund.totals.apart(states, self._shape), self._shape
        unit, out = Fraction(shape.base) ** shape.unit, np.zeros(len(states))
        for i, line in enumerate(parts.lines):
            count = int(line[thund.kernel_totals.COUNT])
            total, squares = parts.far.get(i) or thund.totals.line_sums(line, shape)
            if count > less:
                a, b = _rounded(total * unit), _rounded(squares * unit * unit)
                out[i] = max(0.0, (b - a * a / count) / (count - less))
        root = operation not in (VAR_POP, VAR_SAMP)
        out[raw(states.field("specials")) != 0] = np.nan
        return (np.sqrt(out) if root else out), {}

    p.replace(MomentKind, "_values", values)


def _rounded(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf")


def ties_by_arrival(p: Patches) -> None:
    def around(original: Any, self: Any, entries: Any, time: Any, *place: Any) -> None:
        number, offset, values = place
        came = self.__dict__.setdefault("_came", 0)
        self._came += len(offset)
        order = np.arange(came, self._came)
        original(self, entries, time, np.zeros_like(number), order, values)

    p.wrap(thund.extra_first._Firsts, "_offer", around)


def zeros_apart(p: Patches) -> None:
    def around(original: Any, self: Any, entries: Any, columns: Any, places: Any) -> None:
        (values,) = columns
        if pa.types.is_floating(values.type):
            negative = [x is not None and str(x) == "-0.0" for x in values.to_pylist()]
            values = pc.if_else(pa.array(negative), pa.scalar(-5e-324, values.type), values)
        original(self, entries, [values], places)

    p.wrap(thund.extra_distinct._Sets, "fold", around)


def decimal_sum_wraps(p: Patches) -> None:
    def less(sums: Any, limit: int) -> Any:
        return np.full(len(sums), limit > 0)

    p.replace(thund.decimals, "_less", less)


def counters_add(p: Patches) -> None:
    p.edit(Counters, "_join", "map(max, old, theirs)", "map(sum, zip(old, theirs))")


def replicas_forgotten(p: Patches) -> None:
    def around(original: Any, self: Any, entries: Any, columns: Any) -> None:
        replica, *counts = columns
        least = pc.min(replica)
        original(self, entries, [pc.if_else(replica.is_valid(), least, replica), *counts])

    p.wrap(Counters, "_join", around)


def writers_tie_by_arrival(p: Patches) -> None:
    p.edit(LastWriters, "fold", "ranks((at, x))", "ranks((at,))")


def removes_win(p: Patches) -> None:
    p.edit(SetKind, "show", "for x, _ in a - r", "for x, _ in a if x not in dict(r)")


def texts_cut_to_eight(p: Patches) -> None:
    def around(original: Any, column: Any) -> Any:
        if is_text(column.type) or is_bytes(column.type):
            column = pa.array([x[:8] for x in column.to_pylist()], column.type)
        return original(column)

    p.wrap(thund.extra_extreme, "_encode", around)
