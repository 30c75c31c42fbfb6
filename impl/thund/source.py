"""What a source must give, and the sequencer that puts deliveries back into the log's order.

It knows partitions and offsets, not event times or credits' owners.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thund.batch import Delivery
from thund.order import NOT_HERE, chain

READ_ROWS = 65_536
"""The most rows that one read is asked for, or gives."""


class Source(Protocol):
    """A set of replayable logs, read by offset.

    A source here is pulled: it is paused by not calling `read`, and credit of 0 does the same for
    one partition. Nothing is ever shed, so it needs no overflow policy.

    Law: S1, S4, S5, C4.
    """

    schema: pa.Schema
    bounded: bool

    def partitions(self) -> tuple[str, ...]:
        """The names there are now, sorted; a later call may show more."""
        ...

    def read(
        self, after: Mapping[str, int], credit: Mapping[str, int], max_rows: int
    ) -> Delivery | None:
        """The next rows in S5's order, at most `max_rows`, of the partitions that `after` names.

        `after` has the last offset sent or accepted, NONE_BEFORE for the start. The rows stop
        before the first one whose partition has no credit: a Delivery without rows says that it
        waits for credit, None that nothing more is there now.

        Law: S1, S4, S5, C2. Raises: InputError where rows after `after` are lost.
        """
        ...

    def fingerprint(self, positions: Mapping[str, int] | None = None) -> dict[str, object]:
        """What identifies the rows read up to `positions`, or up to the last `read`, as JSON data.

        Law: K3, S4.
        """
        ...

    def verify(self, fingerprint: Mapping[str, object]) -> None:
        """See that what was read is still there; call it before `schema` and `read`.

        Law: S4. Raises: InputError that names the file, the partition and what was found.
        """
        ...

    def commit(self, positions: Mapping[str, int]) -> None:
        """Offsets up to `positions` are committed. Law: K1."""
        ...

    def read_rows(self, partition: str, first: int, last: int) -> pa.RecordBatch:
        """The rows with offsets in [first, last] once more. Law: S1."""
        ...


def next_row(source: Source, after: Mapping[str, int]) -> Delivery | None:
    """The one row that follows `after` in the source's order; None where there is none now.

    Law: S5, W6.
    """
    more = source.read(after, dict.fromkeys(after, 1), 1)
    return more if more is not None and more.num_rows else None


@dataclass(slots=True)
class _Log:
    """What one partition has accepted, and what waits: offset by prev, place by offset."""

    last: int
    assigned: bool = True
    after: dict[int, int] = field(default_factory=dict)
    held: dict[int, tuple[Delivery, int]] = field(default_factory=dict)


class Sequencer:
    """Accept each row once and in the order of its partition, whatever the link does.

    A duplicate (offset <= last, or held already) is dropped and counted in `duplicates`. Rows of a
    partition that is not assigned count in `unassigned`: their delivery is as good as lost.

    Law: S2, S3, T6.
    Cost: a delivery in order comes back as it is, about 1 ns a row; each other row about 2 us.
    """

    def __init__(self, positions: Mapping[str, int]) -> None:
        self.duplicates = 0
        self.unassigned = 0
        self._logs = {name: _Log(last) for name, last in positions.items()}

    def position(self, partition: str) -> int:
        """The last accepted offset, kept for a removed partition too. Law: S3, W5."""
        return self._logs[partition].last

    def held(self, partition: str) -> int:
        """How many rows wait for one before them. Law: S3."""
        return len(self._logs[partition].held)

    def add(self, partition: str, position: int) -> None:
        """Assign a partition, which goes on after `position`. Law: W5."""
        self._logs[partition] = _Log(position)

    def remove(self, partition: str) -> None:
        """Unassign a partition and drop its held rows; its position stays. Law: W5."""
        self._logs[partition] = _Log(self._logs[partition].last, assigned=False)

    def deliver(self, d: Delivery) -> Delivery:
        """The rows that can be accepted now, in order; a held row follows the one it waited for.

        Law: S2, S3.
        """
        last = self._snapshot(d.partitions)
        stop = int(chain(d.partition, d.offset, d.prev, last, 0))
        if stop == d.num_rows:
            self._keep(d.partitions, last)
            return d
        accepted = _Runs(d)
        parked = _Parked(d)
        start = 0
        while stop < d.num_rows:
            accepted.extend(start, stop)
            place = d.partition[stop]
            name = d.partitions[place]
            if last[place] != NOT_HERE:
                self._logs[name].last = int(last[place])
            self._take(d, stop, accepted, parked)
            last[place] = self._shown(name)
            start = stop + 1
            stop = int(chain(d.partition, d.offset, d.prev, last, start))
        accepted.extend(start, stop)
        self._keep(d.partitions, last)
        for name, offset, row in parked.rows:
            log = self._logs[name]
            if offset in log.held:
                log.held[offset] = (parked.copy(), row)
        return accepted.delivery()

    def _shown(self, name: str) -> int:
        log = self._logs.get(name)
        return NOT_HERE if log is None or not log.assigned or log.held else log.last

    def _snapshot(self, partitions: tuple[str, ...]) -> NDArray[np.int64]:
        return np.array([self._shown(name) for name in partitions], np.int64)

    def _keep(self, partitions: tuple[str, ...], last: NDArray[np.int64]) -> None:
        for name, value in zip(partitions, last.tolist(), strict=True):
            if value != NOT_HERE:
                self._logs[name].last = value

    def _take(self, d: Delivery, row: int, accepted: _Runs, parked: _Parked) -> None:
        """One row that the loop could not take: a duplicate, a gap, or a partition with held rows."""
        name = d.partitions[d.partition[row]]
        offset, prev = int(d.offset[row]), int(d.prev[row])
        log = self._logs.get(name)
        if log is None or not log.assigned:
            self.unassigned += 1
        elif offset <= log.last or offset in log.held:
            self.duplicates += 1
        elif prev != log.last:
            log.after[prev] = offset
            log.held[offset] = (d, row)
            parked.add(name, offset, row)
        else:
            log.last = offset
            accepted.extend(row, row + 1)
            while log.last in log.after:
                log.last = log.after.pop(log.last)
                accepted.insert(*log.held.pop(log.last))


class _Parked:
    """The rows of one delivery that wait, copied once so that the delivery itself can go."""

    def __init__(self, d: Delivery) -> None:
        self._delivery = d
        self._rows: list[int] = []
        self._copy: Delivery | None = None
        self.rows: list[tuple[str, int, int]] = []

    def add(self, name: str, offset: int, row: int) -> None:
        self.rows.append((name, offset, len(self._rows)))
        self._rows.append(row)

    def copy(self) -> Delivery:
        if self._copy is None:
            self._copy = self._delivery.take(np.array(self._rows, np.int64))
        return self._copy


class _Runs:
    """Accepted rows in order, as unbroken runs of the deliveries they came with."""

    def __init__(self, d: Delivery) -> None:
        self._delivery = d
        self._runs: list[tuple[Delivery, int, int]] = []

    def extend(self, start: int, stop: int) -> None:
        self.insert(self._delivery, start, stop)

    def insert(self, d: Delivery, start: int, stop: int | None = None) -> None:
        stop = start + 1 if stop is None else stop
        if start == stop:
            return
        if self._runs and self._runs[-1][0] is d and self._runs[-1][2] == start:
            start = self._runs.pop()[1]
        self._runs.append((d, start, stop))

    def delivery(self) -> Delivery:
        if not self._runs:
            return self._delivery.slice(0, 0)
        return Delivery.concat([d.slice(start, stop) for d, start, stop in self._runs])
