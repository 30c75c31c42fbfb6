"""Keep the result as a folder with one Parquet file per epoch: a log of rows, never merged.

A file's name is made of its epoch alone, so a replay finds it there: each epoch is kept exactly
once. A row that is shown again in a later epoch stands in both files; the one with the greater
_epoch counts. With panes the log is that of the panes, which say themselves what each one replaces.
The files of a further window stand in a folder of its name, inside that one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from thund import parquet
from thund import sink as rules
from thund.epoch import LANES, Outbox, Shown
from thund.sink import Record
from thund.stores import Store
from thund_contract.errors import CallerError

_ROWS_FILE = re.compile(r"rows-([0-9]{12})\.parquet")
_LANE_FILE = re.compile(rf"({'|'.join(LANES)})-[0-9]{{12}}\.parquet")


class ParquetSink:
    """A folder of rows-N.parquet, and lane files late-N, invalid-N and unfit-N where they have rows.

    schema is that of an outbox's rows, or that of its panes: rows-N then has these. more: the same
    of further windows, by their names.
    The first window's file is put last, if absent, and carries the record: it is what makes the
    epoch applied.

    Law: E6, K5, M3.
    """

    def __init__(
        self, store: Store, schema: pa.Schema, *, more: Mapping[str, pa.Schema] | None = None
    ) -> None:
        self.name = f"parquet {store.url}"
        self._store = store
        self._schemas: dict[str, pa.Schema] = {"": schema, **(more or {})}

    def record(self) -> Record | None:
        last = max(self._epochs(), default=0)
        if not last:
            return None
        marks = parquet.decode(self._store.get(_file("rows", last))).schema.metadata
        return Record(marks[b"thund_pipeline"].decode(), marks[b"thund_generation"].decode(), last)

    def has_rows(self) -> bool:
        """Whether the folder holds a file but those of lanes, which a death may have left alone."""
        return any(not _LANE_FILE.fullmatch(name) for name in self._store.list(""))

    def apply(self, outbox: Outbox, *, pipeline: str, generation: str) -> bool:
        """Put the files of an epoch, the rows last.

        Law: E6, K5, M3.
        Raises: CallerError for a tombstone, which a log of rows without panes cannot keep.
        """
        own = Record(pipeline, generation, outbox.epoch)
        shown = {name: self._kept(name, each) for name, each in outbox.shown().items()}
        record = self.record()
        if not rules.due(record, name=self.name, rows=False, own=own):
            return False
        files = {
            _file(lane, outbox.epoch): rules.with_epoch(rows, outbox.epoch)
            for lane, rows in outbox.lanes().items()
            if rows.num_rows
        }
        marks = {"thund_pipeline": pipeline, "thund_generation": generation}
        last = shown.pop("").replace_schema_metadata(marks)
        files |= {_file("rows", outbox.epoch, name): rows for name, rows in shown.items()}
        self._store.put_files({name: parquet.encode(table) for name, table in files.items()})
        return self._store.put_if_absent(_file("rows", outbox.epoch), parquet.encode(last))

    def _kept(self, operator: str, shown: Shown) -> pa.Table:
        """What the log keeps of an epoch: panes, or rows without the mark of a tombstone.

        Raises: CallerError for other columns, and for a tombstone.
        """
        schema = self._schemas[operator]
        if "_deleted" not in schema.names:
            assert shown.panes is not None
            rules.require_schema(schema, shown.panes.schema, name=self.name)
            return shown.panes
        rules.require_schema(schema, shown.rows.schema, name=self.name)
        if pc.any(shown.rows.column("_deleted")).as_py():
            raise self._cannot("take a row away")
        return shown.rows.drop_columns(["_deleted"])

    def replace(self, outbox: Outbox, *, pipeline: str, version: int) -> bool:
        raise self._cannot("be replaced in one transaction")

    def reset(self, *, pipeline: str, generation: str) -> None:
        raise self._cannot("be emptied in one transaction")

    def table(self, operator: str = "") -> pa.Table:
        """The rows of all epochs, sorted by _gar_id; panes by their numbers too, in their order."""
        schema = self._schemas[operator]
        shown = pa.schema([field for field in schema if field.name != "_deleted"])
        files = [self._read(_file("rows", epoch, operator)) for epoch in sorted(self._epochs())]
        order = [(name, "ascending") for name in ("_gar_id", "_pane") if name in shown.names]
        return pa.concat_tables([shown.empty_table(), *files]).sort_by(order)

    def lanes(self) -> dict[str, pa.Table]:
        """The lanes of the epochs that are applied; a lane file alone is no part of it."""
        return {
            lane: pa.concat_tables(
                [
                    rules.with_epoch(schema.empty_table(), 0),
                    *(
                        self._read(_file(lane, epoch))
                        for epoch in sorted(self._epochs())
                        if self._store.exists(_file(lane, epoch))
                    ),
                ]
            )
            for lane, schema in LANES.items()
        }

    def close(self) -> None:
        """Nothing is held."""

    def _epochs(self) -> list[int]:
        found = (_ROWS_FILE.fullmatch(name) for name in self._store.list(""))
        return [int(match[1]) for match in found if match]

    def _read(self, name: str) -> pa.Table:
        return parquet.decode(self._store.get(name)).replace_schema_metadata(None)

    def _cannot(self, what: str) -> CallerError:
        return CallerError(
            f"a folder of files per epoch cannot {what}",
            allowed="mode incremental, with an output that has no tombstones",
            where=self.name,
            action="use a new folder, or a sink with transactions such as DuckDB",
            code="append_only",
        )


def _file(kind: str, epoch: int, operator: str = "") -> str:
    return f"{operator and operator + '/'}{kind}-{epoch:012d}.parquet"
