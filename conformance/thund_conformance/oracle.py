"""The batch answer: a plain GROUP BY over admitted rows, with fractions. It shares no code."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from thund_conformance.definition import sessions_of, windows_of
from thund_contract.engine import Outcome
from thund_contract.scenario import Scenario
from thund_contract.vocabulary import SESSION, Aggregate, Config, Row, Rows, WindowSpec

Answer = list[tuple[object, ...]]
"""(key, start, end, values), sorted by their repr."""


def admitted_rows(scenario: Scenario, outcome: Outcome) -> list[Row]:
    """The rows of the items, less those of a lane, and those that the filter does not pass.

    Where late rows have no lane, they are those below W, which the suite follows itself.
    """
    assert scenario.config.late_lane or all(
        p.late == 0 for epoch in outcome.epochs[-1:] for p in epoch.partitions
    ), "late rows without a lane cannot be told apart here"
    assert not scenario.config.deduplicate, "repeats have no lane"
    by_place = {(r.partition, r.offset): r for _, log in scenario.logs for r in log}
    refused = {(r.partition, r.offset) for e in outcome.epochs for r in e.late}
    refused |= {(r.partition, r.offset) for e in outcome.epochs for r in e.invalid}
    if scenario.config.filter is not None:
        refused |= {place for place, row in by_place.items() if row.passes is not True}
    taken: list[Row] = []
    for epoch in outcome.epochs:
        for item in epoch.items:
            if isinstance(item, Rows):
                places = [(item.partition, o) for o in range(item.first, item.last + 1)]
                taken += [by_place[p] for p in places if p in by_place and p not in refused]
    return taken


def group_by(config: Config, rows: Iterable[Row]) -> Answer:
    """One line per key and window."""
    by_key: dict[str, tuple[tuple[object, ...], list[Row]]] = {}
    for row in rows:
        key = tuple(_one_of_its_kind(value) for value in row.key)
        by_key.setdefault(repr(key), (key, []))[1].append(row)
    answer: Answer = [
        (key, *span, tuple(_value(a, i, members) for i, a in _numbered(config)))
        for key, of_key in by_key.values()
        for span, members in _windows(config.window, of_key).items()
    ]
    return sorted(answer, key=repr)


def _windows(window: WindowSpec, rows: list[Row]) -> dict[tuple[int, int], list[Row]]:
    """The windows that have rows of one key, each with its rows."""
    spans = {span for row in rows for span in windows_of(window, _time(row))}
    if window.kind == SESSION:
        spans = set(sessions_of(spans))
    return {(a, b): [row for row in rows if a <= _time(row) < b] for a, b in spans}


def _time(row: Row) -> int:
    assert isinstance(row.event_time, int)
    return row.event_time


def _numbered(config: Config) -> list[tuple[int, Aggregate]]:
    return list(enumerate(config.aggregates))


def _one_of_its_kind(value: object) -> object:
    """One NaN, one zero."""
    if isinstance(value, float):
        return math.nan if math.isnan(value) else value or 0.0
    return value


def _value(aggregate: Aggregate, index: int, rows: list[Row]) -> object:
    operation = aggregate.operation
    if aggregate.column is None:
        return len(rows)
    if aggregate.others:
        return _lattice(operation, [r.values[index] for r in rows if None not in r.values[index]])  # type: ignore[operator]
    known = [row for row in rows if row.values[index] is not None]
    values: list[Any] = [row.values[index] for row in known]
    if operation == "count":
        return len(values)
    if operation == "count_distinct":
        return len({repr(_one_of_its_kind(value)) for value in values})
    if not values:
        return None
    if operation in ("any", "all"):
        return any(values) if operation == "any" else all(values)
    if operation in ("first", "last"):
        places = sorted(known, key=lambda row: (_time(row), row.partition, row.offset))
        return _plain(places[0 if operation == "first" else -1].values[index])
    if operation in ("min", "max"):
        ordered = sorted(values, key=_order)
        return _plain(ordered[0 if operation == "min" else -1])
    return _sum_or_mean(values, operation)


def _lattice(operation: str, rows: list[Any]) -> object:
    """What each row's columns join to."""
    if operation == "lww":
        best = max(rows, key=lambda row: (_order(row[1]), _order(row[0])), default=(None,))
        return _plain(best[0])
    if operation == "or_set":
        gone = {repr(row[:2]) for row in rows if not row[2]}
        left = {repr(row[0]): row[0] for row in rows if row[2] and repr(row[:2]) not in gone}
        return ("list", tuple(sorted(left.values(), key=_order)))
    replicas: dict[object, list[Any]] = {}
    for row in rows:
        replicas.setdefault(row[-1], []).append(row)
    total = sum(max(r[0] for r in of_one) for of_one in replicas.values())
    if operation == "pn_counter":
        total -= sum(max(r[1] for r in of_one) for of_one in replicas.values())
    return total if -(2**63) <= total < 2**63 else None


def _plain(value: object) -> object:
    return math.nan if isinstance(value, float) and math.isnan(value) else value


def _order(value: Any) -> tuple[Any, ...]:
    """-inf, finite, inf, then NaN; -0.0 before 0.0."""
    if isinstance(value, tuple):
        return (0, value[1])
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value, math.copysign(1.0, value))
    return (0, value)


def _sum_or_mean(values: list[Any], operation: str) -> object:
    """A sum, mean, variance or deviation of what is there, by Fraction."""
    samples = operation.endswith("_samp")
    if samples and len(values) == 1:
        return None
    floats = [v for v in values if isinstance(v, float)]
    special = [v for v in floats if not math.isfinite(v)]
    if special:
        one = len({repr(v) for v in special}) == 1 and operation in ("sum", "mean")
        return special[0] if one else math.nan
    exact = [
        Fraction(v[1], 10 ** _digits(v[0])) if isinstance(v, tuple) else Fraction(v) for v in values
    ]
    total = sum(exact, Fraction(0))
    if operation == "sum" and not floats:
        return _exact_sum(total, values[0])
    if operation in ("sum", "mean"):
        return _nearest(total / (len(values) if operation == "mean" else 1))
    mean = total / len(values)
    variance = sum(((x - mean) ** 2 for x in exact), Fraction(0)) / (len(values) - samples)
    return _nearest(variance) if operation.startswith("var") else _root(variance)


def _digits(kind: str) -> int:
    return int(kind.split(",")[1].strip(" )"))


def _exact_sum(total: Fraction, sample: object) -> object:
    """An integer or a decimal of the widest type of its kind, or None where it does not fit."""
    if not isinstance(sample, tuple):
        return int(total) if -(2**63) <= total < 2**63 else None
    digits, wide = _digits(sample[0]), sample[0].startswith("decimal256")
    name, precision = ("decimal256", 76) if wide else ("decimal128", 38)
    unscaled = int(total * 10**digits)
    fits = abs(unscaled) < 10**precision
    return (f"{name}({precision}, {digits})", unscaled) if fits else None


def _root(exact: Fraction) -> float | None:
    """The double whose square is nearest, found between two neighbours by halving."""
    if exact == 0:
        return 0.0
    low, high = 0, 0x7FF0000000000000  # bits of doubles from 0 to infinity, in their order
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if Fraction(_double(middle)) ** 2 <= exact else (low, middle)
    if high == 0x7FF0000000000000:
        past = Fraction(_double(low)) + Fraction(2) ** 970
        return _double(low) if exact < past**2 else None
    half = (Fraction(_double(low)) + Fraction(_double(high))) / 2
    up = exact > half**2 or (exact == half**2 and low % 2 == 1)
    return _double(high if up else low)


def _double(bits: int) -> float:
    (value,) = struct.unpack("<d", struct.pack("<q", bits))
    assert isinstance(value, float)
    return value


def _nearest(exact: Fraction) -> float | None:
    try:
        return float(exact)
    except OverflowError:
        return None
