"""A source made of record batches that the caller iterates over."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thund.batch import Delivery
from thund.connectors.blocks import Block, lost
from thund_contract.errors import CallerError, InputError
from thund_contract.vocabulary import NONE_BEFORE

ONLY = "stream"
"""The partition of a stream that no column divides."""

WHERE = "stream input"

Batches = Iterable[pa.RecordBatch] | Callable[[], Iterable[pa.RecordBatch]]


def with_stream_input(
    batches: Batches,
    *,
    partition: str | None = None,
    partitions: Sequence[str] = (),
    schema: pa.Schema | None = None,
) -> StreamSource:
    """Rows from an iterable of record batches, or from a function that gives a new one each time.

    An offset is the number of the row in the whole input. A column `partition` says whose row it
    is; `partitions` names those to wait for before their first row comes (law W2). After a restart
    hand the same rows over from the first one on: those that were committed are skipped. A list or
    a function can be read twice, which `thund audit` needs; an iterator cannot.

    Law: S1, S4. Raises: CallerError where there is neither a batch nor a schema.
    """
    return StreamSource(batches, partition_column=partition, partitions=partitions, schema=schema)


class StreamSource:
    """See Source. Rows come in the order in which they are handed over.

    The input is paused by not asking the iterator for its next batch, and nothing is shed.
    Batches stay in memory until all their rows are committed: as many as credits allow.

    Law: S1, S3, S4, S5, C4.
    """

    schema: pa.Schema
    bounded = True

    def __init__(
        self,
        batches: Batches,
        *,
        partition_column: str | None = None,
        partitions: Sequence[str] = (),
        schema: pa.Schema | None = None,
    ) -> None:
        self._lock = threading.RLock()
        self._batches, self._column = batches, partition_column
        self._again = callable(batches) or not isinstance(batches, Iterator)
        self._names = {ONLY} if partition_column is None else set(partitions)
        self._expected: Mapping[str, int] = {}
        self._gone: dict[str, int] = {}
        self._next = 0
        self._second: StreamSource | None = None
        self._begin(schema)
        if partition_column is not None and partition_column not in self.schema.names:
            raise CallerError(
                f"no column {partition_column!r} to divide the stream by",
                allowed=", ".join(self.schema.names),
                where=WHERE,
                action="name one of these columns",
            )

    def _begin(self, schema: pa.Schema | None) -> None:
        self._iterator = _iterate(self._batches)
        self._kept: deque[Block] = deque()
        self._pulled = 0
        self._ended = False
        if schema is not None:
            self.schema = schema
            return
        first = next(self._iterator, None)
        if first is None:
            raise CallerError(
                "the stream has no batch, so its columns are not known",
                allowed="at least one batch, or a schema",
                where=WHERE,
                action="hand over schema=...",
            )
        self.schema = first.schema
        self._keep(first)

    def _keep(self, batch: Any) -> Block:
        if not isinstance(batch, pa.RecordBatch) or not batch.schema.equals(self.schema):
            shown = batch.schema.to_string() if isinstance(batch, pa.RecordBatch) else type(batch)
            raise InputError(
                f"a batch does not have the columns of the stream: {shown}",
                allowed=f"record batches with {self.schema.to_string()}",
                where=f"{WHERE}, offset {self._pulled}",
                action="hand over batches of one schema",
                code="type_differs",
            )
        block = Block(self._pulled, batch)
        self._pulled = block.stop
        if batch.num_rows:
            self._kept.append(block)
        return block

    def _block(self, row: int) -> Block | None:
        """The block that holds a row, if it was handed over and not let go."""
        first = self._kept[0].first if self._kept else self._pulled
        if row < first:
            self._rewind(row)
        return next((block for block in self._kept if block.first <= row < block.stop), None)

    def _take(self, batch: Any, row: int) -> None:
        """What the iterator gave. A block before `row` is passed over: its rows were had."""
        if batch is None:
            self._ended = True
            return
        block = self._keep(batch)
        if block.rows.num_rows and block.stop <= row:
            self._kept.pop()

    def _rewind(self, row: int) -> None:
        if not self._again:
            lost(
                f"row {row} was read and let go, and an iterator cannot be read twice",
                f"{WHERE}, offset {row}",
            )
        self._gone = {}
        self._begin(self.schema)

    def partitions(self) -> tuple[str, ...]:
        """See Source; a partition shows up when its first row was reached."""
        with self._lock:
            return tuple(sorted(self._names))

    def read(
        self, after: Mapping[str, int], credit: Mapping[str, int], max_rows: int
    ) -> Delivery | None:
        """See Source. A row of a partition that `after` does not name is waited for.

        The rows stop before it: ask `partitions` then, and assign it.

        Law: S1, S4, S5, C2.
        """
        assert max_rows > 0
        while True:
            with self._lock:
                if dict(after) != self._expected:
                    self._go_to(after)
                found = self._next_rows(after, credit, max_rows)
                if found is not None:
                    return found
                if self._ended:
                    self._see_end(after)
                    return None
            # Without the lock: a commit must not wait until the caller has more rows.
            batch = next(self._iterator, None)
            with self._lock:
                self._take(batch, self._next)

    def _next_rows(
        self, after: Mapping[str, int], credit: Mapping[str, int], max_rows: int
    ) -> Delivery | None:
        """Rows of the blocks that were handed over; None where all of these rows went before."""
        names = tuple(sorted(after))
        while (block := self._block(self._next)) is not None:
            rows = np.arange(self._next, block.stop, dtype=np.int64)
            owner = self._owners(block, names)[self._next - block.first :]
            last = np.array([*(after[name] for name in names), NONE_BEFORE], np.int64)
            left = [max(0, credit.get(name, 0)) for name in names]
            places = self._cut(rows > last[owner], owner, left)
            if places is not None:
                places = places[:max_rows]
                return self._deliver(rows[places], owner[places], names, last)
            self._next = block.stop
            self._raise_gone({})
        return None

    def _go_to(self, after: Mapping[str, int]) -> None:
        """Stand behind the first row that some partition has not had yet.

        Law: S4. Raises: InputError where it was let go and the input cannot be read twice.
        """
        back = any(last < self._gone.get(name, NONE_BEFORE) for name, last in after.items())
        self._raise_gone(after)
        start = self._kept[0].first if self._kept else self._pulled
        self._next = min(after.values(), default=NONE_BEFORE) + 1
        if self._next < start and back:
            self._rewind(self._next)
        elif self._next < start:
            self._next = start
        self._expected = dict(after)

    def _raise_gone(self, positions: Mapping[str, int]) -> None:
        """Rows up to here are never asked for again: let go of what holds no others."""
        for name, last in positions.items():
            self._gone[name] = max(last, self._gone.get(name, NONE_BEFORE))
        while self._kept and self._is_done(self._kept[0]):
            self._kept.popleft()

    def _is_done(self, block: Block) -> bool:
        names = tuple(sorted(self._gone))
        last = np.array([*(self._gone[name] for name in names), NONE_BEFORE], np.int64)
        rows = np.arange(block.first, block.stop, dtype=np.int64)
        return bool((rows <= last[self._owners(block, names)]).all())

    def _let_go(self, row: int) -> None:
        while self._kept and self._kept[0].stop <= row:
            self._kept.popleft()

    def _owners(self, block: Block, names: tuple[str, ...]) -> NDArray[np.int64]:
        """Per row the place of its partition in `names`, -1 for one that is not there."""
        if self._column is None:
            place = names.index(ONLY) if ONLY in names else -1
            return np.full(block.rows.num_rows, place, np.int64)
        texts = block.rows.column(self._column).cast(pa.string())
        if texts.null_count:
            at = block.first + int(pc.index(texts.is_null(), pa.scalar(True)).as_py())
            raise InputError(
                f"column {self._column!r} is null, so the row has no partition",
                allowed="a value in each row",
                where=f"{WHERE}, offset {at}",
                action="fill the column, or divide by another one",
            )
        coded = texts.dictionary_encode()
        self._names.update(coded.dictionary.to_pylist())
        places = [names.index(n) if n in names else -1 for n in coded.dictionary.to_pylist()]
        owners: NDArray[np.int64] = np.array(places, np.int64)[coded.indices.to_numpy()]
        return owners

    def _cut(
        self, wanted: NDArray[np.bool_], owner: NDArray[np.int64], left: Sequence[int]
    ) -> NDArray[np.int64] | None:
        """Which rows may go now; None where all of them went before, so the next block is due."""
        places = np.flatnonzero(wanted)
        waits = False
        for place, credit in enumerate((*left, 0)):
            mine = places[owner[places] == (place if place < len(left) else -1)]
            if len(mine) > credit:
                places, waits = places[places < mine[credit]], True
        return places if len(places) or waits else None

    def _deliver(
        self,
        rows: NDArray[np.int64],
        owner: NDArray[np.int64],
        names: tuple[str, ...],
        last: NDArray[np.int64],
    ) -> Delivery:
        prev = np.empty(len(rows), np.int64)
        for place in range(len(names)):
            mine = np.flatnonzero(owner == place)
            if len(mine):
                prev[mine] = np.concatenate((last[place : place + 1], rows[mine[:-1]]))
                last[place] = rows[mine[-1]]
        self._expected = dict(zip(names, last.tolist(), strict=False))
        if not len(rows):
            none = pa.RecordBatch.from_pylist([], schema=self.schema)
            return Delivery(none, names, owner.astype(np.int32), rows, prev)
        self._next = int(rows[-1]) + 1
        block = self._block(int(rows[0]))
        assert block is not None
        places = rows - block.first
        unbroken = len(rows) == rows[-1] - rows[0] + 1
        columns = (
            block.rows.slice(int(places[0]), len(rows))
            if unbroken
            else block.rows.take(pa.array(places, pa.int64()))
        )
        return Delivery(columns, names, owner.astype(np.int32), rows, prev)

    def _see_end(self, after: Mapping[str, int]) -> None:
        newest = max(after.values(), default=NONE_BEFORE)
        if newest >= self._pulled:
            lost(
                f"the input ended after {self._pulled} rows, and rows up to offset {newest} "
                "were read before",
                WHERE,
            )

    def read_rows(self, partition: str, first: int, last: int) -> pa.RecordBatch:
        """See Source; rows that were let go need an input that can be read twice. Law: S1."""
        with self._lock:
            where = f"{WHERE}, partition {partition}"
            if self._again and self._second is None:
                self._second = StreamSource(
                    self._batches, partition_column=self._column, schema=self.schema
                )
            reader = self._second or self
            if not self._again and last >= self._pulled:
                lost(f"offset {last} was not read yet", where)
            parts, row = [], first
            while row <= last:
                block = reader._pulled_block(row)  # noqa: SLF001 - of its own kind
                if block is None:
                    lost(f"the input ends before offset {row}", where)
                stop = min(last + 1, block.stop)
                rows = block.rows.slice(row - block.first, stop - row)
                owner = self._owners(block, (partition,))[row - block.first : stop - block.first]
                parts.append(rows.filter(pa.array(owner == 0)))
                row = stop
                if reader is not self:
                    reader._let_go(block.first)  # noqa: SLF001 - of its own kind
            return pa.concat_batches(parts)  # type: ignore[attr-defined]

    def _pulled_block(self, row: int) -> Block | None:
        block = self._block(row)
        while block is None and not self._ended:
            self._take(next(self._iterator, None), row)
            block = self._block(row)
        return block

    def fingerprint(self, positions: Mapping[str, int] | None = None) -> dict[str, object]:
        """See Source: how many rows were read, and their columns. Their content is not checked.

        Law: K3, S4.
        """
        with self._lock:
            last = max((positions or self._expected).values(), default=NONE_BEFORE)
            columns = [[each.name, str(each.type)] for each in self.schema]
            return {"kind": "stream", "rows": last + 1, "columns": columns}

    def verify(self, fingerprint: Mapping[str, object]) -> None:
        """See Source. Missing rows show in `read`, when the input ends too early.

        Law: S4. Raises: InputError where it is another kind of source or other columns.
        """
        now = self.fingerprint()
        for name in ("kind", "columns"):
            if fingerprint.get(name) != now[name]:
                lost(
                    f"{name} {now[name]}, it was {fingerprint.get(name)} when rows were read", WHERE
                )

    def commit(self, positions: Mapping[str, int]) -> None:
        """Let go of batches whose rows are all committed. Law: K1."""
        with self._lock:
            self._raise_gone(positions)


def _iterate(batches: Batches) -> Iterator[Any]:
    made: Any = batches() if callable(batches) else batches
    return iter(made.to_batches() if isinstance(made, pa.Table) else made)
