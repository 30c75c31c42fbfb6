"""A small language of expressions over the columns of a row, as a text on one line.

    coalesce(delay, 0) > 15 and carrier not in ("AA", "DL")

Names are columns; a name that is no identifier is written `col("left at")`. Literals are numbers,
texts in quotes, true, false and null. What an expression means:

- null. Arithmetic, a comparison and a function of null give null. `and`, `or` and `not` know three
  truth values: false and null is false, true or null is true. `x in (a, b)` is
  `x == a or x == b`.
- arithmetic. Integers have 64 bits; `/` of integers drops the fraction, and `%` has the sign of its
  left side, as SQL has it. An integer that would not fit, and a division by zero, give null:
  no row stops a stream. A float in it makes floats, which know infinity and NaN. Decimals are exact.
- comparisons. Numbers of any types compare; an integer beside a float is taken as a float. NaN
  equals nothing. Times without a zone are UTC.
- `cast(x, "type")` gives null where a value has no place in the type; a float loses its fraction.
- `if_else(condition, a, b)` gives b for a condition that is null. `round` rounds a half away from
  zero. year, month, day and hour are those of UTC. `length` counts characters.

This file reads the text and knows no Arrow; evaluation.py computes. It refuses whatever it does not
name: the text could be compiled to SQL.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from thund.refusal import nearest
from thund_contract.errors import CallerError

MAX_CHARACTERS = 10_000
MAX_DEPTH = 100

TYPES = (
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *("float32", "float64", "bool", "string", "date32"),
    *(f"timestamp[{unit}{zone}]" for zone in ("", ", UTC") for unit in ("s", "ms", "us", "ns")),
)
"""What `cast` can make."""

FUNCTIONS = {
    "is_null": "x",
    "is_not_null": "x",
    "coalesce": "x, ...",
    "if_else": "condition, a, b",
    "lower": "text",
    "upper": "text",
    "length": "text",
    "trim": "text",
    "starts_with": 'text, "literal"',
    "ends_with": 'text, "literal"',
    "contains": 'text, "literal"',
    "abs": "number",
    "round": "number",
    "floor": "number",
    "ceil": "number",
    "year": "time",
    "month": "time",
    "day": "time",
    "hour": "time",
    "cast": 'x, "type"',
}
"""The functions, and what each takes."""

ALLOWED = (
    'columns, col("a name"), numbers, "texts", true, false, null, + - * / %, == != < <= > >=, '
    f"and, or, not, in (...), and the functions {', '.join(FUNCTIONS)}"
)

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Mod: "%",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.And: "and",
    ast.Or: "or",
}
_NAMED: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_LITERALS = ("starts_with", "ends_with", "contains")


@dataclass(frozen=True, slots=True)
class Name:
    """A column."""

    column: str
    at: int


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that stands in the text."""

    value: bool | int | float | str | None
    at: int


@dataclass(frozen=True, slots=True)
class Call:
    """A function of arguments; operators are functions too, "neg" is the sign of a number.

    type_name is what cast makes; else it is empty.
    """

    function: str
    arguments: tuple[Node, ...]
    at: int
    type_name: str = ""


Node = Name | Literal | Call


@dataclass(frozen=True, slots=True)
class Expression:
    """A text that was read. where: the key of the definition that holds it."""

    text: str
    where: str
    root: Node

    def columns(self) -> tuple[str, ...]:
        """The columns that it reads, each once, in the order of the text."""
        return tuple(dict.fromkeys(n.column for n in nodes(self.root) if isinstance(n, Name)))

    def refuse(self, found: str, *, at: int, allowed: str, action: str) -> NoReturn:
        """Say what is wrong at a place of the text.

        Raises: CallerError, always.
        """
        raise CallerError(
            f"{found}, at character {at + 1} of {self.text!r}",
            allowed=allowed,
            where=self.where,
            action=action,
        )


def nodes(node: Node) -> Iterator[Node]:
    """A node and all below it, from left to right."""
    yield node
    if isinstance(node, Call):
        for each in node.arguments:
            yield from nodes(each)


def parse(text: str, *, where: str) -> Expression:
    """Read an expression.

    Raises: CallerError that says what stands where, and what may.
    """
    reader = _Reader(text, where)
    return Expression(text, where, reader.read())


class _Reader:
    """One text on its way to a tree."""

    def __init__(self, text: str, where: str) -> None:
        self.text, self.where = text, where
        self._source = text.strip()
        self._moved = len(text) - len(text.lstrip())

    def read(self) -> Node:
        if not self._source:
            self._refuse("an empty expression", 0, action="write an expression")
        if len(self.text) > MAX_CHARACTERS or len(self._source.splitlines()) > 1:
            self._refuse(
                "a text that is no one line",
                0,
                allowed=f"one line of at most {MAX_CHARACTERS} characters",
                action="write it shorter, or in several derived columns",
            )
        return self._node(self._tree(), 0)

    def _tree(self) -> ast.expr:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of Python's own about its own expressions
                return ast.parse(self._source, mode="eval").body
        except SyntaxError as error:
            at = (error.offset or 1) - 1 + self._moved
            assign = "; write == to compare" if "=" in self._source else ""
            self._refuse(f"this is no expression: {error.msg}", at, action=f"correct it{assign}")
        except (ValueError, RecursionError, MemoryError) as error:
            self._refuse(f"this is no expression: {error}", 0, action="write it more simply")

    def _at(self, node: ast.expr) -> int:
        """The character at which a node begins; Python counts bytes."""
        before = self._source.encode()[: node.col_offset]
        return len(before.decode("utf-8", "replace")) + self._moved

    def _refuse(
        self, found: str, at: int, *, allowed: str = ALLOWED, action: str = "use one of these"
    ) -> NoReturn:
        Expression(self.text, self.where, Literal(None, 0)).refuse(
            found, at=at, allowed=allowed, action=action
        )

    # ---- one kind of node after the other ----------------------------------------------------------

    def _node(self, node: ast.expr, depth: int) -> Node:
        at = self._at(node)
        if depth > MAX_DEPTH:
            self._refuse(
                "an expression inside of too many others",
                at,
                allowed=f"at most {MAX_DEPTH} levels",
                action="divide it into several derived columns",
            )
        match node:
            case ast.Name(id=name):
                return Literal(_NAMED[name], at) if name in _NAMED else Name(name, at)
            case ast.Constant():
                return self._literal(node, at)
            case ast.UnaryOp():
                return self._unary(node, at, depth)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return self._call(_OPERATORS[type(op)], [left, right], at, depth)
            case ast.BoolOp(op=op, values=values):
                return self._call(_OPERATORS[type(op)], values, at, depth)
            case ast.Compare():
                return self._compare(node, at, depth)
            case ast.Call():
                return self._function(node, at, depth)
        found = ast.get_source_segment(self._source, node) or type(node).__name__
        return self._refuse(f"{found!r} is nothing that an expression may hold", at)

    def _call(self, function: str, arguments: list[ast.expr], at: int, depth: int) -> Call:
        return Call(function, tuple(self._node(each, depth + 1) for each in arguments), at)

    def _literal(self, node: ast.Constant, at: int) -> Literal:
        value = node.value
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            self._refuse(
                "a number that is too large", at, allowed="integers of 64 bits", action="shorten it"
            )
        if value is None or isinstance(value, bool | int | float):
            return Literal(value, at)
        if isinstance(value, str) and not any("\ud800" <= each <= "\udfff" for each in value):
            return Literal(value, at)
        return self._refuse(f"{value!r} is no value here", at)

    def _unary(self, node: ast.UnaryOp, at: int, depth: int) -> Node:
        if isinstance(node.op, ast.Not):
            return self._call("not", [node.operand], at, depth)
        if not isinstance(node.op, ast.USub | ast.UAdd):
            self._refuse("'~' is nothing that an expression may hold", at)
        inner = node.operand
        number = inner.value if isinstance(inner, ast.Constant) else None
        if isinstance(number, int | float) and not isinstance(number, bool):
            signed = -number if isinstance(node.op, ast.USub) else number
            return self._literal(ast.Constant(signed), at)
        name = "neg" if isinstance(node.op, ast.USub) else "pos"
        return self._call(name, [inner], at, depth)

    def _compare(self, node: ast.Compare, at: int, depth: int) -> Node:
        if len(node.ops) > 1:
            self._refuse(
                "one comparison after another",
                at,
                allowed="comparisons of two sides",
                action='write them apart: "a < b and b < c"',
            )
        op, right = node.ops[0], node.comparators[0]
        if isinstance(op, ast.In | ast.NotIn):
            return self._in(node, right, at, depth)
        if type(op) not in _OPERATORS:
            self._refuse("`is` compares nothing here", at, action="write is_null(x), or ==")
        return self._call(_OPERATORS[type(op)], [node.left, right], at, depth)

    def _in(self, node: ast.Compare, right: ast.expr, at: int, depth: int) -> Node:
        if not isinstance(right, ast.Tuple | ast.List) or not right.elts:
            self._refuse(
                "`in` without a list",
                at,
                allowed='x in ("a", "b")',
                action="write the values in brackets, and a comma after a single one",
            )
        found = self._call("in", [node.left, *right.elts], at, depth)
        return found if isinstance(node.ops[0], ast.In) else Call("not", (found,), at)

    def _function(self, node: ast.Call, at: int, depth: int) -> Node:
        if not isinstance(node.func, ast.Name) or node.keywords:
            self._refuse("a call of another kind", at, allowed="name(argument, argument)")
        name, arguments = node.func.id, node.args
        if name == "col":
            return self._column(arguments, at)
        if name not in FUNCTIONS:
            guess = nearest(name.lower(), FUNCTIONS)
            self._refuse(
                f"{name}: no such function",
                at,
                allowed=", ".join(FUNCTIONS),
                action=f"did you mean {guess}?" if guess else "use one of these",
            )
        takes = FUNCTIONS[name].split(", ")
        few, many = len(arguments) < len(takes) - (takes[-1] == "..."), len(arguments) > len(takes)
        if few or (many and takes[-1] != "..."):
            self._refuse_arguments(name, len(arguments), at)
        if name == "cast":
            return self._cast(arguments, at, depth)
        call = self._call(name, arguments, at, depth)
        if name in _LITERALS and not _is_text(call.arguments[1]):
            self._refuse(
                f"{name} of a text that is not in quotes",
                call.arguments[1].at,
                allowed=f"{name}({FUNCTIONS[name]})",
                action="write the second text in quotes",
            )
        return call

    def _refuse_arguments(self, name: str, count: int, at: int) -> NoReturn:
        self._refuse(
            f"{name} of {count} arguments",
            at,
            allowed=f"{name}({FUNCTIONS[name]})",
            action="write it in this form",
        )

    def _column(self, arguments: list[ast.expr], at: int) -> Name:
        match arguments:
            case [ast.Constant(value=str(column))] if column:
                return Name(column, at)
        return self._refuse(
            "col without a name",
            at,
            allowed='col("left at")',
            action="write the column's name in quotes",
        )

    def _cast(self, arguments: list[ast.expr], at: int, depth: int) -> Call:
        match arguments[1]:
            case ast.Constant(value=str(kind)) if kind in TYPES:
                return Call("cast", (self._node(arguments[0], depth + 1),), at, kind)
        return self._refuse(
            "cast to what is no type",
            self._at(arguments[1]),
            allowed=", ".join(f'"{kind}"' for kind in TYPES),
            action='write one of these in quotes: cast(x, "int64")',
        )


def _is_text(node: Node) -> bool:
    return isinstance(node, Literal) and isinstance(node.value, str)
