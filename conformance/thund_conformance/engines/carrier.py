"""Rows of a scenario as typed Arrow columns, and Arrow values back as the contract shows them.

A column's type follows from the values that a scenario has for it; a column of nulls only is int64,
but boolean where its aggregate or the filter asks for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thund.batch import Delivery
from thund_contract.scenario import Scenario
from thund_contract.vocabulary import ALL, ANY, OR_SET, Aggregate, Config, Operator, Row

_PLAIN = ((bool, pa.bool_()), (int, pa.int64()), (float, pa.float64()), (str, pa.string()))
_UNITS = re.compile(r"(timestamp|duration|time32|time64)\[(s|ms|us|ns)(?:, tz=(.+))?\]")
_DECIMAL = re.compile(r"(decimal32|decimal64|decimal128|decimal256)\((\d+), (-?\d+)\)")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Carrier:
    """The columns of one scenario: the event time, keys, ids, the filter's, and what is aggregated.

    A column that several windows read stands there once.

    other_types: the same values in rarer Arrow types: the smallest integer that holds them,
    texts in a dictionary, large binaries, instants instead of integers.
    """

    def __init__(self, scenario: Scenario, *, other_types: bool = False) -> None:
        self.config = scenario.config
        rows = [row for _, log in scenario.logs for row in log]
        cells = [self._values(row) for row in rows]
        self.types = {}
        for name in self._names():
            values = [cell[name] for cell in cells]
            kind = pa.bool_() if name in self._booleans() else column_type(name, values)
            self.types[name] = _rarer(kind, values) if other_types else kind
        self.time_type = _time_type([row.event_time for row in rows])
        if other_types and self.time_type == pa.int64():
            self.time_type = pa.timestamp("ms", "UTC")
        fields = [pa.field(self.config.event_time, self.time_type)]
        fields += [pa.field(name, kind) for name, kind in self.types.items()]
        self.schema = pa.schema(fields)

    def delivery(self, rows: Sequence[tuple[Row, int]]) -> Delivery:
        """Rows, each with its prev, in order of arrival."""
        partitions = tuple(sorted({row.partition for row, _ in rows}))
        columns = [_times([row.event_time for row, _ in rows], self.time_type)]
        cells = [self._values(row) for row, _ in rows]
        for name, kind in self.types.items():
            columns.append(to_arrow([cell[name] for cell in cells], kind))
        return Delivery(
            pa.record_batch(columns, schema=self.schema),
            partitions,
            np.array([partitions.index(row.partition) for row, _ in rows], np.int32),
            np.array([row.offset for row, _ in rows], np.int64),
            np.array([prev for _, prev in rows], np.int64),
        )

    def _names(self) -> list[str]:
        config, more = self.config, self.config.more
        aggregated = [n for a in _aggregates(config) if a.column for n in (a.column, *a.others)]
        keys = [*config.key, *(name for one in more for name in one.key)]
        kept = [] if config.filter is None else [config.filter]
        return list(dict.fromkeys([*keys, *aggregated, *config.deduplicate, *kept]))

    def _booleans(self) -> set[str | None]:
        """The columns that must be booleans, also where they hold nulls only."""
        found = {self.config.filter}
        for aggregate in _aggregates(self.config):
            if aggregate.operation in (ANY, ALL):
                found.add(aggregate.column)
            elif aggregate.operation == OR_SET:
                found.add(aggregate.others[-1])
        return found

    def _values(self, row: Row) -> dict[str, object]:
        """The row's value in each column, which is the same wherever the row shows it."""
        found: dict[str, object] = {}
        for name, value in _cells(self.config, row):
            if repr(found.setdefault(name, value)) != repr(value):
                raise ValueError(f"row {row.partition}:{row.offset} has several values of {name}")
        return found


def _cells(config: Config, row: Row) -> Iterator[tuple[str, object]]:
    """Columns and values, as often as the row shows them."""
    yield from zip(config.deduplicate, row.id, strict=True)
    if config.filter is not None:
        yield config.filter, row.passes
    windows: list[Config | Operator] = [config, *config.more]
    for window, (key, values) in zip(windows, [(row.key, row.values), *row.more], strict=True):
        yield from zip(window.key, key, strict=True)
        for aggregate, value in zip(window.aggregates, values, strict=True):
            yield from _by_column(aggregate, value)


def _aggregates(config: Config) -> list[Aggregate]:
    """Those of all windows."""
    return [*config.aggregates, *(each for one in config.more for each in one.aggregates)]


def _by_column(aggregate: Aggregate, value: object) -> Iterable[tuple[str, object]]:
    """The columns that an aggregate reads, and a row's value in each."""
    if aggregate.column is None:
        return ()
    if not aggregate.others:
        return ((aggregate.column, value),)
    assert isinstance(value, tuple)
    return zip((aggregate.column, *aggregate.others), value, strict=True)


def column_type(name: str, values: Iterable[object]) -> pa.DataType:
    """The one Arrow type that holds all values of a column.

    Raises: ValueError for values of several types.
    """
    found = {type_of(value) for value in values if value is not None}
    if len(found) > 1:
        raise ValueError(f"column {name} holds {', '.join(sorted(map(str, found)))}")
    return found.pop() if found else pa.int64()


def type_of(value: object) -> pa.DataType:
    """The Arrow type of one value of the contract."""
    if isinstance(value, bytes):
        return pa.binary()
    if isinstance(value, tuple):
        return named_type(str(value[0]))
    for kind, arrow in _PLAIN:
        if isinstance(value, kind):
            return arrow
    raise ValueError(f"no Arrow type for a {type(value).__name__}")


def named_type(name: str) -> pa.DataType:
    """The Arrow type that prints as `name`: a date, time, timestamp, duration or decimal."""
    dates = {"date32[day]": pa.date32(), "date64[ms]": pa.date64()}
    if name in dates:
        return dates[name]
    decimal = _DECIMAL.fullmatch(name)
    if decimal is not None:
        return getattr(pa, decimal[1])(int(decimal[2]), int(decimal[3]))
    match = _UNITS.fullmatch(name)
    if match is None:
        raise ValueError(f"no scenario can hold a {name}")
    kind, unit, zone = match.groups()
    return pa.timestamp(unit, zone) if kind == "timestamp" else getattr(pa, kind)(unit)


def to_arrow(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    """Values of the contract as an Arrow array of a type."""
    if all(not isinstance(value, tuple) for value in values):
        return pa.array(values, kind)
    inner = [value[1] if isinstance(value, tuple) else None for value in values]
    if pa.types.is_decimal(kind):
        width = kind.bit_width // 8
        inner = [None if n is None else n.to_bytes(width, "little", signed=True) for n in inner]
    return pa.array(inner, _storage(kind)).view(kind)


def from_arrow(column: pa.ChunkedArray) -> list[object]:
    """An Arrow column as values of the contract; a struct's are a dict by the names of its fields."""
    kind, name = column.type, str(column.type)
    if pa.types.is_list(kind):
        inner = iter(from_arrow(pa.chunked_array([column.combine_chunks().flatten()])))
        lengths = pc.list_value_length(column).to_pylist()
        return [None if n is None else ("list", tuple(islice(inner, n))) for n in lengths]
    if pa.types.is_struct(kind):
        names = [kind.field(i).name for i in range(kind.num_fields)]
        fields = [from_arrow(field) for field in column.flatten()]
        lines = zip(column.is_valid().to_pylist(), *fields, strict=True)
        return [dict(zip(names, line, strict=True)) if valid else None for valid, *line in lines]
    if not (pa.types.is_temporal(kind) or pa.types.is_decimal(kind)):
        values: list[object] = column.to_pylist()
        return values
    stored = column.combine_chunks().view(_storage(kind)).to_pylist()
    if pa.types.is_decimal(kind):
        stored = [n if n is None else int.from_bytes(n, "little", signed=True) for n in stored]
    return [None if value is None else (name, value) for value in stored]


def _rarer(kind: pa.DataType, values: Iterable[object]) -> pa.DataType:
    """Another type for the same values."""
    if kind == pa.int64():
        numbers = [value for value in values if isinstance(value, int)] or [0]
        signed, unsigned = _INTEGERS
        sizes = signed if min(numbers) < 0 else unsigned
        return next(t for bits, t in sizes if all(-(2**bits) <= n < 2**bits for n in numbers))
    return {
        pa.string(): pa.dictionary(pa.int32(), pa.string()),
        pa.binary(): pa.large_binary(),
    }.get(kind, kind)


_INTEGERS = (
    ((7, pa.int8()), (15, pa.int16()), (31, pa.int32()), (63, pa.int64())),
    ((8, pa.uint8()), (16, pa.uint16()), (32, pa.uint32()), (64, pa.uint64())),
)
"""Signed and unsigned types by the bits of their values."""


def _storage(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(kind):
        return pa.binary(kind.bit_width // 8)
    return pa.int32() if kind.bit_width == 32 else pa.int64()


def _time_type(times: Sequence[object]) -> pa.DataType:
    if any(isinstance(time, str) for time in times):
        return pa.string()
    return pa.float64() if any(isinstance(time, float) for time in times) else pa.int64()


def _times(times: Sequence[object], kind: pa.DataType) -> pa.Array:
    if kind == pa.string():
        return pa.array([_text(t) if isinstance(t, int) else t for t in times], kind)
    if kind == pa.float64():
        return pa.array([float(t) if isinstance(t, int) else t for t in times], kind)
    return pa.array(times, kind)


def _text(time_ms: int) -> str:
    return (EPOCH + timedelta(milliseconds=time_ms)).isoformat(timespec="milliseconds")
