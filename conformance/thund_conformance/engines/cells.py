"""The cells of hopping windows, as a state has them, merged into the windows that lie over them.

It shares no code with the implementation but its users': partials are merged in the form in which
WindowState has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from thund.monoids import registered
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
    NEVER,
    OR_SET,
    PN_COUNTER,
    STDDEV_POP,
    STDDEV_SAMP,
    SUM,
    VAR_POP,
    VAR_SAMP,
    Config,
    WindowSpec,
    WindowState,
)
from thund_reference.accumulators import rank, rank_pair


def over_windows(
    config: Config, cells: Iterable[WindowState], watermark: int
) -> tuple[WindowState, ...]:
    """The groups of the open windows over some cells; start_ms of a cell is where it starts.

    A cell that only closed windows needed is an error: no group would show it.

    Law: G2, F3.
    """
    merged: dict[tuple[str, int], WindowState] = {}
    passed = watermark if watermark == NEVER else watermark - config.grace_ms
    for cell in cells:
        starts = window_starts(config.window, cell.start_ms)
        still_open = [start for start in starts if start + config.window.size_ms > passed]
        assert still_open, f"the cell at {cell.start_ms} has no open window, with W at {watermark}"
        for start in still_open:
            name = (repr(cell.key), start)  # a text, for NaN does not equal itself
            before = merged.get(name)
            partials = cell.partials if before is None else _merged(config, before, cell)
            merged[name] = WindowState(cell.key, start, partials)
    return tuple(merged.values())


def window_starts(window: WindowSpec, time: int) -> list[int]:
    """The starts of the hopping windows that hold a time. Law: G2."""
    last = time - (time - window.offset_ms) % window.slide_ms
    return list(range(last, time - window.size_ms, -window.slide_ms))


def _merged(config: Config, left: WindowState, right: WindowState) -> tuple[object, ...]:
    return tuple(
        (MERGE.get(aggregate.operation) or _of_user(aggregate.operation))(mine, theirs)
        for aggregate, mine, theirs in zip(
            config.aggregates, left.partials, right.partials, strict=True
        )
    )


def _of_user(operation: str) -> Callable[[Any, Any], object]:
    """How a registered monoid merges its encoded states."""
    monoid = registered()[operation]

    def merged(left: bytes, right: bytes) -> object:
        return monoid.encode(monoid.merge(monoid.decode(left), monoid.decode(right)))

    return merged


def _count(left: int, right: int) -> int:
    return left + right


def _total(left: Any, right: Any) -> tuple[object, ...]:
    """(count, numerator and denominator of each exact sum, specials)."""
    sums = []
    for at in range(1, len(left) - 1, 2):
        total = Fraction(*left[at : at + 2]) + Fraction(*right[at : at + 2])
        sums += [total.numerator, total.denominator]
    return (left[0] + right[0], *sums, tuple(sorted({*left[-1], *right[-1]})))


def _chosen(choose: Any, key: Callable[[Any], Any]) -> Callable[[Any, Any], object]:
    """The least or the greatest of two that are there."""

    def chosen(left: Any, right: Any) -> object:
        there = [each for each in (left, right) if each is not None]
        return choose(there, key=key) if there else None

    return chosen


def _place(partial: Any) -> object:
    return partial[:3]


def _distinct(left: Any, right: Any) -> tuple[object, ...]:
    values = {repr(value): value for value in (*left, *right)}
    return tuple(sorted(values.values(), key=rank))  # type: ignore[arg-type]


def _counter(left: Any, right: Any) -> tuple[object, ...]:
    """Per replica the most of each count."""
    lines = {repr(line[0]): line for line in left}
    for replica, *counts in right:
        known = lines.get(repr(replica), (replica, *counts))
        lines[repr(replica)] = (replica, *map(max, known[1:], counts))
    return tuple(sorted(lines.values(), key=_replica))


def _replica(line: tuple[object, ...]) -> Any:
    return rank(line[0])


def _sets(left: Any, right: Any) -> tuple[object, ...]:
    out = []
    for mine, theirs in zip(left, right, strict=True):
        pairs = {repr(pair): pair for pair in (*mine, *theirs)}
        out.append(tuple(sorted(pairs.values(), key=rank_pair)))
    return tuple(out)


_TOTALS = (SUM, MEAN, VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP)
MERGE: dict[str, Callable[[Any, Any], object]] = {
    COUNT: _count,
    COUNT_DISTINCT: _distinct,
    FIRST: _chosen(min, _place),
    LAST: _chosen(max, _place),
    LWW: _chosen(max, rank_pair),
    G_COUNTER: _counter,
    PN_COUNTER: _counter,
    OR_SET: _sets,
    **dict.fromkeys((MIN, ALL), _chosen(min, rank)),
    **dict.fromkeys((MAX, ANY), _chosen(max, rank)),
    **dict.fromkeys(_TOTALS, _total),
}
"""How two partials of an operation are merged; others are a user's."""
