"""Logs made of files: rows by offset, and a log that a column divides into partitions.

It knows row numbers, not the order in which partitions take turns.
"""

from __future__ import annotations

import bisect
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thund.connectors.blocks import Block, FileRows, Mark, lost, stat
from thund.connectors.catalog import check_prefix
from thund_contract.errors import InputError
from thund_contract.vocabulary import NONE_BEFORE

SPLITS_KEPT = 8
"""Divided blocks that are kept, so that partitions which advance together share the work."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive rows of one partition, their offsets, and the offset that was asked for before.

    Law: S3.
    """

    rows: pa.RecordBatch
    offsets: NDArray[np.int64]
    before: int


class Log(Protocol):
    """The rows of one partition. Law: S1."""

    def after(self, offset: int) -> Stretch | None:
        """Rows that follow `offset`, at least one; None where there is none now.

        Law: S1, S4. Raises: InputError where the log ends before `offset`.
        """
        ...

    def at(self, offset: int) -> Stretch | None:
        """Rows from `offset` on, once more. Law: S1."""
        ...


class FileLog:
    """Files in name order as one log: an offset is a row number through all of them.

    Law: S1, S4.
    """

    def __init__(self, name: str, files: Sequence[FileRows], where: str) -> None:
        self.name, self.where = name, where
        self.files = list(files)
        self._starts = [0]
        self._marks: dict[int, Mark] = {}

    def block(self, row: int) -> Block | None:
        """The block that holds a row, in the log's row numbers; None beyond the end."""
        place = bisect.bisect_right(self._starts, row) - 1
        while True:
            file, start = self.files[place], self._starts[place]
            block = file.block(row - start)
            if block is not None:
                return Block(block.first + start, block.rows)
            if place + 1 == len(self.files):
                return None
            if place + 1 == len(self._starts):
                self._starts.append(start + file.rows_known)
            place += 1

    def rows_known(self) -> int:
        """Rows in what was seen; all of them after `block` gave None."""
        place = len(self._starts) - 1
        return self._starts[place] + self.files[place].rows_known

    def after(self, offset: int) -> Stretch | None:
        """See Log."""
        block = self.block(offset + 1)
        if block is None:
            if offset >= self.rows_known():
                lost(
                    f"the log ends at offset {self.rows_known() - 1}, and rows up to offset "
                    f"{offset} were read",
                    f"{self.where}, partition {self.name}",
                )
            return None
        skip = offset + 1 - block.first
        return Stretch(
            block.rows.slice(skip), np.arange(offset + 1, block.stop, dtype=np.int64), offset
        )

    def at(self, offset: int) -> Stretch | None:
        """See Log."""
        return self.after(offset - 1)

    def add_files(self, labels: Sequence[str], files: Mapping[str, FileRows]) -> None:
        """New files, after those that there are. Raises: InputError where they come between."""
        old = [each.file.label for each in self.files]
        check_prefix(self.name, old, labels, self.where)
        self.files += [files[label] for label in labels[len(old) :]]

    def marks(self, rows: int) -> list[Mark]:
        """What identifies the first `rows` rows, file by file.

        A file before the last one must be as it was when the next one began: rows added to it
        would have no offset.

        Law: S4. Raises: InputError for a file that grew too late.
        """
        marks: list[Mark] = []
        if rows == 0:
            return marks
        if rows > self.rows_known():
            self.block(rows - 1)
        for place, (start, file) in enumerate(zip(self._starts, self.files, strict=False)):
            if place and start >= rows:
                break
            ended = place + 1 < len(self._starts) and self._starts[place + 1] <= rows
            if not ended:
                marks.append(file.mark(rows - start))
            else:
                if place not in self._marks:
                    self._marks[place] = file.mark(self._starts[place + 1] - start)
                self._same(file, self._marks[place])
                marks.append(self._marks[place])
        return marks

    def _same(self, file: FileRows, mark: Mark) -> None:
        now = stat(file.file.path, str(file.file.path))
        if now.size != mark["size"]:
            self._grew(file.file.label)

    def _grew(self, label: str) -> None:
        raise InputError(
            f"{label} changed after the file behind it was begun",
            allowed="only the last file of a partition grows: offsets are row numbers",
            where=f"{self.where}, partition {self.name}",
            action="write new rows into a new file whose name sorts last",
            code="lost_rows",
        )

    def verify(self, marks: Sequence[Mapping[str, Any]]) -> None:
        """See that what the marks name is still there. Law: S4. Raises: InputError."""
        check_prefix(
            self.name,
            [mark["file"] for mark in marks],
            [each.file.label for each in self.files],
            self.where,
        )
        for place, mark in enumerate(marks):
            file = self.files[place]
            file.check(mark, f"{file.file.path}, partition {self.name}")
            if place + 1 < len(marks):
                if stat(file.file.path, self.where).size != mark["size"]:
                    self._grew(file.file.label)
                if place + 1 == len(self._starts):
                    self._starts.append(self._starts[place] + int(mark["rows"]))


class DividedLog:
    """One log whose rows belong to partitions by a column: offsets are row numbers in it, sparse.

    Cost: the log is read once more to learn the partitions; then as many times as partitions lie
    more than SPLITS_KEPT blocks apart.

    Law: S1, S5.
    """

    def __init__(self, log: FileLog, column: str) -> None:
        self.log, self.column = log, column
        self._heads: dict[str, list[int]] = {}
        self._scanned = 0
        self._splits: OrderedDict[int, tuple[Block, dict[str, NDArray[np.int64]]]] = OrderedDict()

    def partitions(self) -> list[str]:
        """The values of the column in all rows that there are now, as text."""
        while (block := self.log.block(self._scanned)) is not None:
            for name, rows in self._split(block).items():
                here = rows[rows >= self._scanned]
                if len(here):
                    self._heads.setdefault(name, []).append(int(here[0]))
            self._scanned = block.stop
        return sorted(self._heads)

    def _split(self, block: Block) -> dict[str, NDArray[np.int64]]:
        """Row numbers of the block by partition."""
        kept = self._splits.get(block.first)
        if kept is not None and kept[0].stop == block.stop:
            self._splits.move_to_end(block.first)
            return kept[1]
        texts = block.rows.column(self.column).cast(pa.string())
        if texts.null_count:
            at = block.first + int(pc.index(texts.is_null(), pa.scalar(True)).as_py())
            raise InputError(
                f"column {self.column!r} is null, so the row has no partition",
                allowed="a value in each row",
                where=f"{self.log.where}, offset {at}",
                action="fill the column, or divide by another one",
            )
        coded = texts.dictionary_encode()
        codes = np.asarray(coded.indices.to_numpy())
        order = np.argsort(codes, kind="stable")
        stops = np.cumsum(np.bincount(codes, minlength=len(coded.dictionary)))
        parts = np.split(order + block.first, stops[:-1])
        found = dict(zip(coded.dictionary.to_pylist(), parts, strict=True))
        self._splits[block.first] = (block, found)
        if len(self._splits) > SPLITS_KEPT:
            self._splits.popitem(last=False)
        return found

    def _block(self, row: int) -> Block | None:
        for block, _ in self._splits.values():
            if block.first <= row < block.stop:
                return block
        return self.log.block(row)

    def at(self, partition: str, offset: int) -> Stretch | None:
        """The partition's rows from `offset` on in its block. Law: S1."""
        block = self._block(offset)
        rows = self._split(block).get(partition) if block is not None else None
        if block is None or rows is None:
            return None
        return _stretch(block, rows[rows >= offset], offset - 1)

    def after(self, partition: str, offset: int) -> Stretch | None:
        """The partition's rows that follow `offset` in one block. Law: S1, S4."""
        asked = offset
        if offset != NONE_BEFORE:
            block = self._block(offset)
            rows = self._split(block).get(partition, ()) if block is not None else ()
            at = int(np.searchsorted(rows, offset))
            if block is None or at == len(rows) or rows[at] != offset:
                lost(
                    f"offset {offset} is no row of the partition any more",
                    f"{self.log.where}, partition {partition}",
                )
            if at + 1 < len(rows):
                return _stretch(block, np.asarray(rows[at + 1 :]), asked)
            offset = block.stop - 1
        heads = self._heads.get(partition, [])
        place = bisect.bisect_right(heads, offset)
        if place == len(heads):
            self.partitions()
        if place == len(heads):
            return None
        block = self._block(heads[place])
        assert block is not None
        rows = self._split(block)[partition]
        return _stretch(block, rows[rows >= heads[place]], asked)


def _stretch(block: Block, rows: NDArray[np.int64], before: int) -> Stretch:
    return Stretch(block.rows.take(pa.array(rows - block.first, pa.int64())), rows, before)


@dataclass(frozen=True, slots=True)
class PartitionOfLog:
    """See Log: one value of a divided log's column."""

    divided: DividedLog
    partition: str

    def after(self, offset: int) -> Stretch | None:
        """See Log."""
        return self.divided.after(self.partition, offset)

    def at(self, offset: int) -> Stretch | None:
        """See Log."""
        return self.divided.at(self.partition, offset)
