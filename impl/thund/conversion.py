"""Arrow types that belong together, and casts in which a value without a place becomes null."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thund.columns import is_bytes, is_text, plain_type

_UNITS = ("s", "ms", "us", "ns")
_FLOORS = {"s": "second", "ms": "millisecond", "us": "microsecond", "ns": "nanosecond"}
_INTEGER_DIGITS = 20
_MOST_DIGITS = 76
_TESTS = (
    ("null", pa.types.is_null),
    ("bool", pa.types.is_boolean),
    ("integer", pa.types.is_integer),
    ("float", pa.types.is_floating),
    ("decimal", pa.types.is_decimal),
    ("text", is_text),
    ("bytes", is_bytes),
    ("time", pa.types.is_timestamp),
    ("date", pa.types.is_date),
)


def kind_of(kind: Any) -> str:
    """What an expression can do with a type, in one word; "other" for what it only hands on."""
    return next((name for name, test in _TESTS if test(kind)), "other")


def common(kinds: Sequence[Any]) -> Any:
    """The one type that holds the values of several; None where there is none.

    Integers beside floats become floats; times without a zone are UTC.
    """
    found = [plain_type(kind) for kind in kinds if not pa.types.is_null(kind)]
    if not found or all(kind == found[0] for kind in found):
        return found[0] if found else pa.null()
    names = {kind_of(kind) for kind in found}
    if names <= {"integer", "float", "decimal"}:
        return _common_number(found, names)
    if names == {"text"}:
        wide = any(pa.types.is_large_string(kind) for kind in found)
        return pa.large_string() if wide else pa.string()
    if names == {"bytes"}:
        return pa.large_binary()
    if names <= {"time", "date"}:
        units = [kind.unit if pa.types.is_timestamp(kind) else "s" for kind in found]
        return pa.timestamp(max(units, key=_UNITS.index), "UTC")
    return None


def _common_number(found: Sequence[Any], names: set[str]) -> Any:
    if "float" in names:
        return pa.float64()
    if "decimal" not in names:
        unsigned = [pa.types.is_unsigned_integer(kind) for kind in found]
        if not any(pa.types.is_uint64(kind) for kind in found):
            return pa.int64()
        return pa.uint64() if all(unsigned) else pa.decimal128(_INTEGER_DIGITS, 0)
    decimals = [kind for kind in found if pa.types.is_decimal(kind)]
    scale = max(0, *(kind.scale for kind in decimals))
    whole = max(_INTEGER_DIGITS, *(kind.precision - kind.scale for kind in decimals))
    return pa.decimal256(whole + scale, scale) if whole + scale <= _MOST_DIGITS else None


def lenient(column: Any, kind: Any) -> Any:
    """A column in another type; what has no place in it is null.

    Cost: about 1 ns a row; where a value has no place, a few microseconds for each that differs.
    """
    if column.type == kind:
        return column
    if pa.types.is_integer(column.type) and pa.types.is_floating(kind):
        return column.cast(kind, safe=False)
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        coded = column.dictionary_encode()
        values = pa.concat_arrays(_pieces(coded.dictionary, kind))
        return values.take(coded.indices)


def _pieces(values: Any, kind: Any) -> list[Any]:
    """The casts of parts that can be cast, and null for each single value that cannot."""
    try:
        return [values.cast(kind)]
    except pa.ArrowInvalid:
        if len(values) == 1:
            return [pa.nulls(1, kind)]
        half = len(values) // 2
        return _pieces(values[:half], kind) + _pieces(values[half:], kind)


def cast(column: Any, name: str) -> Any:
    """What an expression's cast makes of a column; name: one of expressions.TYPES."""
    kind, own = type_named(name), column.type
    if pa.types.is_integer(kind) and pa.types.is_floating(own):
        return _whole(column, kind)
    if pa.types.is_integer(kind) and pa.types.is_decimal(own):
        return lenient(pc.trunc(column), kind)
    if pa.types.is_timestamp(kind) and is_text(own):
        return _moments(column, kind)
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(own):
        if _UNITS.index(kind.unit) < _UNITS.index(own.unit):
            column = pc.floor_temporal(column, unit=_FLOORS[kind.unit])
        return lenient(column, kind)
    if pa.types.is_date32(kind) and pa.types.is_timestamp(own):
        return column.cast(pa.timestamp(own.unit, "UTC")).cast(kind)
    return lenient(column, kind)


def type_named(name: str) -> Any:
    """The Arrow type of one of expressions.TYPES."""
    if name.startswith("timestamp"):
        unit, _, zone = name[len("timestamp[") : -1].partition(", ")
        return pa.timestamp(unit, zone or None)
    return {"bool": pa.bool_(), "string": pa.string()}.get(name) or getattr(pa, name)()


def _whole(column: Any, kind: Any) -> Any:
    """Floats without their fraction; null where the integer has no place."""
    values = column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    limits = np.iinfo(kind.to_pandas_dtype())
    whole = np.trunc(values)
    most = float(limits.max)
    below = whole < most if int(most) > limits.max else whole <= most  # 2**63 is no int64
    fits = (whole >= float(limits.min)) & below
    numbers = np.where(fits, whole, 0.0).astype(kind.to_pandas_dtype())
    valid = pc.and_(column.is_valid(), pa.array(fits))
    return pc.if_else(valid, pa.array(numbers, kind), None)


def _moments(column: Any, kind: Any) -> Any:
    """Texts in ISO 8601; without a zone they are UTC."""
    texts = column.cast(pa.large_string())
    for form in (pa.timestamp(kind.unit), pa.timestamp(kind.unit, "UTC")):
        try:
            return texts.cast(form).cast(kind)
        except pa.ArrowInvalid:
            continue
    coded = texts.dictionary_encode()
    moments = [_moment(text) for text in coded.dictionary.to_pylist()]
    values = lenient(pa.array(moments, pa.timestamp("us", "UTC")), kind)
    return values.take(coded.indices)


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
