"""CSV lines as rows: one header, types held from the first block on, event times cell by cell."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from thund.batch import UNREADABLE_TIME
from thund.connectors.blocks import unreadable
from thund.connectors.catalog import DataFile
from thund.connectors.columns import convert_times, guess_time_type, settled
from thund.connectors.text import first_lines

BOM = b"\xef\xbb\xbf"

_ROW = re.compile(r"Row #(\d+): ")
_COLUMN = re.compile(r"In CSV column #(\d+): ")


def split_header(data: bytes, *, delimiter: str, where: str) -> tuple[list[str], int] | None:
    """The column names and the byte after them; None where there is no line.

    Raises: InputError for a header that is not UTF-8 or names a column twice.
    """
    start = len(BOM) if data.startswith(BOM) else 0
    while start < len(data):
        stop = data.find(b"\n", start) + 1 or len(data)
        line = data[start:stop].strip(b"\r\n")
        if line:
            return _names(line, delimiter, where), stop
        start = stop
    return None


def _names(line: bytes, delimiter: str, where: str) -> list[str]:
    try:
        names = next(csv.reader([line.decode("utf-8")], delimiter=delimiter))
    except UnicodeDecodeError:
        unreadable("the header is not UTF-8", where, action="save the file as UTF-8")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        unreadable(
            f"the header names {', '.join(map(repr, twice))} twice",
            where,
            action="give each column a name of its own",
        )
    return names


def csv_schema(
    file: DataFile,
    columns: Sequence[str] | None,
    *,
    event_time: str | None,
    types: Mapping[str, Any],
    delimiter: str,
    block_bytes: int,
) -> pa.Schema | None:
    """The columns that are wanted with the types of the first block; None for a file of no bytes."""
    where = str(file.path)
    data = first_lines(file, block_bytes)
    header = split_header(data, delimiter=delimiter, where=where)
    if header is None:
        return None
    names, start = header
    wanted = names if columns is None else [name for name in columns if name in names]
    declared = {name: types[name] for name in wanted if name in types}
    as_text = {event_time: pa.string()} if event_time in wanted else {}
    read = _Reader(names, wanted, {**declared, **as_text}, delimiter, where)
    table = read(data[start:], 0)
    kinds = {each.name: settled(each.type) for each in table.schema}
    if event_time in wanted:
        kinds[event_time] = guess_time_type(table.column(event_time))
    return pa.schema([(name, declared.get(name, kinds[name])) for name in wanted])


class _Reader:
    """Parse lines with known names and types. Raises: InputError with the offset of the row."""

    def __init__(
        self,
        names: Sequence[str],
        wanted: Sequence[str],
        types: Mapping[str, Any],
        delimiter: str,
        where: str,
    ) -> None:
        self.names, self.where = list(names), where
        self._parse = pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=False)
        self._convert = pa_csv.ConvertOptions(
            column_types=dict(types), include_columns=list(wanted), check_utf8=True
        )

    def __call__(self, data: bytes, first: int) -> Any:
        if not data.strip(b"\r\n"):
            return self._nothing()
        try:
            table = pa_csv.read_csv(
                pa.BufferReader(data),
                read_options=pa_csv.ReadOptions(
                    column_names=self.names, use_threads=False, block_size=len(data) + 1
                ),
                parse_options=self._parse,
                convert_options=self._convert,
            )
        except pa.ArrowInvalid as error:
            self._explain(str(error), first)
        return table.combine_chunks().to_batches()[0] if table.num_rows else self._nothing()

    def _nothing(self) -> Any:
        kinds = self._convert.column_types
        names = self._convert.include_columns
        schema = pa.schema([(name, kinds.get(name, pa.null())) for name in names])
        return pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in schema], schema=schema)

    def _explain(self, message: str, first: int) -> None:
        """Say where, in offsets; what is wrong, in the parser's words."""
        row = _ROW.search(message)
        column = _COLUMN.search(message)
        what = message.splitlines()[0]
        for match in (row, column):
            what = what.replace(match.group(0), "") if match else what
        name = self._convert.include_columns[int(column.group(1))] if column else None
        action = "correct the line; line breaks inside quotes are not read"
        if name is not None:
            what = f"column {name!r}: {what}"
            action = f'correct the cell, or set {name} = "utf8" (or a wider type) in [source.types]'
        if "UTF8" in message:
            action = "save the file as UTF-8"
        at = f", offset {first + int(row.group(1)) - 1}" if row else ""
        unreadable(what, self.where + at, action=action)


class CsvLines:
    """See LineFormat. `schema` has the types of all files of the source, UNREADABLE_TIME apart."""

    def __init__(
        self, file: DataFile, schema: pa.Schema, *, event_time: str | None, delimiter: str
    ) -> None:
        self._schema, self._event_time, self._delimiter = schema, event_time, delimiter
        self._where = str(file.path)
        self._read: _Reader | None = None

    def begin(self, data: bytes) -> int | None:
        """The header ends where the first line does."""
        header = split_header(data, delimiter=self._delimiter, where=self._where)
        if header is None:
            return None
        names, start = header
        missing = [name for name in self._schema.names if name not in names]
        if missing:
            unreadable(
                f"no column {missing[0]!r}; there are {', '.join(names)}",
                self._where,
                action="write the file with the columns of the others",
            )
        types = {f.name: f.type for f in self._schema}
        if self._event_time in types:
            types[self._event_time] = pa.string()
        self._read = _Reader(names, self._schema.names, types, self._delimiter, self._where)
        return start

    def parse(self, data: bytes, first: int) -> pa.RecordBatch:
        """See LineFormat."""
        assert self._read is not None
        return with_times(self._read(data, first), self._schema, self._event_time)

    def is_row(self, line: bytes) -> bool:
        """The parser skips lines without any letter."""
        return line.strip(b"\r\n") != b""


def with_times(rows: Any, schema: pa.Schema, event_time: str | None) -> pa.RecordBatch:
    """Rows whose event times are text, with event times of the schema's type instead.

    Law: A4.
    """
    if event_time is None or event_time not in schema.names:
        return rows
    place = schema.get_field_index(event_time)
    kind = schema.field(place).type
    times, bad = convert_times(rows.column(place), kind)
    columns = rows.columns
    columns[place] = times
    return mark_unreadable(columns, schema, event_time, bad)


def mark_unreadable(
    columns: list[Any], schema: pa.Schema, event_time: str, bad: np.ndarray[Any, Any]
) -> pa.RecordBatch:
    """A batch with UNREADABLE_TIME beside an event-time column that is not text. Law: A4."""
    if not pa.types.is_string(schema.field(event_time).type):
        columns = [*columns, pa.array(bad, pa.bool_())]
        schema = schema.append(pa.field(UNREADABLE_TIME, pa.bool_()))
    return pa.RecordBatch.from_arrays(columns, schema=schema)
