"""Aggregates that merge by join: growing counters, the last writer's value, an observed-remove set.

A row with a null in any column that the operation reads is skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thund.calls import columns_of, text_of
from thund.columns import build, is_bytes, is_text, null_mask, plain_type, raw
from thund.extra_values import stored_type
from thund.extras import Extra, Places
from thund.scalars import (
    Value,
    column_of,
    is_ordered,
    is_scalar,
    rank,
    ranks,
    same,
    values_of,
)
from thund_contract import vocabulary as v
from thund_contract.errors import CallerError

_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1
_SCALARS = "booleans, integers, floats, decimals, texts, bytes, dates and times"
_ORDERED = "integers, floats, decimals, texts, bytes, dates and times"


def present(
    entries: NDArray[np.int64], columns: Sequence[Any]
) -> tuple[NDArray[np.int64], list[Any]]:
    """The rows that have no null."""
    valid = np.ones(len(entries), np.bool_)
    for column in columns:
        mask = null_mask(column)
        if mask is not None:
            valid &= ~mask
    if valid.all():
        return entries, list(columns)
    return entries[valid], [column.filter(pa.array(valid)) for column in columns]


# ---- counters -------------------------------------------------------------------------------------


class CounterKind:
    """g_counter and pn_counter: per replica the largest count, or increments and decrements.

    State: a list of (replica, first, and of pn_counter second), sorted by replica; null for none.

    Law: G4.
    """

    def __init__(self, label: str, counts: Sequence[Any], replica: Any) -> None:
        self.label = label
        self._names = ("first", "second")[: len(counts)]
        fields = [pa.field("replica", stored_type(replica))]
        fields += [pa.field(n, kind) for n, kind in zip(self._names, counts, strict=True)]
        self.state_type = pa.list_(pa.struct(fields))

    def new(self) -> Extra:
        """The partials of a new table."""
        return Counters(self.state_type)

    def show(self, states: Any, operation: str) -> tuple[Any, dict[int, str]]:
        """All counts added up, the second ones taken away; 0 of none."""
        totals = [0] * len(states)
        rows = lengths_of(states)
        inner = states.flatten()
        for name, sign in zip(self._names, (1, -1), strict=False):
            for row, x in zip(rows, values_of(inner.field(name)), strict=True):
                totals[row] += sign * x
        fits = [_INT64_MIN <= x <= _INT64_MAX for x in totals]
        shown = np.array([x if ok else 0 for x, ok in zip(totals, fits, strict=True)], np.int64)
        lost = {i: str(totals[i]) for i, ok in enumerate(fits) if not ok}
        return build(pa.int64(), shown, np.array(fits, np.bool_)), lost


class Counters:
    """The counters of one table.

    Cost: 50 to 100 ns a row, and 1 microsecond per replica and group of a batch.
    """

    def __init__(self, state_type: Any) -> None:
        self._type = state_type
        self._names = [field.name for field in state_type.value_type]
        self._counts: dict[int, dict[Value, tuple[int, ...]]] = {}

    def fold(self, entries: NDArray[np.int64], columns: Sequence[Any], places: Places) -> None:
        """Rows of counts, and their replica."""
        *counts, replica = columns
        self._join(entries, [replica, *counts])

    def absorb(self, entries: NDArray[np.int64], states: Any) -> None:
        """Partials, each a few rows."""
        inner = states.flatten()
        self._join(entries[lengths_of(states)], [inner.field(name) for name in self._names])

    def _join(self, entries: NDArray[np.int64], columns: Sequence[Any]) -> None:
        entries, columns = present(entries, columns)
        stored = [field.type for field in self._type.value_type]
        cast = [c.cast(kind) for c, kind in zip(columns, stored, strict=True)]
        rows = pa.table([pa.array(entries), *cast], names=["entry", *self._names])
        first, *counts = self._names
        most = rows.group_by(["entry", first], use_threads=False).aggregate(
            [(name, "max") for name in counts]
        )
        found = [values_of(whole(most[name])) for name in ("entry", first)]
        found += [values_of(whole(most[f"{name}_max"])) for name in counts]
        for entry, replica, *values in zip(*found, strict=True):
            mine, key, theirs = self._counts.setdefault(entry, {}), same(replica), tuple(values)
            old = mine.get(key)
            mine[key] = theirs if old is None else tuple(map(max, old, theirs))

    def states(self, entries: NDArray[np.int64]) -> Any:
        """The counts so far."""
        groups = [self._counts.get(entry) for entry in entries.tolist()]
        lines = [sorted(group.items(), key=_replica) if group else None for group in groups]
        return lists(
            [None if line is None else [(r, *counts) for r, counts in line] for line in lines],
            self._type,
        )


def _replica(item: tuple[Value, tuple[int, ...]]) -> Any:
    return rank(item[0])


def counter_kind(aggregate: v.Aggregate, schema: Any) -> CounterKind:
    """Integers, and a replica of any scalar type."""
    *counts, replica = _types(aggregate, schema)
    for kind in counts:
        _demand(pa.types.is_integer(kind), aggregate, kind, "counts that are integers")
    _demand(is_scalar(replica), aggregate, replica, f"a replica of {_SCALARS}")
    return CounterKind(text_of(aggregate), counts, replica)


# ---- the last writer's value ----------------------------------------------------------------------


class LastWriterKind:
    """lww: the value of the greatest (stamp, value), in the order of min and max.

    State: stamp and value; null for none.

    Law: G4.
    """

    def __init__(self, label: str, value: Any, stamp: Any) -> None:
        self.label, self._value = label, value
        fields = [("stamp", stored_type(stamp)), ("value", stored_type(value))]
        self.state_type = pa.struct(fields)

    def new(self) -> Extra:
        """The partials of a new table."""
        return LastWriters(self.state_type)

    def show(self, states: Any, operation: str) -> tuple[Any, dict[int, str]]:
        """The value, in its column's type."""
        return states.flatten()[1].cast(self._value), {}


class LastWriters:
    """The last writers of one table.

    Cost: 30 ns a row where stamps have 64 bits, 1 microsecond where not, or where many are equal.
    """

    def __init__(self, state_type: Any) -> None:
        self._type = state_type
        self._written: dict[int, tuple[Any, Value, Value]] = {}

    def fold(self, entries: NDArray[np.int64], columns: Sequence[Any], places: Places) -> None:
        """Rows of a value and its stamp."""
        entries, (value, stamp) = present(entries, columns)
        newest = newest_rows(entries, stamp)
        if newest is not None:
            rows = pa.array(newest)
            entries, value, stamp = entries[newest], value.take(rows), stamp.take(rows)
        for entry, x, at in zip(entries.tolist(), values_of(value), values_of(stamp), strict=True):
            order, old = ranks((at, x)), self._written.get(entry)
            if old is None or order > old[0]:
                self._written[entry] = (order, at, x)

    def absorb(self, entries: NDArray[np.int64], states: Any) -> None:
        """Partials, each one row."""
        stamp, value = states.flatten()
        self.fold(entries, [value, stamp], NO_PLACES)

    def states(self, entries: NDArray[np.int64]) -> Any:
        """The newest so far."""
        found = [self._written.get(entry) for entry in entries.tolist()]
        columns = [
            column_of([None if each is None else each[c] for each in found], field.type)
            for c, field in enumerate(self._type, 1)
        ]
        empty = pa.array([each is None for each in found], pa.bool_())
        return pa.StructArray.from_arrays(columns, fields=list(self._type), mask=empty)


def newest_rows(entries: NDArray[np.int64], stamp: Any) -> NDArray[np.int64] | None:
    """The rows with the greatest stamp of their entry; None where stamps are no 64-bit words."""
    kind = stamp.type
    if is_text(kind) or is_bytes(kind) or pa.types.is_decimal(kind) or not len(entries):
        return None
    words = raw(stamp)
    if words.dtype.kind == "f":
        bits = words.astype(np.float64)
        bits[np.isnan(bits)] = np.nan
        order = bits.view(np.int64)
        words = order ^ ((order >> np.int64(63)) & np.int64(_INT64_MAX))
    least = np.iinfo(words.dtype).min
    best = np.full(int(entries.max()) + 1, least, words.dtype)
    np.maximum.at(best, entries, words)
    return np.flatnonzero(words == best[entries])


def last_writer_kind(aggregate: v.Aggregate, schema: Any) -> LastWriterKind:
    """A value and a stamp that have an order."""
    value, stamp = _types(aggregate, schema)
    for kind in (value, stamp):
        _demand(is_ordered(kind), aggregate, kind, f"value and stamp of {_ORDERED}")
    return LastWriterKind(text_of(aggregate), value, stamp)


# ---- the observed-remove set ----------------------------------------------------------------------


class SetKind:
    """or_set: elements are added under tags, and removed by naming the tags that were seen.

    State: adds and removes, each a list of (element, tag), sorted; null for none.

    Law: G4.
    """

    def __init__(self, label: str, element: Any, tag: Any) -> None:
        views = pa.types.is_string_view(element) or pa.types.is_binary_view(element)
        self.label = label
        self._shown = pa.list_(stored_type(element) if views else element)
        pairs = pa.list_(pa.struct([("element", stored_type(element)), ("tag", stored_type(tag))]))
        self.state_type = pa.struct([("adds", pairs), ("removes", pairs)])

    def new(self) -> Extra:
        """The partials of a new table."""
        return Sets(self.state_type)

    def show(self, states: Any, operation: str) -> tuple[Any, dict[int, str]]:
        """The elements with an added tag that is not removed, sorted; an empty list of none."""
        adds, removes = (pairs_of(side, len(states)) for side in states.flatten())
        found = [
            [(x,) for x in sorted({x for x, _ in a - r}, key=rank)]
            for a, r in zip(adds, removes, strict=True)
        ]
        return lists(found, self._shown), {}


class Sets:
    """The sets of one table.

    Cost: 1 to 2 microseconds a row.
    """

    def __init__(self, state_type: Any) -> None:
        self._type = state_type
        self._pairs: dict[int, tuple[set[Any], set[Any]]] = {}

    def fold(self, entries: NDArray[np.int64], columns: Sequence[Any], places: Places) -> None:
        """Rows of an element, a tag, and whether it is added."""
        entries, (element, tag, added) = present(entries, columns)
        self._join(entries, element, tag, values_of(added))

    def absorb(self, entries: NDArray[np.int64], states: Any) -> None:
        """Partials, each a few rows."""
        for side, added in zip(states.flatten(), (True, False), strict=True):
            inner = side.flatten()
            rows = entries[lengths_of(side)]
            self._join(rows, inner.field("element"), inner.field("tag"), [added] * len(inner))

    def _join(
        self, entries: NDArray[np.int64], element: Any, tag: Any, added: Iterable[bool]
    ) -> None:
        rows = zip(entries.tolist(), values_of(element), values_of(tag), added, strict=True)
        for entry, x, t, add in rows:
            pairs = self._pairs.get(entry)
            if pairs is None:
                pairs = self._pairs[entry] = (set(), set())
            pairs[0 if add else 1].add((same(x), same(t)))

    def states(self, entries: NDArray[np.int64]) -> Any:
        """The tags so far."""
        found = [self._pairs.get(entry) for entry in entries.tolist()]
        columns = [
            lists(
                [None if each is None else sorted(each[side], key=ranks) for each in found],
                self._type[side].type,
            )
            for side in (0, 1)
        ]
        empty = pa.array([each is None for each in found], pa.bool_())
        return pa.StructArray.from_arrays(columns, fields=list(self._type), mask=empty)


def pairs_of(side: Any, n: int) -> list[set[tuple[Value, Value]]]:
    """The pairs of each of n lists."""
    out: list[set[tuple[Value, Value]]] = [set() for _ in range(n)]
    inner = side.flatten()
    found = (values_of(inner.field(name)) for name in ("element", "tag"))
    for row, *pair in zip(lengths_of(side).tolist(), *found, strict=True):
        out[row].add((pair[0], pair[1]))
    return out


def set_kind(aggregate: v.Aggregate, schema: Any) -> SetKind:
    """Element and tag of any scalar type."""
    element, tag, added = _types(aggregate, schema)
    for kind in (element, tag):
        _demand(is_scalar(kind), aggregate, kind, f"element and tag of {_SCALARS}")
    _demand(pa.types.is_boolean(added), aggregate, added, "a boolean that says whether it is added")
    return SetKind(text_of(aggregate), element, tag)


# ---- lists ---------------------------------------------------------------------------------------


def lengths_of(column: Any) -> NDArray[np.int64]:
    """For each element of the lists of a column the number of its list; null is an empty list."""
    lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    numbers: NDArray[np.int64] = np.repeat(np.arange(len(column)), lengths)
    return numbers


def lists(groups: Sequence[Sequence[tuple[Value, ...]] | None], kind: Any) -> Any:
    """A column of lists of a scalar, or of a struct of scalars; None is a null."""
    offsets = np.zeros(len(groups) + 1, np.int32)
    np.cumsum([len(group or ()) for group in groups], out=offsets[1:])
    flat = [line for group in groups if group for line in group]
    inner = kind.value_type
    if pa.types.is_struct(inner):
        columns = [column_of([x[c] for x in flat], f.type) for c, f in enumerate(inner)]
        values = pa.StructArray.from_arrays(columns, fields=list(inner))
    else:
        values = column_of([x for (x,) in flat], inner)
    mask = pa.array([group is None for group in groups], pa.bool_())
    return pa.ListArray.from_arrays(pa.array(offsets), values, type=kind, mask=mask)


def whole(column: Any) -> Any:
    """A chunked column in one piece."""
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


NO_PLACES = Places(np.empty(0, np.int64), np.empty(0, np.int32), (), np.empty(0, np.int64))
"""Where rows that come out of partials stand."""


def _types(aggregate: v.Aggregate, schema: Any) -> list[Any]:
    return [plain_type(schema.field(name).type) for name in columns_of(aggregate)]


def _demand(right: bool, aggregate: v.Aggregate, kind: Any, allowed: str) -> None:
    if not right:
        raise CallerError(
            f"{text_of(aggregate)} over a column of type {kind}",
            allowed=allowed,
            where=f"aggregate {aggregate.name!r}",
            action="cast the column or choose another operation",
        )
