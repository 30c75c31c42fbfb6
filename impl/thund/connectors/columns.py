"""Types of columns: their names in a definition, what widens to what, cells that do not fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thund.checks import ARROW_TYPES
from thund_contract.errors import CallerError, InputError

NULL_WORDS = ("", "#N/A", "#NA", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null")
"""How an empty event time is written in CSV."""

LEAST = np.iinfo(np.int64).min

DIGITS = r"^-?[0-9]+$"
NUMBER = r"^-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def arrow_type(name: str) -> Any:
    """The Arrow type of a name in `source.types`."""
    plain = name.removesuffix(", UTC]")
    if plain != name:
        return pa.timestamp(plain.removeprefix("timestamp["), "UTC")
    if name.startswith("time") and name.endswith("]"):
        kind, unit = name.removesuffix("]").split("[")
        return {"timestamp": pa.timestamp, "time32": pa.time32, "time64": pa.time64}[kind](unit)
    return pa.type_for_alias(name)


TYPES = {name: arrow_type(name) for name in ARROW_TYPES}


def type_name(kind: Any) -> str | None:
    """The name that `arrow_type` reads back, None where a definition has none."""
    return next((name for name, each in TYPES.items() if each == kind), None)


def settled(kind: Any) -> Any:
    """What inference may hold on to: times in microseconds, so that later fractions fit."""
    if pa.types.is_timestamp(kind) and kind.unit in {"s", "ms"}:
        return pa.timestamp("us", kind.tz)
    if pa.types.is_binary(kind):
        return pa.string()
    return kind


def guess_time_type(cells: pa.Array) -> Any:
    """The type of a text column of event times: whole numbers or numbers where most cells are.

    Anything else stays text, which is decoded cell by cell (law A4), so that garbage in the first
    rows does not decide for all.
    """
    filled = cells.filter(pc.invert(is_null_word(cells)))
    if len(filled) == 0:
        return pa.null()
    for pattern, kind in ((DIGITS, pa.int64()), (NUMBER, pa.float64())):
        fitting = pc.sum(pc.match_substring_regex(pc.utf8_trim_whitespace(filled), pattern)).as_py()
        if 2 * fitting >= len(filled):
            return kind
    return pa.string()


def is_null_word(cells: pa.Array) -> pa.Array:
    """Where a cell says that there is nothing; a null cell counts."""
    return pc.fill_null(pc.is_in(cells, pa.array(NULL_WORDS, pa.string())), True)


def convert_times(cells: pa.Array, kind: Any) -> tuple[pa.Array, NDArray[np.bool_]]:
    """Event-time cells as `kind`, and where a cell is unreadable: null there, and counted (A4).

    A time without a zone is UTC.

    Cost: one cast where all cells are good, else a bisection to each one that is not.
    """
    cells = pc.if_else(is_null_word(cells), pa.scalar(None, pa.string()), cells)
    if pa.types.is_string(kind):
        return cells, np.zeros(len(cells), np.bool_)
    cells = pc.utf8_trim_whitespace(cells)
    bad = np.zeros(len(cells), np.bool_)
    parts = _cast(cells, kind, bad, 0)
    return pa.concat_arrays(parts) if parts else pa.array([], kind), bad


def _cast(cells: pa.Array, kind: Any, bad: NDArray[np.bool_], at: int) -> list[pa.Array]:
    in_zone = pa.types.is_timestamp(kind) and kind.tz is not None
    for through in (kind, pa.timestamp(kind.unit)) if in_zone else (kind,):
        try:
            return [cells.cast(through).cast(kind)]
        except pa.ArrowInvalid:
            continue
    if len(cells) == 1:
        bad[at] = True
        return [pa.nulls(1, kind)]
    half = len(cells) // 2
    first = _cast(cells.slice(0, half), kind, bad, at)
    return first + _cast(cells.slice(half), kind, bad, at + half)


# ---- one schema for all files ------------------------------------------------------------------


def unify(schemas: Mapping[str, tuple[pa.Schema, bool]]) -> pa.Schema:
    """The schema that holds all files' columns without loss; label -> (schema, types inferred?).

    Integers and floats widen, units of time get finer, all-null columns take any type; inferred
    whole numbers also become floats.

    Raises: InputError that names the file whose type does not fit.
    """
    labels = list(schemas)
    merged, loose = schemas[labels[0]]
    merged = pa.schema([(f.name, plain_type(f.type)) for f in merged])
    for label in labels[1:]:
        schema, inferred = schemas[label]
        loose = loose or inferred
        for place, one in enumerate(merged):
            other = plain_type(schema.field(one.name).type)
            kind = widen(one.type, other, loose=loose)
            if kind is None:
                raise InputError(
                    f"column {one.name!r} is {other} here and {one.type} in {labels[0]}",
                    allowed="one type for all files of a source, or one that widens to it",
                    where=label,
                    action=f'set {one.name} = "..." under [source.types] for CSV and JSON lines, '
                    "or write the file with the same type",
                    code="type_differs",
                )
            merged = merged.set(place, pa.field(one.name, kind))
    return pa.schema(
        [(f.name, pa.string() if pa.types.is_null(f.type) else f.type) for f in merged]
    )


def plain_type(kind: Any) -> Any:
    """The type of the values: a dictionary's own values, small strings for all texts."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    return kind


def widen(one: Any, other: Any, *, loose: bool = False) -> Any:
    """The smaller type that holds both, None where there is none without loss.

    >>> widen(pa.int32(), pa.int64()), widen(pa.uint64(), pa.int64())
    (DataType(int64), None)
    """
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if pa.types.is_integer(one) and pa.types.is_integer(other):
        return _widen_integers(one, other)
    if pa.types.is_floating(one) and pa.types.is_floating(other):
        return max(one, other, key=lambda kind: int(kind.bit_width))
    if pa.types.is_timestamp(one) and pa.types.is_timestamp(other) and one.tz == other.tz:
        return max(one, other, key=lambda kind: ("s", "ms", "us", "ns").index(kind.unit))
    numbers = {one, other} == {pa.int64(), pa.float64()}
    return pa.float64() if loose and numbers else None


def _widen_integers(one: Any, other: Any) -> Any:
    signed, unsigned = pa.types.is_signed_integer, pa.types.is_unsigned_integer
    if signed(one) == signed(other):
        return max(one, other, key=lambda kind: int(kind.bit_width))
    plus, minus = (one, other) if unsigned(one) else (other, one)
    bits = max(2 * int(plus.bit_width), int(minus.bit_width))
    return {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}.get(bits)


# ---- keys of the order -------------------------------------------------------------------------


def check_order_type(name: str, kind: Any) -> None:
    """See that a column can say which row comes next.

    Raises: CallerError otherwise.
    """
    t = pa.types
    if not (t.is_integer(kind) or t.is_floating(kind) or t.is_temporal(kind)):
        raise CallerError(
            f"source.order_by: column {name!r} is {kind}",
            allowed="a column of integers, floats, dates or times",
            where="[source]",
            action=f'set {name} = "timestamp[us]" (or another type) under [source.types], or order '
            "by another column",
        )


def order_keys(column: pa.Array) -> NDArray[np.int64]:
    """int64 that sort as the column does; null and NaN come before all else.

    So a row without a value follows the row before it at once, and none ever waits for it.

    Law: S5.
    """
    kind = column.type
    if pa.types.is_floating(kind):
        values = np.ascontiguousarray(pc.fill_null(column.cast(pa.float64()), np.nan).to_numpy())
        bits = (values + 0.0).view(np.int64)
        keys = np.where(bits < 0, bits ^ np.int64(np.iinfo(np.int64).max), bits)
        return np.where(np.isnan(values), np.int64(LEAST), keys)
    if kind == pa.uint64():
        raw = pc.fill_null(column, 0).to_numpy() ^ np.uint64(1 << 63)
        return np.where(_nulls(column), np.int64(LEAST), raw.view(np.int64))
    if pa.types.is_temporal(kind):
        column = column.view(pa.int64() if kind.bit_width == 64 else pa.int32())
    keys = np.asarray(pc.fill_null(column.cast(pa.int64()), 0).to_numpy())
    return np.where(_nulls(column), np.int64(LEAST), keys)


def _nulls(column: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False))
