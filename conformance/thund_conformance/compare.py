"""One normal form for outcomes, and a readable list of all that differs between two of them.

There is no tolerance: floats are compared by their bits, with one NaN, and nothing is left out
but what an engine says it cannot show.
"""

from __future__ import annotations

import functools
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass

from thund_contract.engine import Capabilities, Outcome
from thund_contract.vocabulary import EpochRecord

Normal = object


def normal(value: object) -> Normal:
    """A value that is equal to another's iff the two mean the same. Units: floats as hex bits."""
    kind = type(value)
    if kind is int or kind is str or value is None or kind is bytes:
        return value
    if kind is float:
        assert isinstance(value, float)
        bits = "nan" if value != value else struct.pack(">d", value).hex()  # noqa: PLR0124
        return ("float", bits)
    if kind is bool:
        return ("bool", value)
    if isinstance(value, tuple | list):
        return tuple(map(normal, value))
    if is_dataclass(kind):
        return (kind.__name__, *(normal(getattr(value, name)) for name in _names_of(kind)))
    raise TypeError(f"an outcome holds a {kind.__name__}, which has no normal form")


@functools.cache
def _names_of(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass; asking each time costs more than the comparison."""
    assert is_dataclass(kind)
    return tuple(field.name for field in fields(kind))


def same(left: object, right: object) -> bool:
    """Equal in normal form. Two values that print alike are, which is quicker to see."""
    return repr(left) == repr(right) or normal(left) == normal(right)


def show(value: object) -> str:
    """One line for one value; a dataclass by its own repr."""
    return repr(value)


@dataclass(frozen=True, slots=True)
class _Names:
    left: str
    right: str


UNORDERED = ("partitions", "state", "outbox", "late", "invalid", "unfit", "seen", "panes")
"""Fields of an EpochRecord that are bags; their order is a matter of display."""


def differences(
    left: Outcome,
    right: Outcome,
    *,
    names: tuple[str, str] = ("left", "right"),
    can: Sequence[Capabilities] = (),
) -> list[str]:
    """Every difference of two outcomes as lines; an empty list means that they are the same."""
    who = _Names(*names)
    lines: list[str] = []
    lines += _one("fault", left.fault, right.fault, who)
    if all(c.epochs for c in can):
        lines += _epochs(left.epochs, right.epochs, who, state=all(c.state for c in can))
    lines += _bag("table", left.table, right.table, who)
    if all(c.crashes for c in can):
        lines += _one("durable steps", left.steps, right.steps, who)
    if all(c.credits for c in can):
        lines += _bag("credits", left.credits, right.credits, who)
        lines += _one("duplicates", left.duplicates, right.duplicates, who)
    return lines


def epoch_differences(
    left: Sequence[EpochRecord],
    right: Sequence[EpochRecord],
    *,
    names: tuple[str, str] = ("left", "right"),
) -> list[str]:
    """The part of `differences` that is about committed epochs."""
    return _epochs(left, right, _Names(*names), state=True)


def _epochs(
    left: Sequence[EpochRecord], right: Sequence[EpochRecord], who: _Names, *, state: bool
) -> list[str]:
    lines = _one("number of epochs", len(left), len(right), who)
    for one, other in zip(left, right, strict=False):
        where = f"epoch {one.epoch}"
        for field in fields(EpochRecord):
            if field.name == "state" and not state:
                continue
            a, b = getattr(one, field.name), getattr(other, field.name)
            judge = _bag if field.name in UNORDERED else _one
            lines += judge(f"{where} {field.name}", a, b, who)
    return lines


def _one(what: str, left: object, right: object, who: _Names) -> list[str]:
    if same(left, right):
        return []
    return [f"{what}:", f"    {who.left}: {show(left)}", f"    {who.right}: {show(right)}"]


def _bag(what: str, left: Iterable[object], right: Iterable[object], who: _Names) -> list[str]:
    ours, theirs = list(left), list(right)
    if repr(ours) == repr(theirs):
        return []
    a, b = Counter(map(normal, ours)), Counter(map(normal, theirs))
    if a == b:
        return []
    lines = [f"{what}:"]
    lines += _only(ours, a - b, who.left)
    lines += _only(theirs, b - a, who.right)
    return lines


def _only(values: list[object], extra: Counter[Normal], name: str) -> list[str]:
    lines = []
    for value in values:
        key = normal(value)
        if extra[key] > 0:
            extra[key] -= 1
            lines.append(f"    only {name}: {show(value)}")
    return lines
