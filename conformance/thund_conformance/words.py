"""The words of a golden file's line: names, numbers and literals, each printed and parsed.

It knows nothing of scenarios.
"""

from __future__ import annotations

import json
import re

from thund_contract.vocabulary import END, NEVER

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
_TOKEN = re.compile(
    r"""\s*(
        x"[0-9a-f]*"                      # bytes
      | @"(?:[^"\\]|\\.)*":(?:"(?:[^"\\]|\\.)*"|-?\d+)   # another Arrow scalar: type and value
      | "(?:[^"\\]|\\.)*"                 # text
      | [^\s"]+                           # a name, a number, name=number
    )""",
    re.VERBOSE,
)
_SPECIAL_WATERMARKS = {"NEVER": NEVER, "END": END}
_NAMES: dict[str, object] = {"null": None, "true": True, "false": False}
_FLOATS = ("nan", "inf", "-inf")


def word(name: str) -> str:
    """A name as it stands in a line: bare where that is unambiguous, else quoted."""
    return name if _PLAIN.fullmatch(name) else json.dumps(name)


def number(watermark: int) -> str:
    """A watermark, by name where it is no time."""
    named = [name for name, value in _SPECIAL_WATERMARKS.items() if value == watermark]
    return named[0] if named else str(watermark)


def literal(value: object) -> str:
    """A key, a value or an event time; "( … )" is the values of several columns, "[ … ]" a list."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return json.dumps(value)
        case bytes():
            return f'x"{value.hex()}"'
        case ("list", tuple() as values):
            return " ".join(["[", *map(literal, values), "]"])
        case (str() as kind, str() | int() as inner) if not isinstance(inner, bool):
            return f"@{json.dumps(kind)}:{json.dumps(inner)}"
        case tuple():
            return " ".join(["(", *map(literal, value), ")"])
    raise TypeError(f"a {type(value).__name__} cannot stand in a golden file")


class Words:
    """One line, taken word by word.

    Raises: ValueError from each method where the next word is not what is asked for.
    """

    def __init__(self, line: str) -> None:
        self._line, self._at = line, 0

    def _peek(self) -> str | None:
        match = _TOKEN.match(self._line, self._at)
        return match.group(1) if match else None

    def _take(self) -> str:
        match = _TOKEN.match(self._line, self._at)
        if match is None:
            raise ValueError("the line ends too early")
        self._at = match.end()
        return match.group(1)

    def end(self) -> None:
        """Nothing more stands in the line."""
        if self._line[self._at :].strip():
            raise ValueError(f"{self._line[self._at :].strip()!r} is too much")

    def plain(self) -> str:
        """A name, bare or quoted; a hash as hex digits is a name too."""
        token = self._take()
        if token.startswith('"'):
            text = json.loads(token)
            assert isinstance(text, str)
            return text
        if not re.fullmatch(r"[A-Za-z0-9_.\-]+", token):
            raise ValueError(f"{token!r} is no name")
        return token

    def rest(self) -> tuple[str, ...]:
        """All names that are left."""
        names = []
        while self._peek() is not None:
            names.append(self.plain())
        return tuple(names)

    def integer(self) -> int:
        """A whole number."""
        return int(self._take())

    def expect(self, name: str) -> None:
        """This very word."""
        token = self._take()
        if token != name:
            raise ValueError(f"{token!r} stands where {name!r} should")

    def optional(self, name: str) -> bool:
        """Whether this very word is next; it is taken then."""
        found = self._peek() == name
        if found:
            self._take()
        return found

    def named(self, name: str) -> int:
        """name=number, where a watermark may go by its name."""
        found = self.named_or_none(name)
        if found is None:
            raise ValueError(f"{name} has no number")
        return found

    def next_named(self, names: tuple[str, ...]) -> str | None:
        """Which of these names the next word gives a number to, if it does."""
        head, equal, _ = (self._peek() or "").partition("=")
        return head if equal and head in names else None

    def named_or_none(self, name: str) -> int | None:
        """As `named`, or name=none."""
        token = self._take()
        head, equal, text = token.partition("=")
        if head != name or not equal:
            raise ValueError(f"{token!r} stands where {name}=… should")
        if text == "none":
            return None
        return _SPECIAL_WATERMARKS[text] if text in _SPECIAL_WATERMARKS else int(text)

    def value(self) -> object:
        """A literal."""
        found = self._take()
        if found in _NAMES:
            return _NAMES[found]
        if found == "(":
            return self.values_until(")")
        if found == "[":
            return ("list", self.values_until("]"))
        if found.startswith('x"'):
            return bytes.fromhex(found[2:-1])
        if found.startswith('@"'):
            kind, end = json.JSONDecoder().raw_decode(found, 1)
            return (kind, json.loads(found[end + 1 :]))
        if found.startswith('"'):
            return json.loads(found)
        if found in _FLOATS or any(mark in found for mark in ".e"):
            return float(found)
        return int(found)

    def values_up_to(self, stop: str) -> tuple[object, ...]:
        """Literals up to a bare word, which is left, or to the end of the line."""
        values: list[object] = []
        while self._peek() not in (None, stop):
            values.append(self.value())
        return tuple(values)

    def values_until(self, stop: str | None) -> tuple[object, ...]:
        """Literals up to a bare word, which is taken, or to the end of the line."""
        values: list[object] = []
        while True:
            token = self._peek()
            if token is None and stop is None:
                return tuple(values)
            if token == stop:
                self._take()
                return tuple(values)
            values.append(self.value())
