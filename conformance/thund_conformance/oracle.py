"""The batch answer: a plain GROUP BY over admitted rows, with fractions. It shares no code."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from thund_contract.engine import Outcome
from thund_contract.scenario import Scenario
from thund_contract.vocabulary import Aggregate, Config, Row, Rows

Answer = list[tuple[object, ...]]
"""(key, start, end, values), sorted by their repr."""


def admitted_rows(scenario: Scenario, outcome: Outcome) -> list[Row]:
    """The rows of the items, less those that a lane or a counter says were refused.

    Where late rows have no lane, they are those below W, which the suite follows itself.
    """
    assert scenario.config.late_lane or all(
        p.late == 0 for epoch in outcome.epochs[-1:] for p in epoch.partitions
    ), "late rows without a lane cannot be told apart here"
    by_place = {(r.partition, r.offset): r for _, log in scenario.logs for r in log}
    refused = {(r.partition, r.offset) for e in outcome.epochs for r in e.late}
    refused |= {(r.partition, r.offset) for e in outcome.epochs for r in e.invalid}
    taken: list[Row] = []
    for epoch in outcome.epochs:
        for item in epoch.items:
            if isinstance(item, Rows):
                places = [(item.partition, o) for o in range(item.first, item.last + 1)]
                taken += [by_place[p] for p in places if p in by_place and p not in refused]
    return taken


def group_by(config: Config, rows: Iterable[Row]) -> Answer:
    """One line per key and window."""
    size, offset = config.window.size_ms, config.window.offset_ms
    groups: dict[str, tuple[tuple[object, ...], int, list[Row]]] = {}
    for row in rows:
        time = row.event_time
        assert isinstance(time, int)
        start = math.floor(Fraction(time - offset, size)) * size + offset
        key = tuple(_one_of_its_kind(value) for value in row.key)
        groups.setdefault(repr((key, start)), (key, start, []))[2].append(row)
    answer: Answer = [
        (key, start, start + size, tuple(_value(a, i, members) for i, a in _numbered(config)))
        for key, start, members in groups.values()
    ]
    return sorted(answer, key=repr)


def _numbered(config: Config) -> list[tuple[int, Aggregate]]:
    return list(enumerate(config.aggregates))


def _one_of_its_kind(value: object) -> object:
    """One NaN, one zero."""
    if isinstance(value, float):
        return math.nan if math.isnan(value) else value or 0.0
    return value


def _value(aggregate: Aggregate, index: int, rows: list[Row]) -> object:
    if aggregate.column is None:
        return len(rows)
    values: list[Any] = [row.values[index] for row in rows if row.values[index] is not None]
    if aggregate.operation == "count":
        return len(values)
    if not values:
        return None
    if aggregate.operation in ("min", "max"):
        ordered = sorted(values, key=_order)
        return _plain(ordered[0 if aggregate.operation == "min" else -1])
    return _sum_or_mean(values, mean=aggregate.operation == "mean")


def _plain(value: object) -> object:
    return math.nan if isinstance(value, float) and math.isnan(value) else value


def _order(value: Any) -> tuple[Any, ...]:
    """-inf, finite, inf, then NaN; -0.0 before 0.0."""
    if isinstance(value, tuple):
        return (0, value[1])
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value, math.copysign(1.0, value))
    return (0, value)


def _sum_or_mean(values: list[Any], *, mean: bool) -> object:
    if isinstance(values[0], int):
        total = sum(values)
        if not mean:
            return total if -(2**63) <= total < 2**63 else None
        return _nearest(Fraction(total, len(values)))
    if any(math.isnan(v) for v in values) or {math.inf, -math.inf} <= set(values):
        return math.nan
    for infinite in (math.inf, -math.inf):
        if infinite in values:
            return infinite
    exact = sum(map(Fraction, values), Fraction(0))
    return _nearest(exact / len(values) if mean else exact)


def _nearest(exact: Fraction) -> float | None:
    try:
        return float(exact)
    except OverflowError:
        return None
