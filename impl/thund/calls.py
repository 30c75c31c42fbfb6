"""An aggregate as a text: an operation, and in brackets the columns that it reads.

`count`, `sum(delay)`, `pn_counter(in, out, "replica, or none")`: a column whose name has a comma, a
quote or a space at an end is written as JSON writes a text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from thund_contract.vocabulary import (
    COUNT,
    G_COUNTER,
    LWW,
    OR_SET,
    PN_COUNTER,
    Aggregate,
)

SEVERAL = {
    G_COUNTER: ("count", "replica"),
    PN_COUNTER: ("increments", "decrements", "replica"),
    LWW: ("value", "stamp"),
    OR_SET: ("element", "tag", "added"),
}
"""Operations that read several columns, and what each column is."""

_CALL = re.compile(r"\s*([A-Za-z_]\w*(?:@[0-9]+)?)\s*(?:\((.*)\)\s*)?", re.DOTALL | re.ASCII)
_ARGUMENT = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[^",]*[^",\s])\s*', re.DOTALL)
_BARE = re.compile(r'[^",\s](?:[^",]*[^",\s])?')


def parse(text: str) -> tuple[str, tuple[str, ...]]:
    """The operation, and the columns in brackets.

    Raises: ValueError for a text of another form.

    >>> parse("count"), parse("sum(delay)"), parse('lww("a, b", at)')
    (('count', ()), ('sum', ('delay',)), ('lww', ('a, b', 'at')))
    """
    call = _CALL.fullmatch(text)
    if call is None:
        raise ValueError(text)
    operation, inside = call.groups()
    return operation, () if inside is None else tuple(_columns(inside))


def _columns(inside: str) -> list[str]:
    columns, at = [], 0
    while True:
        match = _ARGUMENT.match(inside, at)
        if match is None or (match.end() < len(inside) and inside[match.end()] != ","):
            raise ValueError(inside)
        word = match.group(1)
        columns.append(json.loads(word, strict=False) if word.startswith('"') else word)
        if match.end() == len(inside):
            return columns
        at = match.end() + 1


def write(operation: str, columns: Sequence[str]) -> str:
    """The text that `parse` reads back."""
    shown = (c if _BARE.fullmatch(c) else json.dumps(c, ensure_ascii=False) for c in columns)
    return f"{operation}({', '.join(shown)})" if columns else operation


def columns_of(aggregate: Aggregate) -> tuple[str, ...]:
    """All columns that an aggregate reads."""
    return () if aggregate.column is None else (aggregate.column, *aggregate.others)


def text_of(aggregate: Aggregate) -> str:
    """An aggregate as TOML writes it."""
    return write(aggregate.operation, columns_of(aggregate))


def arguments(operation: str) -> tuple[str, ...]:
    """What each column is that an operation reads.

    >>> arguments("lww"), arguments("sum")
    (('value', 'stamp'), ('column',))
    """
    return SEVERAL.get(operation, ("column",))


def form(operation: str) -> str:
    """How an operation is written, for messages.

    >>> form("sum"), form("lww"), form("count")
    ('sum(COLUMN)', 'lww(VALUE, STAMP)', 'count, or count(COLUMN)')
    """
    written = f"{operation}({', '.join(arguments(operation)).upper()})"
    return f"{COUNT}, or {written}" if operation == COUNT else written
