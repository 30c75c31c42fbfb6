"""A user's own commutative monoid: what it is, and its laws, which are tested when it is registered.

The registry is one per process. Fill it before a pipeline that names the operation is read or built.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType
from typing import Any, NoReturn, Protocol

import pyarrow as pa

from thund.columns import is_bytes
from thund.scalars import column_of, is_numbered, is_scalar
from thund_contract import vocabulary as v
from thund_contract.errors import CallerError

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_PAIRED, _TRIPLED, _LARGER, _LARGEST = 24, 9, 60, 6


class Monoid(Protocol):
    """How to aggregate the rows of a group, in any order and any pieces. Law: G4.

    name and version make the operation "name@version", which is in a pipeline's fingerprint: give
    a new version to whatever changes a result or the bytes of a state. arity: how many columns it
    reads. output_type: what show gives; a boolean, integer, float64, decimal, text, bytes, date,
    time, timestamp or duration, or a list of these.

    A value of a row is a bool, int, float, str or bytes; of any other Arrow type the pair of the
    type's name and the integer that Arrow keeps. A row with a null in one of the columns is skipped.
    No method changes what it is given.
    """

    name: str
    version: int
    arity: int
    output_type: Any

    def empty(self) -> Any:
        """The state of no rows."""

    def lift(self, *values: Any) -> Any:
        """The state of one row."""

    def merge(self, left: Any, right: Any) -> Any:
        """The state of the rows of both: commutative, associative, and empty() adds nothing."""

    def encode(self, state: Any) -> bytes:
        """Equal states as equal bytes, in every process."""

    def decode(self, data: bytes) -> Any:
        """The state that was encoded."""

    def show(self, state: Any) -> Any:
        """What a group shows: None, or a value of output_type in the form of a row's value.

        A list is ("list", (value, ...)). An integer too large for the type shows null, and is
        reported with its group.
        """


_REGISTERED: dict[str, Monoid] = {}


def registered() -> Mapping[str, Monoid]:
    """The monoids of this process, by operation."""
    return MappingProxyType(_REGISTERED)


def register_monoid(monoid: Monoid, samples: Sequence[tuple[Any, ...]]) -> str:
    """Test the laws of a monoid on samples, and make its operation known. Gives "name@version".

    samples: rows of values that are likely to break it: zero, equal ones, the largest, NaN. They are
    combined in every small way, and in random ways that are the same each time.

    An operation is registered once in a process. The same object again changes nothing; another
    object needs another version, because no one can see whether it computes the same.

    Law: G4.
    Raises: CallerError with the smallest counterexample that was found.
    """
    operation = _operation(monoid)
    known = _REGISTERED.get(operation)
    if known is monoid:
        return operation
    if known is not None:
        raise CallerError(
            f"another monoid {operation!r}",
            allowed="one object per name and version",
            where=f"monoid {operation!r}",
            action=f"give it version {monoid.version + 1}, or start a new process",
        )
    _Trial(monoid, operation).run(samples)
    _REGISTERED[operation] = monoid
    return operation


def _operation(monoid: Monoid) -> str:
    name, version = monoid.name, monoid.version
    where = f"monoid {name!r}"
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in v.OPERATIONS:
        raise CallerError(
            f"name {name!r}",
            allowed="letters, digits and underscores of ASCII, none of " + ", ".join(v.OPERATIONS),
            where=where,
            action="choose another name",
        )
    for word, number in (("version", version), ("arity", monoid.arity)):
        if type(number) is not int or number < 1:
            raise CallerError(
                f"{word} {number!r}", allowed="1 or more", where=where, action=f"set {word}"
            )
    inner = _inner(monoid.output_type)
    if not is_scalar(inner) or str(inner) in ("float", "halffloat"):
        raise CallerError(
            f"output_type {monoid.output_type}",
            allowed="a boolean, integer, double, decimal, text, bytes, date, time, timestamp or "
            "duration, or a list of these",
            where=where,
            action="choose one of these",
        )
    return f"{name}@{version}"


def _inner(kind: Any) -> Any:
    return kind.value_type if pa.types.is_list(kind) else kind


# ---- what a monoid shows --------------------------------------------------------------------------


def shown_column(values: Sequence[Any], kind: Any) -> tuple[Any, dict[int, str]]:
    """What show gave as a column of the output type, and integers too large for it, by row.

    Raises: TypeError for a value of another type.
    """
    if not pa.types.is_list(kind):
        plain = [_plain(value, kind) for value in values]
        lost = {i: str(x) for i, x in enumerate(plain) if not _fits(x, kind)}
        return column_of([None if i in lost else x for i, x in enumerate(plain)], kind), lost
    flat, offsets = [], [0]
    for value in values:
        if value is not None:
            if not (isinstance(value, tuple) and len(value) == 2 and value[0] == "list"):
                raise TypeError(f"{value!r} is no list")
            flat += [_plain(x, kind.value_type) for x in value[1]]
        offsets.append(len(flat))
    unfit = [x for x in flat if not _fits(x, kind.value_type)]
    if unfit:
        raise TypeError(f"{unfit[0]} does not fit {kind.value_type}")
    mask = pa.array([value is None for value in values], pa.bool_())
    inner = column_of(flat, kind.value_type)
    places = pa.array(offsets, pa.int32())
    return pa.ListArray.from_arrays(places, inner, type=kind, mask=mask), {}


def _plain(value: Any, kind: Any) -> Any:
    """A value as columns are made of; a pair becomes its integer."""
    if value is None:
        return None
    if is_numbered(kind):
        if isinstance(value, tuple) and len(value) == 2 and value[0] == str(kind):
            value = value[1]
            wanted: type = int
        else:
            wanted = tuple
    else:
        wanted = _type_of(kind)
    if type(value) is not wanted or wanted is tuple:
        raise TypeError(f"{value!r} is no {kind}")
    return value


def _type_of(kind: Any) -> type:
    """The Python type of the values of a scalar type that no integer stands for."""
    if pa.types.is_boolean(kind):
        return bool
    if pa.types.is_integer(kind):
        return int
    if pa.types.is_floating(kind):
        return float
    return bytes if is_bytes(kind) else str


def _fits(value: Any, kind: Any) -> bool:
    if type(value) is not int:
        return True
    if pa.types.is_decimal(kind):
        return bool(abs(value) < 10**kind.precision)
    unsigned = pa.types.is_unsigned_integer(kind)
    most = (1 << kind.bit_width) - 1 if unsigned else (1 << (kind.bit_width - 1)) - 1
    return bool((0 if unsigned else -most - 1) <= value <= most)


# ---- the laws --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Term:
    """A state, how it was made, of how many rows."""

    text: str
    state: Any
    rows: int


class _Trial:
    """The laws of one monoid over terms; the first one that does not hold is raised."""

    def __init__(self, monoid: Monoid, operation: str) -> None:
        self._monoid, self._where = monoid, f"monoid {operation!r}"

    def run(self, samples: Sequence[tuple[Any, ...]]) -> None:
        rows = sorted({repr(row): row for row in samples}.items(), key=lambda x: (len(x[0]), x[0]))
        for text, row in rows:
            if not isinstance(row, tuple) or len(row) != self._monoid.arity:
                self._refuse(f"sample {text}", f"tuples of {self._monoid.arity} values")
        if not rows:
            self._refuse("no samples", "at least one row of values")
        terms = [_Term("empty()", self._call("empty()", self._monoid.empty), 0)]
        for _, row in rows:
            terms.append(self._lift(row))
        for term in terms:
            self._one(term)
        for left, right in _by_size(product(terms[:_PAIRED], repeat=2)):
            self._two(left, right)
        for triple in _by_size(product(terms[:_TRIPLED], repeat=3)):
            self._three(*triple)
        choice = random.Random(0)  # noqa: S311 - the same terms each time
        for _ in range(_LARGER):
            large = [self._large(terms, choice) for _ in range(3)]
            self._one(large[0])
            self._two(large[0], large[1])
            self._three(*large)

    def _lift(self, row: tuple[Any, ...]) -> _Term:
        text = f"lift({', '.join(map(repr, row))})"
        state = self._call(text, self._monoid.lift, *row)
        again = _Term(text, self._call(text, self._monoid.lift, *row), 1)
        term = _Term(text, state, 1)
        self._equal(term, again, "lift gives equal states for equal values")
        return term

    def _large(self, terms: Sequence[_Term], choice: random.Random) -> _Term:
        term = choice.choice(terms)
        for _ in range(choice.randrange(_LARGEST)):
            other = choice.choice(terms)
            pair = (term, other) if choice.random() < 0.5 else (other, term)
            term = self._merge(*pair)
        return term

    def _one(self, term: _Term) -> None:
        empty = _Term("empty()", self._call("empty()", self._monoid.empty), 0)
        self._equal(self._merge(empty, term), term, "empty() adds nothing")
        self._equal(self._merge(term, empty), term, "empty() adds nothing")
        self._equal(self._decoded(term), term, "decode gives the state that was encoded")
        shown = f"show({term.text})"
        value = self._call(shown, self._monoid.show, term.state)
        try:
            shown_column([value], self._monoid.output_type)
        except (TypeError, ValueError, OverflowError) as error:
            self._refuse(f"{shown}: {error}", f"None or a value of {self._monoid.output_type}")

    def _two(self, left: _Term, right: _Term) -> None:
        both = self._merge(left, right)
        self._equal(both, self._merge(right, left), "merge is commutative")
        stored = self._merge(self._decoded(left), self._decoded(right))
        self._equal(both, stored, "decoded states merge as those that were encoded")

    def _three(self, a: _Term, b: _Term, c: _Term) -> None:
        left, right = self._merge(self._merge(a, b), c), self._merge(a, self._merge(b, c))
        self._equal(left, right, "merge is associative")

    def _merge(self, left: _Term, right: _Term) -> _Term:
        text = f"merge({left.text}, {right.text})"
        before = [self._bytes(left), self._bytes(right)]
        state = self._call(text, self._monoid.merge, left.state, right.state)
        for term, was in zip((left, right), before, strict=True):
            now = self._bytes(term)
            if now != was:
                self._refuse(
                    f"{text} changed {term.text} from {was!r} to {now!r}",
                    "merge gives a new state, and leaves both that it is given",
                )
        return _Term(text, state, left.rows + right.rows)

    def _decoded(self, term: _Term) -> _Term:
        text = f"decode(encode({term.text}))"
        return _Term(text, self._call(text, self._monoid.decode, self._bytes(term)), term.rows)

    def _bytes(self, term: _Term) -> bytes:
        data = self._call(f"encode({term.text})", self._monoid.encode, term.state)
        if not isinstance(data, bytes):
            self._refuse(f"encode({term.text}) is {data!r}", "bytes")
        if self._monoid.encode(term.state) != data:
            self._refuse(f"encode({term.text}) twice gives different bytes", "the same bytes")
        return data

    def _equal(self, left: _Term, right: _Term, law: str) -> None:
        a, b = self._bytes(left), self._bytes(right)
        shows = [self._call(f"show({t.text})", self._monoid.show, t.state) for t in (left, right)]
        if a != b:
            self._refuse(
                f"{left.text} encodes to {a!r} and shows {shows[0]!r}, "
                f"{right.text} to {b!r} and {shows[1]!r}",
                f"{law}, and equal states have equal bytes",
            )
        if repr(shows[0]) != repr(shows[1]):
            self._refuse(
                f"{left.text} shows {shows[0]!r}, {right.text} {shows[1]!r}, and both are {a!r}",
                f"{law}, and states of equal bytes show the same",
            )

    def _call(self, text: str, function: Callable[..., Any], *values: Any) -> Any:
        try:
            return function(*values)
        except Exception as error:  # noqa: BLE001 - it is the user's code, and may raise anything
            self._refuse(f"{text} raised {error!r}", "no exception for any sample")

    def _refuse(self, found: str, allowed: str) -> NoReturn:
        raise CallerError(
            found,
            allowed=allowed,
            where=self._where,
            action="correct the monoid, or its samples",
            code="monoid",
        )


def _by_size(cases: Iterator[tuple[_Term, ...]]) -> list[tuple[_Term, ...]]:
    """Smallest first, so that the first failure is the smallest one."""
    return sorted(
        cases, key=lambda case: (sum(t.rows for t in case), sum(len(t.text) for t in case))
    )
