"""Keep the result as a folder with one Parquet file per epoch: a log of rows, never merged.

A file's name is made of its epoch alone, so a replay finds it there: each epoch is kept exactly
once. A row that is shown again in a later epoch stands in both files; the one with the greater
_epoch counts. With panes the log is that of the panes, which say themselves what each one replaces.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from thund import parquet
from thund import sink as rules
from thund.epoch import LANES, Outbox
from thund.sink import Record
from thund.stores import Store
from thund_contract.errors import CallerError

_ROWS_FILE = re.compile(r"rows-([0-9]{12})\.parquet")
_LANE_FILE = re.compile(rf"({'|'.join(LANES)})-[0-9]{{12}}\.parquet")


class ParquetSink:
    """A folder of rows-N.parquet, and lane files late-N, invalid-N and unfit-N where they have rows.

    schema is that of an outbox's rows, or of its panes where panes is true: rows-N then has these.
    The rows' file is put last, if absent, and carries the record: it is what makes the epoch
    applied.

    Law: E6, K5, M3.
    """

    def __init__(self, store: Store, schema: pa.Schema, *, panes: bool = False) -> None:
        self.name = f"parquet {store.url}"
        self._store, self._schema, self._panes = store, schema, panes

    def record(self) -> Record | None:
        last = max(self._epochs(), default=0)
        if not last:
            return None
        marks = parquet.decode(self._store.get(_file("rows", last))).schema.metadata
        return Record(marks[b"thund_pipeline"].decode(), marks[b"thund_generation"].decode(), last)

    def has_rows(self) -> bool:
        """Whether the folder holds anything but lane files, which a death may have left alone."""
        return any(not _LANE_FILE.fullmatch(name) for name in self._store.list(""))

    def apply(self, outbox: Outbox, *, pipeline: str, generation: str) -> bool:
        """Put the files of an epoch, the rows last.

        Law: E6, K5, M3.
        Raises: CallerError for a tombstone, which a log of rows without panes cannot keep.
        """
        own = Record(pipeline, generation, outbox.epoch)
        shown = outbox.panes if self._panes else outbox.rows
        assert shown is not None
        rules.require_schema(self._schema, shown.schema, name=self.name)
        record = self.record()
        if not rules.due(record, name=self.name, rows=False, own=own):
            return False
        if not self._panes:
            if pc.any(shown.column("_deleted")).as_py():
                raise self._cannot("take a row away")
            shown = shown.drop_columns(["_deleted"])
        marks = {"thund_pipeline": pipeline, "thund_generation": generation}
        lanes = {
            _file(lane, outbox.epoch): parquet.encode(rules.with_epoch(rows, outbox.epoch))
            for lane, rows in outbox.lanes().items()
            if rows.num_rows
        }
        self._store.put_files(lanes)
        rows = shown.replace_schema_metadata(marks)
        return self._store.put_if_absent(_file("rows", outbox.epoch), parquet.encode(rows))

    def replace(self, outbox: Outbox, *, pipeline: str, version: int) -> bool:
        raise self._cannot("be replaced in one transaction")

    def reset(self, *, pipeline: str, generation: str) -> None:
        raise self._cannot("be emptied in one transaction")

    def table(self) -> pa.Table:
        """The rows of all epochs, sorted by _gar_id; panes by their numbers too, in their order."""
        shown = pa.schema([field for field in self._schema if field.name != "_deleted"])
        files = [self._read("rows", epoch) for epoch in sorted(self._epochs())]
        order = [(name, "ascending") for name in ("_gar_id", "_pane") if name in shown.names]
        return pa.concat_tables([shown.empty_table(), *files]).sort_by(order)

    def lanes(self) -> dict[str, pa.Table]:
        """The lanes of the epochs that are applied; a lane file alone is no part of it."""
        return {
            lane: pa.concat_tables(
                [
                    rules.with_epoch(schema.empty_table(), 0),
                    *(
                        self._read(lane, epoch)
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

    def _read(self, kind: str, epoch: int) -> pa.Table:
        table = parquet.decode(self._store.get(_file(kind, epoch)))
        return table.replace_schema_metadata(None)

    def _cannot(self, what: str) -> CallerError:
        return CallerError(
            f"a folder of files per epoch cannot {what}",
            allowed="mode incremental, with an output that has no tombstones",
            where=self.name,
            action="use a new folder, or a sink with transactions such as DuckDB",
            code="append_only",
        )


def _file(kind: str, epoch: int) -> str:
    return f"{kind}-{epoch:012d}.parquet"
