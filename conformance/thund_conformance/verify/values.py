"""TLA+ values as TLC prints them: read, written, and compared state by state."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, Union

Value: TypeAlias = Union[
    bool, int, str, "ModelValue", "Unread", "Function", "tuple[Value, ...]", "frozenset[Value]"
]
"""A TLA+ value: str for strings, tuple for sequences, frozenset for sets."""

State: TypeAlias = "dict[str, Value]"
"""The value of each variable."""


@dataclass(frozen=True, slots=True)
class ModelValue:
    """A value that a cfg file made up, equal only to itself; it prints as its bare name."""

    name: str


@dataclass(frozen=True, slots=True)
class Unread:
    """The text of a value that this reader does not know, so that a trace is never lost."""

    text: str


class Function(Mapping["Value", "Value"]):
    """A TLA+ function or record, immutable and hashable.

    One over 1..n is a sequence in TLA+, and so is the empty one: `function` gives tuples there.
    """

    __slots__ = ("_pairs",)

    def __init__(self, pairs: Mapping[Value, Value]) -> None:
        self._pairs = dict(pairs)

    def __getitem__(self, key: Value) -> Value:
        return self._pairs[key]

    def __iter__(self) -> Iterator[Value]:
        return iter(self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)

    def __hash__(self) -> int:
        return hash(frozenset(self._pairs.items()))

    def __repr__(self) -> str:
        return f"Function({self._pairs!r})"


def function(pairs: Mapping[Value, Value]) -> Function | tuple[Value, ...]:
    """The function of these pairs, in its one normal form."""
    numbered = all(type(key) is int for key in pairs) and set(pairs) == set(
        range(1, len(pairs) + 1)
    )
    if numbered:
        return tuple(pairs[number] for number in range(1, len(pairs) + 1))
    return Function(pairs)


_TOKEN = re.compile(
    r"\s*(?:(?P<number>-?\d+)"
    r'|(?P<text>"(?:\\.|[^"\\])*")'
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_!]*)"
    r"|(?P<symbol><<|>>|\|->|:>|@@|\.\.|[\[\](){},]))"
)
_HEAD = re.compile(r"^(?:/\\ )?([A-Za-z_][A-Za-z0-9_]*) = ", re.MULTILINE)
_CONJUNCT = re.compile(r"^/\\ ([A-Za-z_][A-Za-z0-9_]*) = ", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_UNESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\f": "\\f", '"': '\\"', "\\": "\\\\"}


def read_value(text: str) -> Value:
    """The value that TLC printed as `text`.

    Raises: ValueError where it is not one printed value.
    """
    reader = _Reader(text)
    value = reader.value()
    reader.end()
    return value


def read_state(text: str) -> State:
    r"""The variables of one printed state: lines `/\ x = 1`, or one bare `x = 1`."""
    heads = list(_CONJUNCT.finditer(text)) or list(_HEAD.finditer(text))[:1]
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return {
        head.group(1): _read_or_keep(text[head.end() : end])
        for head, end in zip(heads, ends, strict=True)
    }


def write_value(value: Value) -> str:
    """The text of a value on one line, as TLC would print it; sets and functions are sorted."""
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case str():
            return '"' + "".join(_UNESCAPES.get(letter, letter) for letter in value) + '"'
        case ModelValue(name):
            return name
        case Unread(text):
            return text
        case tuple():
            return "<<" + ", ".join(map(write_value, value)) + ">>"
        case frozenset():
            return "{" + ", ".join(map(write_value, sorted(value, key=_order))) + "}"
        case _:
            return _write_function(value)


def changes(before: State, after: State) -> list[tuple[str, str]]:
    """What differs after a step: each changed place, as `x[1].field`, with its new value."""
    found: list[tuple[str, str]] = []
    for name, value in after.items():
        if name in before:
            _collect(name, before[name], value, found)
        else:
            found.append((name, write_value(value)))
    return found


def _collect(place: str, old: Value, new: Value, found: list[tuple[str, str]]) -> None:
    if isinstance(old, Function) and isinstance(new, Function) and set(old) == set(new):
        for key in sorted(new, key=_order):
            _collect(place + _step(key), old[key], new[key], found)
    elif isinstance(old, tuple) and isinstance(new, tuple) and len(old) == len(new):
        for number, (left, right) in enumerate(zip(old, new, strict=True), start=1):
            _collect(f"{place}[{number}]", left, right, found)
    elif write_value(old) != write_value(new):
        found.append((place, write_value(new)))


def _step(key: Value) -> str:
    if isinstance(key, str) and _NAME.match(key):
        return f".{key}"
    return f"[{write_value(key)}]"


def _write_function(value: Function) -> str:
    keys = sorted(value, key=_order)
    if all(isinstance(key, str) and _NAME.match(key) for key in keys):
        return "[" + ", ".join(f"{key} |-> {write_value(value[key])}" for key in keys) + "]"
    pairs = (f"{write_value(key)} :> {write_value(value[key])}" for key in keys)
    return "(" + " @@ ".join(pairs) + ")"


def _order(value: Value) -> tuple[int, int, str]:
    if type(value) is int:
        return (0, value, "")
    return (1, 0, write_value(value))


def _read_or_keep(text: str) -> Value:
    try:
        return read_value(text)
    except ValueError:
        return Unread(text.strip())


class _Reader:
    """A recursive descent over the tokens of one printed value."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0

    def end(self) -> None:
        if self._at != len(self._tokens):
            raise ValueError(f"unexpected {self._peek()!r} after the value")

    def value(self) -> Value:
        kind, word = self._take()
        match kind, word:
            case "number", _:
                return self._number(int(word))
            case "text", _:
                return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), word[1:-1])
            case "name", _:
                return {"TRUE": True, "FALSE": False}.get(word, ModelValue(word))
            case _, "<<":
                return tuple(self._items(">>"))
            case _, "{":
                return frozenset(self._items("}"))
            case _, "[":
                return self._record()
            case _, "(":
                return self._pairs()
        raise ValueError(f"unexpected {word!r}")

    def _number(self, low: int) -> Value:
        if self._peek() != "..":
            return low
        self._expect("..")
        kind, high = self._take()
        if kind != "number":
            raise ValueError(f"unexpected {high!r} after {low}..")
        return frozenset(range(low, int(high) + 1))

    def _items(self, close: str) -> Iterator[Value]:
        while self._peek() != close:
            yield self.value()
            if self._peek() != close:
                self._expect(",")
        self._expect(close)

    def _record(self) -> Value:
        fields: dict[Value, Value] = {}
        while True:
            kind, name = self._take()
            if kind != "name":
                raise ValueError(f"unexpected {name!r} as the name of a field")
            self._expect("|->")
            fields[name] = self.value()
            if self._peek() == "]":
                break
            self._expect(",")
        self._expect("]")
        return function(fields)

    def _pairs(self) -> Value:
        pairs: dict[Value, Value] = {}
        while True:
            key = self.value()
            self._expect(":>")
            pairs[key] = self.value()
            if self._peek() == ")":
                break
            self._expect("@@")
        self._expect(")")
        return function(pairs)

    def _peek(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _take(self) -> tuple[str, str]:
        if self._at >= len(self._tokens):
            raise ValueError("the value ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, token: str) -> None:
        if (found := self._take()[1]) != token:
            raise ValueError(f"expected {token!r}, found {found!r}")


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise ValueError(f"cannot read {text[at : at + 40]!r}")
        yield match.lastgroup, match.group(match.lastgroup)
        at = match.end()
