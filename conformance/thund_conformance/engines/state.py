"""The implementation's state tables as the contract shows them, read by their description alone.

It shares no code with the implementation: what the tables mean stands in thund/windows.py,
thund/sessions.py and thund/coding.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa

from thund_conformance.engines.carrier import from_arrow
from thund_conformance.engines.cells import over_windows
from thund_contract.vocabulary import (
    COUNT,
    COUNT_DISTINCT,
    FIRST,
    G_COUNTER,
    HOPPING,
    LAST,
    LWW,
    MEAN,
    OR_SET,
    PN_COUNTER,
    STDDEV_POP,
    STDDEV_SAMP,
    SUM,
    VAR_POP,
    VAR_SAMP,
    Aggregate,
    Config,
    Seen,
    WindowState,
)
from thund_reference import operators
from thund_reference.accumulators import rank

_SPECIALS = ((4, "-inf"), (2, "+inf"), (1, "nan"))
"""Bits of `sum(c).specials`; the contract sorts the names."""


def configs_of(config: Config) -> dict[str, Config]:
    """What each operator is configured as, by its name; the first one's is ""."""
    first, *others = operators.configs_of(config)
    return {"": first, **{one.operator: one for one in others}}


def table_of(name: str, operator: str) -> str:
    """What an operator's table is called, as thund/operators.py says it."""
    return f"{name}-{operator}" if operator else name


def all_states(
    config: Config, tables: Mapping[str, pa.Table], watermark: int
) -> tuple[WindowState, ...]:
    """The open groups of all operators, with what was shown of them."""
    found: list[WindowState] = []
    for name, one in configs_of(config).items():
        own = {known: tables[at] for known in _TABLES if (at := table_of(known, name)) in tables}
        states = with_panes(one, window_states(one, own, watermark), own)
        found += [replace(state, operator=name) for state in states]
    return tuple(found)


_TABLES = ("operator-windows", "operator-panes")


def window_states(
    config: Config, tables: Mapping[str, pa.Table], watermark: int
) -> tuple[WindowState, ...]:
    """The open groups of an epoch's state, with W as it stood at its end."""
    table = tables["operator-windows"]
    columns = {name: from_arrow(table.column(name)) for name in table.column_names}
    states = []
    for i in range(table.num_rows):
        line: dict[str, Any] = {name: column[i] for name, column in columns.items()}
        key = tuple(line[f"key({name})"] for name in config.key)
        partials = tuple(_partial(aggregate, line) for aggregate in config.aggregates)
        start = line["cell_start" if config.window.kind == HOPPING else "window_start"]
        assert isinstance(start, int)
        end = line.get("window_end")
        states.append(WindowState(key, start, partials, end_ms=end))
    if config.window.kind == HOPPING:
        return over_windows(config, states, watermark)
    return tuple(states)


def with_panes(
    config: Config, states: tuple[WindowState, ...], tables: Mapping[str, pa.Table]
) -> tuple[WindowState, ...]:
    """The same groups with the panes that were shown of them, as thund/panes.py describes them.

    A pane without an open group is an error: no group would show it.

    Law: E6, F3.
    """
    if not config.panes:
        return states
    table = tables["operator-panes"]
    read = [*config.key, "_pane", "_timing"]
    starts = table.column("window_start").combine_chunks().view(pa.int64()).to_pylist()
    columns = zip(*(from_arrow(table.column(name)) for name in read), strict=True)
    shown = {
        (repr(tuple(key)), start): (number + 1, timing)
        for start, (*key, number, timing) in zip(starts, columns, strict=True)
    }
    names = [(repr(state.key), state.start_ms) for state in states]
    assert shown.keys() <= set(names), "a pane is kept that only a closed window needed (law F3)"
    found = [shown.get(name, (0, "")) for name in names]
    return tuple(
        replace(state, panes=count, timing=timing)
        for state, (count, timing) in zip(states, found, strict=True)
    )


def remembered(config: Config, tables: Mapping[str, pa.Table]) -> tuple[Seen, ...]:
    """The ids that an epoch's state remembers, as thund/repeats.py describes them."""
    if not config.deduplicate:
        return ()
    table = tables["operator-repeats"]
    ids = [from_arrow(table.column(f"id({name})")) for name in config.deduplicate]
    times = table.column("event_time").to_pylist()
    return tuple(Seen(key, time) for key, time in zip(zip(*ids, strict=True), times, strict=True))


def _partial(aggregate: Aggregate, line: dict[str, Any]) -> object:
    column = aggregate.column
    if column is None:
        return line["rows"]
    if aggregate.operation == COUNT:
        return line[f"count({column})"]
    if aggregate.operation in _MOMENTS:
        return _moments(line[f"var({column})"])
    if aggregate.operation not in (SUM, MEAN):
        columns = ", ".join((column, *aggregate.others))
        found = line[f"{aggregate.operation}({columns})"]
        return _OTHERS.get(aggregate.operation, _as_it_is)(found)
    if f"count({column})" not in line or isinstance(line[f"sum({column})"], dict | None):
        count, *sums, specials = _moments(line[f"sum({column})"])
        return (count, *sums[:2], specials)
    total, specials = _total(column, line)
    count = line[f"count({column})"]
    return (count, total.numerator, total.denominator, specials)


def _as_it_is(found: Any) -> object:
    return found


def _place_and_value(found: Any) -> object:
    return found and (found["event_time"], found["partition"], found["offset"], found["value"])


def _sorted(found: Any) -> object:
    return tuple(sorted(found[1], key=rank)) if found else ()  # type: ignore[arg-type]


def _counters(found: Any) -> object:
    return tuple(tuple(line.values()) for line in found[1]) if found else ()


def _stamped(found: Any) -> object:
    return found and (found["stamp"], found["value"])


def _sets(found: Any) -> object:
    sides = (found["adds"][1], found["removes"][1]) if found else ((), ())
    return tuple(tuple((line["element"], line["tag"]) for line in side) for side in sides)


_MOMENTS = (VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP)


def _moments(found: Any) -> tuple[Any, ...]:
    """As thund/totals.py describes them."""
    if found is None:
        return (0, 0, 1, 0, 1, ())
    unit = Fraction(found["base"]) ** found["exponent"]
    total, squares = (
        int.from_bytes(found[name] or b"", "little", signed=True) for name in ("sum", "squares")
    )
    exact = (total * unit, squares * unit * unit)
    parts = (part for x in exact for part in (x.numerator, x.denominator))
    specials = tuple(sorted(text for bit, text in _SPECIALS if found["specials"] & bit))
    return (found["count"], *parts, specials)


_OTHERS = {
    FIRST: _place_and_value,
    LAST: _place_and_value,
    COUNT_DISTINCT: _sorted,
    G_COUNTER: _counters,
    PN_COUNTER: _counters,
    LWW: _stamped,
    OR_SET: _sets,
}
"""How the contract shows a partial that is not shown as it is."""


def _total(column: str, line: dict[str, Any]) -> tuple[Fraction, tuple[str, ...]]:
    """The exact sum, and the names of the specials that were seen."""
    name = f"sum({column})"
    total = Fraction(line[name][1])
    if f"{name}.exponent" not in line:
        return total, ()
    wide = int.from_bytes(line[f"{name}.wide"] or b"", "little", signed=True)
    total = total * Fraction(2) ** line[f"{name}.exponent"] + Fraction(wide, 2**1075)
    bits = line[f"{name}.specials"]
    return total, tuple(sorted(text for bit, text in _SPECIALS if bits & bit))
