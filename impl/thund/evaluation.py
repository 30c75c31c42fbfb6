"""Expressions over Arrow columns: the type of each before any row comes, and its value for a batch.

What an expression means stands in expressions.py. No value that a row can hold raises an error:
what has no result is null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thund.columns import is_text, plain
from thund.conversion import cast, common, kind_of, lenient
from thund.expressions import Call, Expression, Literal, Name, Node
from thund.integers import arithmetic
from thund_contract.errors import CallerError

Columns = Mapping[str, Any]
_Function = Callable[..., Any]

_COMPARISONS: dict[str, _Function] = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_FLOATS: dict[str, _Function] = {"+": pc.add, "-": pc.subtract, "*": pc.multiply, "/": pc.divide}
_PATTERNS: dict[str, _Function] = {
    "starts_with": pc.starts_with,
    "ends_with": pc.ends_with,
    "contains": pc.match_substring,
}
_TEXTS: dict[str, _Function] = {
    "lower": pc.utf8_lower,
    "upper": pc.utf8_upper,
    "trim": pc.utf8_trim_whitespace,
    "length": lambda text: pc.utf8_length(text).cast(pa.int64()),
}
_ROUNDINGS: dict[str, _Function] = {
    "floor": pc.floor,
    "ceil": pc.ceil,
    "round": lambda number: pc.round(number, round_mode="half_towards_infinity"),
}
_PARTS: dict[str, _Function] = {"year": pc.year, "month": pc.month, "day": pc.day, "hour": pc.hour}
_NUMBERS = ("integer", "float", "decimal", "null")


def result_type(expression: Expression, schema: Any) -> Any:
    """The type of an expression over columns of a schema.

    Raises: CallerError for a column that is missing or of a type that cannot be used.
    """
    for name in expression.columns():
        if schema.get_field_index(name) < 0:
            several = name in schema.names
            raise CallerError(
                f"several columns {name!r}" if several else f"no column {name!r}",
                allowed=", ".join(schema.names),
                where=f"{expression.where}: {expression.text}",
                action="name one of these columns",
            )
    empty = {name: pa.array([], schema.field(name).type) for name in expression.columns()}
    return evaluate(expression, empty, 0).type


def evaluate(expression: Expression, columns: Columns, rows: int) -> Any:
    """The value of an expression for each of some rows.

    Raises: CallerError for columns of types that cannot be used; no value raises.
    Cost: 1 to 10 ns a row and operation.
    """
    return _Evaluation(expression, columns, rows).value(expression.root)


class _Evaluation:
    """One expression over one batch."""

    def __init__(self, expression: Expression, columns: Columns, rows: int) -> None:
        self.expression, self.columns, self.rows = expression, columns, rows

    def value(self, node: Node) -> Any:
        if isinstance(node, Name):
            return plain(self.columns[node.column])
        if isinstance(node, Literal):
            return pa.repeat(pa.scalar(node.value), self.rows)
        try:
            return self._call(node, [self.value(each) for each in node.arguments])
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            self._refuse(node, [], str(error))

    def _call(self, node: Call, found: list[Any]) -> Any:
        name = node.function
        if name in _COMPARISONS:
            return self._compare(node, name, *found)
        if name in ("+", "-", "*", "/", "%"):
            return self._arithmetic(node, name, *found)
        if name in _PATTERNS:
            text = node.arguments[1]
            assert isinstance(text, Literal)
            return _PATTERNS[name](self._text(node, found[0]), pattern=text.value)
        if name in _TEXTS:
            return _TEXTS[name](self._text(node, found[0]))
        if name in _ROUNDINGS:
            return self._rounded(node, _ROUNDINGS[name], found[0])
        if name in _PARTS:
            return self._part(node, _PARTS[name], found[0])
        return self._other(node, name, found)

    def _other(self, node: Call, name: str, found: list[Any]) -> Any:
        match name:
            case "and" | "or":
                combine = pc.and_kleene if name == "and" else pc.or_kleene
                return _fold(combine, [self._truth(node, each) for each in found])
            case "not":
                return pc.invert(self._truth(node, found[0]))
            case "in":
                tests = [self._compare(node, "==", found[0], each) for each in found[1:]]
                return _fold(pc.or_kleene, tests)
            case "is_null" | "is_not_null":
                return found[0].is_null() if name == "is_null" else found[0].is_valid()
            case "coalesce":
                return pc.coalesce(*self._alike(node, found))
            case "if_else":
                condition = self._truth(node, found[0]).fill_null(False)
                return pc.if_else(condition, *self._alike(node, found[1:]))
            case "cast":
                return cast(found[0], node.type_name)
            case "neg":
                zero = pa.repeat(pa.scalar(0), self.rows)
                return self._arithmetic(node, "-", zero, found[0])
            case "pos":
                return self._number(node, found[0])
        assert name == "abs"
        return self._absolute(node, found[0])

    # ---- kinds of arguments ------------------------------------------------------------------------

    def _refuse(self, node: Call, found: Sequence[Any], problem: str) -> NoReturn:
        kinds = f" of {' and '.join(str(each.type) for each in found)}" if found else ""
        self.expression.refuse(
            f"{node.function}{kinds}: {problem}",
            at=node.at,
            allowed="what the function takes: see the types of the columns",
            action='cast a column, as in cast(x, "int64"), or use another function',
        )

    def _truth(self, node: Call, column: Any) -> Any:
        if kind_of(column.type) not in ("bool", "null"):
            self._refuse(node, [column], "it takes what is true or false")
        return column.cast(pa.bool_())

    def _text(self, node: Call, column: Any) -> Any:
        if pa.types.is_null(column.type):
            return column.cast(pa.string())
        if not is_text(column.type):
            self._refuse(node, [column], "it takes a text")
        return column.cast(pa.string()) if pa.types.is_string_view(column.type) else column

    def _number(self, node: Call, column: Any) -> Any:
        if kind_of(column.type) not in _NUMBERS:
            self._refuse(node, [column], "it takes a number")
        return column.cast(pa.int64()) if pa.types.is_null(column.type) else column

    def _alike(self, node: Call, found: Sequence[Any]) -> list[Any]:
        kind = common([each.type for each in found])
        if kind is None:
            self._refuse(node, found, "they have no type in common")
        return [lenient(each, kind) for each in found]

    # ---- operations --------------------------------------------------------------------------------

    def _compare(self, node: Call, name: str, left: Any, right: Any) -> Any:
        return _COMPARISONS[name](*self._alike(node, [left, right]))

    def _arithmetic(self, node: Call, name: str, left: Any, right: Any) -> Any:
        left, right = self._number(node, left), self._number(node, right)
        kinds = {kind_of(left.type), kind_of(right.type)}
        if kinds == {"integer"}:
            return arithmetic(name, lenient(left, pa.int64()), lenient(right, pa.int64()))
        if "float" in kinds:
            left, right = lenient(left, pa.float64()), lenient(right, pa.float64())
        if name in "/%":
            right = pc.if_else(pc.equal(right, pa.scalar(0).cast(right.type)), None, right)
        if name != "%":
            return _FLOATS[name](left, right)
        if "decimal" in kinds:
            self._refuse(node, [left, right], "it takes integers and floats")
        return _float_remainder(left, right)

    def _rounded(self, node: Call, function: _Function, column: Any) -> Any:
        column = self._number(node, column)
        return column if kind_of(column.type) == "integer" else function(column)

    def _absolute(self, node: Call, column: Any) -> Any:
        column = self._number(node, column)
        if kind_of(column.type) != "integer" or pa.types.is_unsigned_integer(column.type):
            return column if pa.types.is_unsigned_integer(column.type) else pc.abs(column)
        wide = column.cast(pa.int64())
        least = pc.equal(wide, pa.scalar(-(2**63)))
        return pc.abs(pc.if_else(least, None, wide))

    def _part(self, node: Call, function: _Function, column: Any) -> Any:
        if kind_of(column.type) == "time":
            return function(column.cast(pa.timestamp(column.type.unit, "UTC")))
        if kind_of(column.type) != "date" or node.function == "hour":
            self._refuse(node, [column], "it takes a timestamp")
        return function(column)


def _fold(combine: _Function, found: Sequence[Any]) -> Any:
    out = found[0]
    for each in found[1:]:
        out = combine(out, each)
    return out


def _float_remainder(left: Any, right: Any) -> Any:
    """The rest with the sign of the left side; the right side has no zero."""
    valid = pc.and_(left.is_valid(), right.is_valid())
    top, bottom = (x.fill_null(1.0).to_numpy(zero_copy_only=False) for x in (left, right))
    with np.errstate(invalid="ignore"):  # infinity has no rest: NaN
        rest = np.fmod(top, bottom)
    return pc.if_else(valid, pa.array(rest, pa.float64(), from_pandas=False), None)
