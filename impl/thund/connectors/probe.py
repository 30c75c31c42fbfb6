"""A first look at a file: which of the wanted columns it has, and of what types."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import pyarrow as pa

from thund.connectors.catalog import DataFile
from thund.connectors.csv import csv_schema
from thund.connectors.jsonl import jsonl_schema
from thund.connectors.parquet import parquet_schema
from thund.definition import FilesSpec
from thund_contract.errors import CallerError, InputError


def schema_of(
    file: DataFile,
    columns: Sequence[str] | None,
    *,
    event_time: str | None,
    types: Mapping[str, Any],
    delimiter: str,
    block_bytes: int,
) -> pa.Schema | None:
    """The wanted columns (None: all) and their types, declared or inferred from the first block.

    None for a file of text without any.

    Raises: InputError for a file that cannot be read or lacks a column.
    """
    schema = _look(
        file,
        columns,
        event_time=event_time,
        types=types,
        delimiter=delimiter,
        block_bytes=block_bytes,
    )
    if schema is not None:
        for name in columns or ():
            if name not in schema.names:
                refuse_column(name, file, delimiter=delimiter)
    return schema


def _look(
    file: DataFile,
    columns: Sequence[str] | None,
    *,
    event_time: str | None,
    types: Mapping[str, Any],
    delimiter: str,
    block_bytes: int,
) -> pa.Schema | None:
    if file.format == "parquet":
        return parquet_schema(file, columns)
    if file.format == "csv":
        return csv_schema(
            file,
            columns,
            event_time=event_time,
            types=types,
            delimiter=delimiter,
            block_bytes=block_bytes,
        )
    return jsonl_schema(file, columns, event_time=event_time, types=types, block_bytes=block_bytes)


def refuse_column(name: str, file: DataFile, *, delimiter: str) -> NoReturn:
    """Say which columns there are instead.

    Raises: InputError, always.
    """
    schema = _look(file, None, event_time=None, types={}, delimiter=delimiter, block_bytes=1 << 16)
    names = [] if schema is None else list(schema.names)
    guess = difflib.get_close_matches(name, names, 1)
    raise InputError(
        f"no column {name!r}; there are {', '.join(names)}",
        allowed="the columns that the pipeline names, in each file",
        where=str(file.path),
        action=f"did you mean {guess[0]!r}?" if guess else "name a column of the file",
        code="missing_column",
    )


def one_format(files: Sequence[DataFile], spec: FilesSpec) -> str:
    """The format of all files. Raises: CallerError where there are several."""
    formats = {each.format: each.label for each in files}
    if len(formats) > 1:
        raise CallerError(
            f"files of several formats: {', '.join(formats.values())}",
            allowed="one format for a source",
            where=spec.path,
            action='choose one, such as format = "csv" in [source]',
        )
    return next(iter(formats))
