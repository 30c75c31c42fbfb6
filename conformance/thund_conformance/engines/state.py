"""The implementation's state tables as the contract shows them, read by their description alone.

It shares no code with the implementation: what the tables mean stands in thund/windows.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pyarrow as pa

from thund_conformance.engines.carrier import from_arrow
from thund_contract.vocabulary import COUNT, MEAN, SUM, Aggregate, Config, WindowState

_SPECIALS = ((4, "-inf"), (2, "+inf"), (1, "nan"))
"""Bits of `sum(c).specials`; the contract sorts the names."""


def window_states(config: Config, tables: Mapping[str, pa.Table]) -> tuple[WindowState, ...]:
    """The open groups of an epoch's state."""
    table = tables["operator-windows"]
    columns = {name: from_arrow(table.column(name)) for name in table.column_names}
    states = []
    for i in range(table.num_rows):
        line = {name: column[i] for name, column in columns.items()}
        key = tuple(line[f"key({name})"] for name in config.key)
        partials = tuple(_partial(aggregate, line) for aggregate in config.aggregates)
        start = line["window_start"]
        assert isinstance(start, int)
        states.append(WindowState(key, start, partials))
    return tuple(states)


def _partial(aggregate: Aggregate, line: dict[str, Any]) -> object:
    column = aggregate.column
    if column is None:
        return line["rows"]
    if aggregate.operation == COUNT:
        return line[f"count({column})"]
    if aggregate.operation not in (SUM, MEAN):
        return line[f"{aggregate.operation}({column})"]
    total, specials = _total(column, line)
    count = line[f"count({column})"]
    return (count, total.numerator, total.denominator, specials)


def _total(column: str, line: dict[str, Any]) -> tuple[Fraction, tuple[str, ...]]:
    """The exact sum, and the names of the specials that were seen."""
    name = f"sum({column})"
    total = Fraction(line[name] or 0)
    if f"{name}.exponent" not in line:
        return total, ()
    wide = int.from_bytes(line[f"{name}.wide"] or b"", "little", signed=True)
    total = total * Fraction(2) ** line[f"{name}.exponent"] + Fraction(wide, 2**1075)
    bits = line[f"{name}.specials"]
    return total, tuple(sorted(text for bit, text in _SPECIALS if bits & bit))
