"""JSON lines as rows: one object a line, types held from the first block on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pa_json

from thund.connectors.blocks import unreadable
from thund.connectors.catalog import DataFile
from thund.connectors.columns import convert_times, settled
from thund.connectors.csv import mark_unreadable
from thund.connectors.text import first_lines, row_ends

_KINDS = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}


def jsonl_schema(
    file: DataFile,
    columns: Sequence[str] | None,
    *,
    event_time: str | None,
    types: Mapping[str, Any],
    block_bytes: int,
) -> pa.Schema | None:
    """The columns that are wanted with the types of the first block; None for a file of no bytes.

    A column that no object there has is null: a later block, or another file, may have it.
    """
    where = str(file.path)
    data = first_lines(file, block_bytes)
    if not data.strip():
        return None
    try:
        data.decode("utf-8")
        found = pa_json.read_json(pa.BufferReader(data), read_options=_whole(data)).schema
        kinds = {each.name: settled(each.type) for each in found}
    except (pa.ArrowInvalid, UnicodeDecodeError):
        kinds = _guess(list(objects(data, 0, where)), event_time, where, declared=types)
    if event_time in kinds and pa.types.is_timestamp(kinds[event_time]):
        kinds[event_time] = pa.string()
    names = list(kinds) if columns is None else columns
    return pa.schema([(n, types.get(n, kinds.get(n, pa.null()))) for n in names])


def _whole(data: bytes) -> Any:
    return pa_json.ReadOptions(use_threads=False, block_size=len(data) + 1)


def objects(data: bytes, first: int, where: str) -> Iterator[dict[str, Any]]:
    """The objects, one a line that is not blank.

    Raises: InputError with the offset of the first line that is none.
    """
    offset = first
    for line in data.split(b"\n"):
        if not line.strip():
            continue
        at = f"{where}, offset {offset}"
        try:
            value = json.loads(line.decode("utf-8"))
        except UnicodeDecodeError:
            unreadable("the line is not UTF-8", at, action="save the file as UTF-8")
        except (ValueError, RecursionError) as error:
            unreadable(f"the line is not JSON: {error}", at, action="correct the line")
        if not isinstance(value, dict):
            unreadable(
                f"the line is a JSON {type(value).__name__}, not an object",
                at,
                action="write one object a line",
            )
        yield value
        offset += 1


def _guess(
    rows: list[dict[str, Any]], event_time: str | None, where: str, *, declared: Mapping[str, Any]
) -> dict[str, Any]:
    """Types by value; the event-time column goes by what most of its values are (law A4)."""
    kinds: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        seen = [type(row[name]) for row in rows if row.get(name) is not None]
        counts = {kind: seen.count(kind) for kind in dict.fromkeys(seen)}
        if name in declared:
            kinds[name] = declared[name]
        elif set(counts) == {int, float}:
            kinds[name] = pa.float64()
        elif not counts:
            kinds[name] = pa.null()
        elif len(counts) == 1 or name == event_time:
            most = max(counts, key=lambda kind: counts[kind])
            kinds[name] = _KINDS.get(most, pa.null())
        else:
            unreadable(
                f"column {name!r} holds {' and '.join(kind.__name__ for kind in counts)}",
                where,
                action="write one type, or set the column's type in [source.types]",
            )
    return kinds


class JsonLines:
    """See LineFormat. `schema` has the types of all files of the source, UNREADABLE_TIME apart.

    Cost: pyarrow's parser; a block that it refuses is read again line by line, about 5 us a row.
    """

    def __init__(self, file: DataFile, schema: pa.Schema, *, event_time: str | None) -> None:
        self._schema, self._event_time = schema, event_time
        self._where = str(file.path)
        self._options = pa_json.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="ignore", newlines_in_values=False
        )

    def begin(self, data: bytes) -> int | None:
        """There is no header."""
        return 0 if data else None

    def is_row(self, line: bytes) -> bool:
        """A blank line is none."""
        return line.strip() != b""

    def parse(self, data: bytes, first: int) -> pa.RecordBatch:
        """See LineFormat."""
        rows = self._quickly(data)
        if rows is None or rows.num_rows != len(row_ends(data, self.is_row)):
            return self._carefully(data, first)
        bad = np.zeros(rows.num_rows, np.bool_)
        return self._marked(rows.columns, bad)

    def _quickly(self, data: bytes) -> Any:
        try:
            data.decode("utf-8")
            table = pa_json.read_json(
                pa.BufferReader(data), read_options=_whole(data), parse_options=self._options
            )
        except (pa.ArrowException, UnicodeDecodeError):
            return None
        batches = table.combine_chunks().to_batches()
        return batches[0].select(self._schema.names) if batches else None

    def _carefully(self, data: bytes, first: int) -> pa.RecordBatch:
        rows = list(objects(data, first, self._where))
        columns, bad = [], np.zeros(len(rows), np.bool_)
        for each in self._schema:
            values = [row.get(each.name) for row in rows]
            if each.name == self._event_time:
                times, bad = _times(values, each.type)
                columns.append(times)
            else:
                columns.append(self._column(each, values, first))
        return self._marked(columns, bad)

    def _column(self, each: Any, values: list[Any], first: int) -> pa.Array:
        try:
            return _array(values, each.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            place = next(i for i, value in enumerate(values) if not _fits(value, each.type))
            unreadable(
                f"column {each.name!r}: {json.dumps(values[place])[:80]} is no {each.type}",
                f"{self._where}, offset {first + place}",
                action=f"correct the value, or set {each.name} in [source.types]",
            )

    def _marked(self, columns: list[Any], bad: Any) -> pa.RecordBatch:
        if self._event_time is None or self._event_time not in self._schema.names:
            return pa.RecordBatch.from_arrays(columns, schema=self._schema)
        return mark_unreadable(columns, self._schema, self._event_time, bad)


def _array(values: list[Any], kind: Any) -> pa.Array:
    texts = all(value is None or isinstance(value, str) for value in values)
    if texts and not pa.types.is_string(kind):
        return pa.array(values, pa.string()).cast(kind)
    if any(isinstance(value, bool) for value in values) and not pa.types.is_boolean(kind):
        raise TypeError
    return pa.array(values, kind)


def _fits(value: Any, kind: Any) -> bool:
    try:
        _array([value], kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return True


def _times(values: list[Any], kind: Any) -> tuple[pa.Array, Any]:
    """Event times of any JSON kind as cells, then as `kind`: a number must stay one."""
    if pa.types.is_string(kind):
        texts = [v if v is None or isinstance(v, str) else json.dumps(v) for v in values]
        return pa.array(texts, pa.string()), np.zeros(len(values), np.bool_)
    wanted = str if pa.types.is_temporal(kind) else int | float
    cells = [
        None if v is None else str(v) if isinstance(v, wanted) and not isinstance(v, bool) else "?"
        for v in values
    ]
    return convert_times(pa.array(cells, pa.string()), kind)
