"""Parquet files as blocks of rows, a row group's pages at a time."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from thund.connectors.blocks import Block, Mark, WholeFile, readable, unreadable
from thund.connectors.catalog import DataFile


def open_parquet(file: DataFile) -> Any:
    """The file's footer, read and understood.

    Raises: InputError for a truncated file or one that is not parquet.
    """
    readable(file.path)
    try:
        return pq.ParquetFile(file.path)
    except (pa.ArrowException, OSError) as error:
        unreadable(
            f"this is no complete parquet file: {_first_line(error)}",
            str(file.path),
            action="write the file again; writing it under another name and renaming it keeps "
            "readers from half of it",
        )


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


class ParquetRows:
    """See FileRows. A parquet file does not grow; more rows come in more files.

    Law: S1, S4. Cost: one batch in memory, and the open row group's compressed pages.
    """

    def __init__(self, file: DataFile, schema: pa.Schema, *, batch_rows: int) -> None:
        self.file = file
        self._schema, self._batch_rows = schema, batch_rows
        self._whole = WholeFile(file)
        self._parquet = open_parquet(file)
        groups = self._parquet.metadata
        self._starts = [0]
        for group in range(groups.num_row_groups):
            self._starts.append(self._starts[-1] + groups.row_group(group).num_rows)
        self._batches: Iterator[Any] = iter(())
        self._latest: Block | None = None

    @property
    def rows_known(self) -> int:
        """All rows: the footer says how many."""
        return self._starts[-1]

    def block(self, row: int) -> Block | None:
        """See FileRows. Going on from the last block costs nothing extra."""
        if row >= self.rows_known:
            return None
        latest = self._latest
        if latest is None or row < latest.first or row >= self._group_stop(latest.first):
            group = bisect.bisect_right(self._starts, row) - 1
            self._open(group)
            latest = self._next(self._starts[group])
        while latest.stop <= row:
            latest = self._next(latest.stop)
        return latest

    def _group_stop(self, row: int) -> int:
        return self._starts[bisect.bisect_right(self._starts, row)]

    def _open(self, group: int) -> None:
        self._whole.check_still()
        self._batches = self._parquet.iter_batches(
            batch_size=self._batch_rows,
            row_groups=[group],
            columns=self._schema.names,
            use_threads=False,
        )

    def _next(self, first: int) -> Block:
        try:
            batch = next(self._batches)
        except (pa.ArrowException, OSError, StopIteration) as error:
            unreadable(
                f"the pages from offset {first} on cannot be read: {_first_line(error)}",
                f"{self.file.path}, offset {first}",
                action="restore the file from where it came from",
            )
        self._latest = Block(first, fit(batch, self._schema, str(self.file.path)))
        return self._latest

    def mark(self, rows: int) -> Mark:
        """See FileRows."""
        return self._whole.mark(rows)

    def check(self, mark: Mapping[str, object], where: str) -> None:
        """See FileRows."""
        self._whole.check(mark, where)


def fit(batch: Any, schema: pa.Schema, where: str) -> pa.RecordBatch:
    """A batch with the columns and types of `schema`.

    Raises: InputError where a value does not fit.
    """
    if batch.schema.equals(schema):
        return batch
    columns = []
    for each in schema:
        column = batch.column(each.name)
        try:
            columns.append(column.cast(each.type))
        except pa.ArrowException as error:
            unreadable(
                f"column {each.name!r} ({column.type}) does not fit {each.type}: "
                f"{_first_line(error)}",
                where,
                action="write the file with the type of the others",
            )
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def parquet_schema(file: DataFile, columns: Sequence[str] | None) -> pa.Schema:
    """The types of the columns that are wanted, as the file has them; missing ones left out."""
    schema = open_parquet(file).schema_arrow
    names = schema.names if columns is None else [c for c in columns if c in schema.names]
    return pa.schema([schema.field(name) for name in names])
