"""Aggregates as commutative monoids over fixed words: exact partials, rounded once when shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thund import sums
from thund.columns import address, build, narrow, plain, plain_type, raw, unviewed
from thund.extra_kinds import extra_kind
from thund.extras import ExtraKind, wrong_type
from thund.kernel import MAX, MIN, NULLS, ORDER, SUM_FLOAT, SUM_INTEGER
from thund.kernel_sum import WIDE_WORDS
from thund.sums import Column
from thund.table import Block, State
from thund.words import Array
from thund_contract import vocabulary as v
from thund_contract.errors import CallerError

_TOP_BIT = np.int64(-(1 << 63))
_POSITIVE = np.int64((1 << 63) - 1)
LEAST, MOST = -(1 << 63), (1 << 63) - 1
_PRECISION = 38


@dataclass(frozen=True, slots=True)
class UnfitValues:
    """Values of one aggregate that do not fit their type: which groups, and the exact values."""

    aggregate: str
    groups: list[int]
    values: list[str]


@dataclass(slots=True)
class ColumnWords:
    """Value columns of one batch: addresses of words, and of validity bits with their offsets.

    extra: for each of Accumulators.kinds the columns it reads.
    """

    data: NDArray[np.uint64]
    bitmap: NDArray[np.uint64]
    offset: NDArray[np.uint64]
    nulls: bool
    keep: list[Any]
    extra: list[tuple[Any, ...]]


class Accumulators:
    """The states that some aggregates need, each computed once, and what is shown of them.

    Law: G4.
    Raises: CallerError for a missing column or an operation its type does not have.
    """

    def __init__(self, aggregates: Sequence[v.Aggregate], schema: Any) -> None:
        self.aggregates = tuple(aggregates)
        wanted: dict[str, set[str]] = {}
        extras: dict[str, tuple[ExtraKind, tuple[str, ...]]] = {}
        self._extra_of: dict[v.Aggregate, ExtraKind] = {}
        for aggregate in self.aggregates:
            kind = _check(aggregate, schema)
            if aggregate.column is None:
                continue
            if kind is None:
                wanted.setdefault(aggregate.column, set()).add(aggregate.operation)
                continue
            columns = (aggregate.column, *aggregate.others)
            self._extra_of[aggregate], _ = extras.setdefault(kind.label, (kind, columns))
        self.kinds = tuple(kind for kind, _ in extras.values())
        self._extra_columns = tuple(columns for _, columns in extras.values())
        self.columns = tuple(
            Column(
                name,
                plain_type(schema.field(name).type),
                _kind(plain_type(schema.field(name).type)),
                bool(operations & {v.SUM, v.MEAN}),
                bool(operations & {v.MIN, v.ALL}),
                bool(operations & {v.MAX, v.ANY}),
            )
            for name, operations in wanted.items()
        )
        self._by_name = {column.name: column for column in self.columns}
        self.names = tuple(dict.fromkeys([*wanted, *chain.from_iterable(self._extra_columns)]))
        """The columns that are read."""

    def states(self, *, nulls: bool) -> list[State]:
        """The program for these aggregates; without nulls no column has had one yet."""
        out = []
        for c, column in enumerate(self.columns):
            name = column.name
            if nulls:
                out.append(State(NULLS, c, (f"nulls:{name}",), (0,)))
            if column.sums and column.kind == "float":
                labels = tuple(f"sum{w}:{name}" for w in range(4))
                out.append(State(SUM_FLOAT, c, labels, (0, 0, 0, 0)))
            elif column.sums:
                out.append(State(SUM_INTEGER, c, (f"sum0:{name}", f"sum1:{name}"), (0, 0)))
            if column.kind == "float" and (column.least or column.most):
                out.append(State(ORDER, c))
            if column.least:
                out.append(State(MIN, c, (f"min:{name}",), (MOST,)))
            if column.most:
                out.append(State(MAX, c, (f"max:{name}",), (LEAST,)))
        return out

    def encode(self, batch: Any) -> ColumnWords:
        """The value columns of a batch as 64-bit words.

        Cost: nothing for 64-bit columns, else about 1 ns a row.
        """
        data, bitmap, offset = (np.zeros(max(1, len(self.columns)), np.uint64) for _ in range(3))
        keep: list[Any] = []
        for c, column in enumerate(self.columns):
            source = plain(batch.column(column.name))
            if column.valued:
                words = _encode_values(source, column.kind)
                data[c] = address(words)
                keep.append((source, words))
            if source.null_count or pa.types.is_null(source.type):
                valid = source.is_valid()
                bitmap[c], offset[c] = valid.buffers()[1].address, valid.offset
                keep.append(valid)
        extra = [
            tuple(_taken(batch.column(name)) for name in names) for names in self._extra_columns
        ]
        return ColumnWords(data, bitmap, offset, bool(bitmap.any()), keep, extra)

    def show(self, block: Block) -> tuple[list[Any], list[UnfitValues]]:
        """One output column per aggregate, and the values that do not fit theirs.

        Nulls are skipped by all but count(*); sum, mean, min and max of no value are null.

        Law: G4.
        """
        out, unfit = [], []
        for aggregate in self.aggregates:
            if aggregate.column is None:
                out.append(build(pa.int64(), block.word("rows")))
                continue
            if aggregate in self._extra_of:
                kind = self._extra_of[aggregate]
                shown, lost = kind.show(block.extras[kind.label], aggregate.operation)
            else:
                column = self._by_name[aggregate.column]
                shown, lost = self._show(block, aggregate.operation, column)
            out.append(shown)
            if lost:
                values = list(lost.values())
                unfit.append(UnfitValues(aggregate.name, list(lost), values))
        return out, unfit

    def _show(self, block: Block, operation: str, column: Column) -> tuple[Any, dict[int, str]]:
        count = sums.counts(block, column)
        if operation == v.COUNT:
            return build(pa.int64(), count), {}
        if operation in (v.MIN, v.MAX, v.ANY, v.ALL):
            return _extreme(block, column, dict(column.extremes)[operation], count), {}
        values: Array
        if column.kind == "float":
            values, lost = sums.show_float_quotients(block, column, count, mean=operation == v.MEAN)
        elif operation == v.MEAN:
            values, lost = sums.show_integer_means(block, column, count), {}
        else:
            values, lost = sums.show_integer_sums(block, column, count)
        valid = count > 0
        valid[list(lost)] = False
        return build(pa.int64() if values.dtype == np.int64 else pa.float64(), values, valid), lost

    def partials(self, block: Block) -> dict[str, Any]:
        """The exact partials as Arrow columns; the schema stands in windows.py."""
        out = {"rows": build(pa.int64(), block.word("rows"))}
        for column in self.columns:
            name, count = column.name, sums.counts(block, column)
            out[f"count({name})"] = build(pa.int64(), count)
            if column.sums and column.kind == "float":
                out.update(sums.float_partials(block, name))
            elif column.sums:
                words = np.stack(sums.integer_sums(block, column), axis=1)
                out[f"sum({name})"] = build(pa.decimal128(_PRECISION, 0), words)
            for operation, label in column.extremes:
                out[f"{operation}({name})"] = _extreme(block, column, label, count)
        out.update((kind.label, block.extras[kind.label]) for kind in self.kinds)
        return out

    def restore(self, table: Any, words: dict[str, NDArray[np.int64]]) -> NDArray[np.int64]:
        """Set the words of all states, by label, from `partials`. Returns the wide sums."""
        rows = raw(table.column("rows"))
        words["rows"] = rows
        wide: list[bytes] = []
        for column in self.columns:
            name = column.name
            count = raw(table.column(f"count({name})"))
            words[f"nulls:{name}"] = rows - count
            if column.sums and column.kind == "float":
                sums.restore_float_sums(table, name, words, wide)
            elif column.sums:
                total = raw(table.column(f"sum({name})"))
                low, high = total[:, 0].view(np.uint64), total[:, 1]
                if column.kind == "unsigned":
                    low, high = sums.shifted(low, high, -count)
                words[f"sum0:{name}"], words[f"sum1:{name}"] = low.view(np.int64), high
            for operation, label in column.extremes:
                values = _encode_values(table.column(f"{operation}({name})"), column.kind)
                ordered = _order(values) if column.kind == "float" else values
                none = MOST if label.startswith("min:") else LEAST
                words[label] = np.where(count > 0, ordered, np.int64(none))
        flat = np.frombuffer(b"".join(wide), np.int64)
        return flat.reshape(len(wide), WIDE_WORDS)


_NUMBERS, _ORDERED, _BOOLEAN = {"integer", "unsigned", "float"}, {"time"}, {"boolean"}
_USABLE = {
    v.COUNT: _NUMBERS | _ORDERED | _BOOLEAN | {"any"},
    v.SUM: _NUMBERS,
    v.MEAN: _NUMBERS,
    v.MIN: _NUMBERS | _ORDERED,
    v.MAX: _NUMBERS | _ORDERED,
    v.ANY: _BOOLEAN,
    v.ALL: _BOOLEAN,
}
"""Kinds of columns for which words hold an operation."""

_TOTALS = "integers, floats and decimals"
_ALLOWED = {
    v.SUM: _TOTALS,
    v.MEAN: _TOTALS,
    v.MIN: f"{_TOTALS}, texts, bytes, dates, times, timestamps and durations",
    v.MAX: f"{_TOTALS}, texts, bytes, dates, times, timestamps and durations",
    v.ANY: "booleans",
    v.ALL: "booleans",
}


def _check(aggregate: v.Aggregate, schema: Any) -> ExtraKind | None:
    """How the aggregate keeps its partials, where words do not."""
    where = f"aggregate {aggregate.name!r}"
    if aggregate.column is None:
        if aggregate.operation != v.COUNT:
            raise CallerError(
                f"{aggregate.operation} without a column",
                allowed="only count may go without one",
                where=where,
                action="name the column",
            )
        return None
    for name in (aggregate.column, *aggregate.others):
        column_type(schema, name, where)
    kind = extra_kind(aggregate, schema)
    own = _kind(plain_type(schema.field(aggregate.column).type))
    if kind is None and own not in _USABLE[aggregate.operation]:
        found = schema.field(aggregate.column).type
        raise wrong_type(aggregate, found, _ALLOWED[aggregate.operation])
    return kind


def column_type(schema: Any, name: str, where: str) -> Any:
    """The type of a column.

    Raises: CallerError where the schema does not have just one of that name.
    """
    if schema.get_field_index(name) < 0:
        raise CallerError(
            f"no column {name!r}" if name not in schema.names else f"several columns {name!r}",
            allowed=", ".join(schema.names),
            where=where,
            action="name one of the source's columns",
        )
    return schema.field(name).type


def _kind(kind: Any) -> str:
    if pa.types.is_uint64(kind):
        return "unsigned"
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_floating(kind):
        return "float"
    if pa.types.is_boolean(kind):
        return "boolean"
    temporal = pa.types.is_temporal(kind) and not pa.types.is_interval(kind)
    return "time" if temporal else "any"


def _taken(column: Any) -> Any:
    column = plain(column)
    return column.cast(unviewed(column.type))


def _encode_values(column: Any, kind: str) -> NDArray[np.int64]:
    values = raw(column)
    if kind == "unsigned":
        return values.view(np.int64) ^ _TOP_BIT
    if kind == "float":
        return values.astype(np.float64, copy=False).view(np.int64)
    return values.astype(np.int64, copy=False)


def _order(bits: NDArray[np.int64]) -> NDArray[np.int64]:
    """Bits of doubles as integers of their order, and back."""
    ordered: NDArray[np.int64] = bits ^ ((bits >> np.int64(63)) & _POSITIVE)
    return ordered


def _extreme(block: Block, column: Column, label: str, count: NDArray[np.int64]) -> Any:
    words = block.word(label)
    if column.kind == "float":
        words = _order(words)
    elif column.kind == "unsigned":
        words = words ^ _TOP_BIT
    return build(column.type, narrow(column.type, words), count > 0)
