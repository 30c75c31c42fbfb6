"""A source made of files: partitions take turns in S5's order, and what was read is checked again.

What a file holds is the business of the formats beside this file.
"""

from __future__ import annotations

import difflib
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thund.batch import UNREADABLE_TIME, Delivery
from thund.connectors.blocks import FileRows, lost
from thund.connectors.catalog import WHOLE, DataFile, find_logs
from thund.connectors.columns import (
    TYPES,
    check_order_type,
    order_keys,
    plain_type,
    type_name,
    unify,
    widen,
)
from thund.connectors.csv import CsvLines
from thund.connectors.gather import Gather
from thund.connectors.jsonl import JsonLines
from thund.connectors.logs import DividedLog, FileLog, Log, PartitionOfLog, Stretch
from thund.connectors.parquet import ParquetRows
from thund.connectors.probe import one_format, refuse_column, schema_of
from thund.connectors.text import TextRows
from thund.definition import FilesSpec, Pipeline
from thund.order import merge
from thund.prepare import source_columns, source_time
from thund.source import READ_ROWS
from thund_contract.errors import CallerError, InputError
from thund_contract.vocabulary import NONE_BEFORE

MEMORY_BYTES = 1 << 26
"""About how much text is in memory, shared by all files."""
BUFFERED_ROWS = 1 << 18
"""About how many rows wait for their turn, shared by all partitions."""


def open_files(pipeline: Pipeline) -> FileSource:
    """The source of a pipeline over files, with the columns that it uses.

    Raises: InputError, CallerError for files that do not fit the pipeline.
    """
    spec = pipeline.source
    assert isinstance(spec, FilesSpec)
    config = pipeline.config()
    used = [*source_columns(config), spec.order_by, spec.partition_column]
    columns = tuple(dict.fromkeys(name for name in used if name is not None))
    return FileSource(
        spec,
        event_time=source_time(config),
        columns=columns,
        bounded=bool(pipeline.trigger.once),
    )


class FileSource:
    """Partitions of rows in files; see Source, which says what each method is for.

    It is paused by not calling `read`, and nothing is shed. Methods may be called from two threads.

    Law: S1, S4, S5, C4.
    """

    schema: pa.Schema
    bounded: bool

    def __init__(
        self,
        spec: FilesSpec,
        *,
        event_time: str | None = None,
        columns: Sequence[str] | None = None,
        bounded: bool = True,
    ) -> None:
        self._spec, self._event_time, self._columns = spec, event_time, columns
        self.bounded = bounded
        self._lock = threading.RLock()
        self._open({})

    # ---- what there is -----------------------------------------------------------------------------

    def _open(self, held: Mapping[str, Any]) -> None:
        """Look at every file; `held` has types that an earlier run inferred and kept to."""
        found = find_logs(self._spec)
        files = [each for log in found.values() for each in log]
        self._format = one_format(files, self._spec)
        self._types = {**held, **{name: TYPES[kind] for name, kind in self._spec.types}}
        self._check_types()
        count = len(files)
        self._block_bytes = max(1 << 16, min(1 << 20, MEMORY_BYTES // count))
        self._width = max(1024, min(READ_ROWS, BUFFERED_ROWS // len(found)))
        schemas = {each.label: self._schema_of(each) for each in files}
        self._check_empty(found, schemas)
        self._rows_schema = unify(
            {
                label: (schema, self._format != "parquet")
                for label, schema in schemas.items()
                if schema is not None
            }
        )
        self._check_columns(files[0])
        self.schema = self._rows_schema
        time = self._event_time
        is_text = time is None or pa.types.is_string(self.schema.field(time).type)
        if self._format != "parquet" and not is_text:
            self.schema = self.schema.append(pa.field(UNREADABLE_TIME, pa.bool_()))
        self._files = {
            name: FileLog(name, [self._rows_of(each) for each in log], self._spec.path)
            for name, log in found.items()
        }
        column = self._spec.partition_column
        self._divided = None if column is None else DividedLog(self._files[WHOLE], column)
        self._logs: dict[str, Log] = {} if self._divided else dict(self._files)
        self._known: tuple[str, ...] | None = None
        self._activate(())

    def _check_types(self) -> None:
        if self._spec.types and self._format == "parquet":
            raise CallerError(
                "source.types: parquet files have their own types",
                allowed="types for CSV and JSON lines",
                where=self._spec.path,
                action="remove [source.types]",
            )
        for name, _ in self._spec.types:
            if self._columns is not None and name not in self._columns:
                guess = difflib.get_close_matches(name, self._columns, 1)
                raise CallerError(
                    f"source.types.{name}: the pipeline uses no such column",
                    allowed=", ".join(self._columns),
                    where=self._spec.path,
                    action=f"did you mean {guess[0]!r}?" if guess else "remove the line",
                )

    def _schema_of(self, file: DataFile) -> pa.Schema | None:
        return schema_of(
            file,
            self._columns,
            event_time=self._event_time,
            types=self._types,
            delimiter=self._spec.delimiter,
            block_bytes=self._block_bytes,
        )

    def _check_empty(
        self,
        found: Mapping[str, Sequence[DataFile]],
        schemas: Mapping[str, pa.Schema | None],
    ) -> None:
        for log in found.values():
            if all(schemas[each.label] is None for each in log):
                raise InputError(
                    "the file is empty: not even a first line says what its columns are",
                    allowed="a header without rows, or one object; an empty file beside others of "
                    "its partition",
                    where=str(log[0].path),
                    action="remove the file, or write its header",
                    code="empty_file",
                )

    def _check_columns(self, first: DataFile) -> None:
        order = self._spec.order_by
        for name in (self._event_time, order, self._spec.partition_column):
            if name is not None and name not in self._rows_schema.names:
                refuse_column(name, first, delimiter=self._spec.delimiter)
        if order is not None:
            check_order_type(order, self._rows_schema.field(order).type)

    def _rows_of(self, file: DataFile) -> FileRows:
        if file.format == "parquet":
            return ParquetRows(file, self._rows_schema, batch_rows=self._width)
        lines: CsvLines | JsonLines
        if file.format == "csv":
            lines = CsvLines(
                file,
                self._rows_schema,
                event_time=self._event_time,
                delimiter=self._spec.delimiter,
            )
        else:
            lines = JsonLines(file, self._rows_schema, event_time=self._event_time)
        return TextRows(file, lines, block_bytes=self._block_bytes, bounded=self.bounded)

    def partitions(self) -> tuple[str, ...]:
        """See Source; it looks for new files, and in a partition column for new values."""
        with self._lock:
            if self._known is not None:
                self._look_for_files()
            if self._divided is not None:
                for name in self._divided.partitions():
                    self._logs.setdefault(name, PartitionOfLog(self._divided, name))
            self._known = tuple(sorted(self._logs))
            return self._known

    def _look_for_files(self) -> bool:
        """Take new files in; whether there were any. Law: S4. Raises: InputError for lost ones."""
        found = find_logs(self._spec)
        for name in self._files:
            if name not in found:
                lost(f"the files of partition {name!r} are gone", self._spec.path)
        grown = False
        for name, files in found.items():
            log = self._files.get(name)
            old = [] if log is None else [each.file.label for each in log.files]
            if [each.label for each in files] == old:
                continue
            grown = True
            rows = {each.label: self._new_rows(each) for each in files if each.label not in old}
            if log is None:
                self._files[name] = FileLog(name, list(rows.values()), self._spec.path)
                self._logs[name] = self._files[name]
            else:
                log.add_files([each.label for each in files], rows)
        return grown

    def _new_rows(self, file: DataFile) -> FileRows:
        schema = self._schema_of(file)
        for each in schema or ():
            kind = self._rows_schema.field(each.name).type
            loose = self._format != "parquet"
            if widen(kind, plain_type(each.type), loose=loose) != kind:
                raise InputError(
                    f"column {each.name!r} is {each.type} in this new file, and {kind} in the others",
                    allowed="the type of the files that were there first, or a smaller one",
                    where=str(file.path),
                    action="write the file with the type of the others",
                    code="type_differs",
                )
        return self._rows_of(file)

    # ---- reading -----------------------------------------------------------------------------------

    def read(
        self, after: Mapping[str, int], credit: Mapping[str, int], max_rows: int
    ) -> Delivery | None:
        """See Source.

        Rows come by (offset div chunk_rows, partition, offset). With order_by, the next row is that
        of the partition whose next row has the least (column, partition): heads are merged, a
        partition's own order stays. A null or NaN there comes before all else.

        Law: S1, S4, S5, C2. Cost: about 10 ns a row and 5 ns a value beyond parsing.
        """
        assert max_rows > 0
        with self._lock:
            self._go_to(after)
            delivery = self._read(credit, min(max_rows, READ_ROWS))
            if delivery is None and self._look_for_files():
                delivery = self._read(credit, min(max_rows, READ_ROWS))
            return delivery

    def _activate(self, names: tuple[str, ...]) -> None:
        self._active = names
        self._keys = np.zeros((len(names), self._width if names else 0), np.int64)
        self._heads = np.zeros(len(names), np.int64)
        self._stops = np.zeros(len(names), np.int64)
        self._after = [NONE_BEFORE] * len(names)
        self._waiting: list[Stretch | None] = [None] * len(names)

    def _go_to(self, after: Mapping[str, int]) -> None:
        """Stand where the caller says; nothing to do where this is where the last read ended."""
        names = tuple(sorted(after))
        if names != self._active:
            for name in names:
                if name not in self._logs and name not in self.partitions():
                    lost(f"there is no partition {name!r}", self._spec.path)
            self._activate(names)
        for place, name in enumerate(names):
            if self._after[place] != after[name]:
                self._after[place] = after[name]
                self._heads[place] = self._stops[place] = 0

    def _read(self, credit: Mapping[str, int], limit: int) -> Delivery | None:
        left = np.array([credit.get(name, 0) for name in self._active], np.int64)
        picked, origin = np.empty(limit, np.int64), np.empty(limit, np.int64)
        ended: set[int] = set()
        gather = Gather(len(self._active))
        while gather.num_rows < limit:
            self._fill(ended, gather)
            if len(ended) == len(self._active):
                break
            before = self._heads.copy()
            room = limit - gather.num_rows
            count = int(
                merge(self._keys, self._heads, self._stops, left, picked[:room], origin[:room])
            )
            if count == 0:
                break
            gather.add(picked[:count], origin[:count], before, self._heads, self._waiting)
        if gather.num_rows:
            for place in np.flatnonzero(self._heads).tolist():
                stretch = self._waiting[place]
                assert stretch is not None
                self._after[place] = int(stretch.offsets[self._heads[place] - 1])
            return gather.delivery(self._active)
        return None if len(ended) == len(self._active) else self._nothing()

    def _fill(self, ended: set[int], gather: Gather) -> None:
        """Give each partition that has run out its next rows, or find that it ended."""
        for place in np.flatnonzero(self._heads == self._stops).tolist():
            if place in ended:
                continue
            stretch = self._waiting[place]
            if stretch is not None and self._stops[place]:
                self._after[place] = int(stretch.offsets[self._stops[place] - 1])
            after = self._after[place]
            stretch = self._logs[self._active[place]].after(after)
            self._heads[place] = self._stops[place] = 0
            if stretch is None:
                ended.add(place)
                continue
            rows = min(len(stretch.offsets), self._width)
            stretch = Stretch(stretch.rows.slice(0, rows), stretch.offsets[:rows], after)
            self._waiting[place] = stretch
            self._keys[place, :rows] = self._order(stretch)
            self._stops[place] = rows
            gather.refilled(place)

    def _order(self, stretch: Stretch) -> NDArray[np.int64]:
        if self._spec.order_by is None:
            return stretch.offsets // self._spec.chunk_rows
        return order_keys(stretch.rows.column(self._spec.order_by))

    def _nothing(self) -> Delivery:
        none = np.empty(0, np.int64)
        rows = pa.RecordBatch.from_pylist([], schema=self.schema)
        return Delivery(rows, self._active, none.astype(np.int32), none, none)

    def read_rows(self, partition: str, first: int, last: int) -> pa.RecordBatch:
        """See Source."""
        with self._lock:
            where = f"{self._spec.path}, partition {partition}, offsets {first} to {last}"
            if partition not in self._logs and partition not in self.partitions():
                lost("there is no such partition", where)
            log = self._logs[partition]
            parts: list[pa.RecordBatch] = []
            stretch = log.at(first)
            if stretch is None or stretch.offsets[0] != first:
                lost(f"offset {first} is no row", where)
            while stretch is not None and stretch.offsets[-1] < last:
                parts.append(stretch.rows)
                stretch = log.after(int(stretch.offsets[-1]))
            rows = 0 if stretch is None else int(np.searchsorted(stretch.offsets, last)) + 1
            if stretch is None or stretch.offsets[rows - 1] != last:
                lost(f"offset {last} is no row", where)
            parts.append(stretch.rows.slice(0, rows))
            return pa.concat_batches(parts)  # type: ignore[attr-defined]

    # ---- what was read -----------------------------------------------------------------------------

    def fingerprint(self, positions: Mapping[str, int] | None = None) -> dict[str, object]:
        """See Source: per log the files read so far, each with size, rows and checksum.

        Law: K3, S4. Cost: a stat a file; a whole-file checksum once for parquet and compressed text.
        """
        with self._lock:
            if positions is None:
                positions = dict(zip(self._active, self._after, strict=True))
            rows = {name: last + 1 for name, last in positions.items()}
            if self._divided is not None:
                rows = {WHOLE: max(rows.values(), default=0)}
            inferred = {each.name: type_name(each.type) for each in self._rows_schema}
            return {
                "kind": "files",
                "types": {n: k for n, k in inferred.items() if k and self._format != "parquet"},
                "logs": {name: self._files[name].marks(n) for name, n in sorted(rows.items())},
            }

    def verify(self, fingerprint: Mapping[str, object]) -> None:
        """See Source. Types that were inferred then are held to now.

        Law: S4. Cost: a stat a file; a checksum of what was read where size or time changed.
        """
        seen: Any = fingerprint
        with self._lock:
            if seen.get("kind") != "files":
                lost(f"what was read came from a source of kind {seen.get('kind')!r}", "[source]")
            self._open({name: TYPES[kind] for name, kind in seen["types"].items()})
            for name, marks in seen["logs"].items():
                log = self._files.get(name)
                if log is None and marks:
                    lost(f"the files of partition {name!r} are gone", self._spec.path)
                if log is not None:
                    log.verify(marks)

    def commit(self, positions: Mapping[str, int]) -> None:
        """Files keep their rows: there is nothing to tell them. Law: K1."""
