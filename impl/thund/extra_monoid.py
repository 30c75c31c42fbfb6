"""The partials of a user's own monoid, group by group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thund.calls import columns_of, text_of
from thund.columns import plain_type
from thund.extras import Extra, Places
from thund.lattices import present
from thund.monoids import Monoid, registered, shown_column
from thund.refusal import nearest
from thund.scalars import is_numbered, is_scalar, values_of
from thund_contract import vocabulary as v
from thund_contract.errors import CallerError, InputError


class MonoidKind:
    """An operation that a user registered.

    State: the bytes that the monoid encodes it to.

    Law: G4.
    Raises: InputError where one of the monoid's functions raises or gives a value of another type.
    """

    def __init__(self, label: str, operation: str, monoid: Monoid, types: Sequence[Any]) -> None:
        self.label, self.state_type = label, pa.large_binary()
        self._operation, self._monoid, self._types = operation, monoid, types

    def new(self) -> Extra:
        """The partials of a new table."""
        return Partials(self._operation, self._monoid, self._types)

    def show(self, states: Any, operation: str) -> tuple[Any, dict[int, str]]:
        """What the monoid shows, in its output type."""
        call, monoid = Caller(operation), self._monoid
        values = [
            call(monoid.show, call(monoid.decode, data) if data is not None else monoid.empty())
            for data in states.to_pylist()
        ]
        shown: tuple[Any, dict[int, str]] = call(shown_column, values, monoid.output_type)
        return shown


class Caller:
    """Calls a user's function. Raises: InputError for any exception that it raises."""

    def __init__(self, operation: str) -> None:
        self._operation = operation

    def __call__(self, function: Callable[..., Any], *values: Any) -> Any:
        try:
            return function(*values)
        except Exception as error:
            name = getattr(function, "__name__", "a function")
            raise InputError(
                f"{name}({', '.join(map(repr, values))}) raised {error!r}"[:500],
                allowed="a monoid whose functions take every row of its columns",
                where=f"monoid {self._operation!r}",
                action="correct the monoid under a new version, or filter out such rows",
            ) from error


class Partials:
    """The states of one table.

    Cost: what lift and merge cost, once per row, and 1 microsecond.
    """

    def __init__(self, operation: str, monoid: Monoid, types: Sequence[Any]) -> None:
        self._call, self._monoid = Caller(operation), monoid
        self._names = [str(kind) if is_numbered(kind) else None for kind in types]
        self._states: dict[int, Any] = {}

    def fold(self, entries: NDArray[np.int64], columns: Sequence[Any], places: Places) -> None:
        """The rows of a group are merged with each other first."""
        entries, columns = present(entries, columns)
        order = np.argsort(entries, kind="stable")
        plain = [values_of(column.take(pa.array(order))) for column in columns]
        values = [
            column if name is None else [(name, x) for x in column]
            for name, column in zip(self._names, plain, strict=True)
        ]
        call, lift, merge = self._call, self._monoid.lift, self._monoid.merge
        found: dict[int, Any] = {}
        for entry, *row in zip(entries[order].tolist(), *values, strict=True):
            state = call(lift, *row)
            found[entry] = call(merge, found[entry], state) if entry in found else state
        for entry, state in found.items():
            self._add(entry, state)

    def _add(self, entry: int, state: Any) -> None:
        if entry in self._states:
            state = self._call(self._monoid.merge, self._states[entry], state)
        self._states[entry] = state

    def absorb(self, entries: NDArray[np.int64], states: Any) -> None:
        """Decode and merge."""
        for entry, data in zip(entries.tolist(), states.to_pylist(), strict=True):
            if data is not None:
                self._add(entry, self._call(self._monoid.decode, data))

    def states(self, entries: NDArray[np.int64]) -> Any:
        """The states, encoded; never null."""
        call, monoid = self._call, self._monoid
        nothing = call(monoid.encode, call(monoid.empty))
        return pa.array(
            [
                call(monoid.encode, self._states[entry]) if entry in self._states else nothing
                for entry in entries.tolist()
            ],
            pa.large_binary(),
        )


def monoid_kind(aggregate: v.Aggregate, schema: Any) -> MonoidKind:
    """Of any scalar types, as many as the monoid reads.

    Raises: CallerError for an operation that was not registered, and another number of columns.
    """
    where, known = f"aggregate {aggregate.name!r}", registered()
    monoid = known.get(aggregate.operation)
    if monoid is None:
        names = [*v.OPERATIONS, *known]
        guess = nearest(aggregate.operation, names)
        raise CallerError(
            f"operation {aggregate.operation!r}",
            allowed=", ".join(names),
            where=where,
            action=f'did you mean "{guess}"?' if guess else "register the monoid first",
        )
    columns = columns_of(aggregate)
    if len(columns) != monoid.arity:
        raise CallerError(
            f"{text_of(aggregate)} with {len(columns)} columns",
            allowed=f"{monoid.arity}",
            where=where,
            action="name as many columns as the monoid reads",
        )
    types = [plain_type(schema.field(name).type) for name in columns]
    for name, kind in zip(columns, types, strict=True):
        if not is_scalar(kind):
            raise CallerError(
                f"{text_of(aggregate)} over column {name!r} of type {kind}",
                allowed="booleans, numbers, texts, bytes, dates and times",
                where=where,
                action="cast the column",
            )
    return MonoidKind(text_of(aggregate), aggregate.operation, monoid, types)
