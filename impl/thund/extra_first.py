"""first and last: the value of the least, or the greatest, (event time, partition, offset)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thund.columns import build, null_mask, plain_type, raw, unviewed
from thund.extra_values import Values
from thund.extras import Extra, Places, grown, wrong_type
from thund.kernel_first import earlier
from thund.keys import usable
from thund_contract import vocabulary as v


class FirstKind:
    """The value and the place of one row.

    State: struct of event_time int64, partition string, offset int64, and value in the column's
    type (a view's as large texts or bytes); null for no row.

    Law: G4.
    """

    def __init__(self, label: str, kind: Any, sign: int) -> None:
        self.label = label
        self.state_type = pa.struct(
            [
                ("event_time", pa.int64()),
                ("partition", pa.string()),
                ("offset", pa.int64()),
                ("value", unviewed(kind)),
            ]
        )
        self._kind, self._sign = kind, sign

    def new(self) -> Extra:
        """The partials of a new table."""
        return _Firsts(self.state_type, self._sign)

    def show(self, states: Any, operation: str) -> tuple[Any, dict[int, str]]:
        """The value alone."""
        return pc.struct_field(states, "value").cast(self._kind), {}


def first_kind(aggregate: v.Aggregate, schema: Any) -> FirstKind:
    """Any type that keys can have.

    Raises: CallerError for another one.
    """
    kind = plain_type(schema.field(aggregate.column).type)
    if not usable(kind):
        raise wrong_type(aggregate, kind, "any type that a key can have")
    sign = 1 if aggregate.operation == v.FIRST else -1
    return FirstKind(f"{aggregate.operation}({aggregate.column})", kind, sign)


class _Firsts:
    """Per entry the place of the row so far; for last all of it is kept negated."""

    def __init__(self, state_type: Any, sign: int) -> None:
        self._type, self._sign = state_type, sign
        self._names: dict[str, int] = {}
        self._ranks: NDArray[np.int64] = np.empty(0, np.int64)
        self._values = Values(state_type.field("value").type)
        self._time: NDArray[np.int64] = np.zeros(16, np.int64)
        self._number: NDArray[np.int64] = np.full(16, -1, np.int64)
        self._offset: NDArray[np.int64] = np.zeros(16, np.int64)
        self._row: NDArray[np.int64] = np.full(16, -1, np.int64)

    def fold(self, entries: NDArray[np.int64], columns: Sequence[Any], places: Places) -> None:
        """The rows whose value is not null."""
        numbers = self._number_names(places.names)
        self._offer(
            entries, places.event_time, numbers[places.partition], places.offset, columns[0]
        )

    def absorb(self, entries: NDArray[np.int64], states: Any) -> None:
        """As rows."""
        if states.null_count:
            valid = states.is_valid()
            entries, states = entries[np.asarray(valid)], states.filter(valid)
        time, partition, offset, value = states.flatten()
        names = partition.dictionary_encode()
        numbers = self._number_names(names.dictionary.to_pylist())
        self._offer(entries, raw(time), numbers[raw(names.indices)], raw(offset), value)

    def states(self, entries: NDArray[np.int64]) -> Any:
        """The rows so far."""
        self._make_room(int(entries.max(initial=0)) + 1)
        number = self._number[entries]
        valid = number >= 0
        names = pa.array([*self._names], pa.string()).take(pa.array(number, mask=~valid))
        return pa.StructArray.from_arrays(
            [
                build(pa.int64(), self._sign * self._time[entries], valid),
                names,
                build(pa.int64(), self._sign * self._offset[entries], valid),
                self._values.show(entries),
            ],
            fields=list(self._type),
            mask=pa.array(~valid),
        )

    def _number_names(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Numbers of partitions, and the ranks of all of them anew where one is new."""
        for name in names:
            self._names.setdefault(name, len(self._names))
        if len(self._ranks) < len(self._names):
            known = list(self._names)
            order = sorted(range(len(known)), key=known.__getitem__)
            self._ranks = np.empty(len(known), np.int64)
            self._ranks[order] = self._sign * np.arange(len(known))
        return np.array([self._names[name] for name in names], np.int64)

    def _make_room(self, size: int) -> None:
        self._time = grown(self._time, size, 0)
        self._number = grown(self._number, size, -1)
        self._offset = grown(self._offset, size, 0)
        self._row = grown(self._row, size, -1)

    def _offer(
        self,
        entries: NDArray[np.int64],
        time: NDArray[np.int64],
        number: NDArray[np.int64],
        offset: NDArray[np.int64],
        values: Any,
    ) -> None:
        nulls = null_mask(values)
        if nulls is not None:
            kept = np.flatnonzero(~nulls)
            entries, time, number, offset = (a[kept] for a in (entries, time, number, offset))
            values = values.take(pa.array(kept))
        if len(entries) == 0:
            return
        self._make_room(int(entries.max()) + 1)
        winners = np.empty(len(entries), np.int64)
        n = earlier(
            entries,
            np.multiply(time, self._sign),
            number,
            np.multiply(offset, self._sign),
            self._ranks,
            self._time,
            self._number,
            self._offset,
            self._row,
            winners,
        )
        won = winners[:n]
        rows = self._row[won]
        self._row[won] = -1
        self._values.put(won, values.take(pa.array(rows)))
