"""A folder with a file per epoch keeps each epoch once, however often it is offered."""

from __future__ import annotations

import pyarrow as pa
import pytest

from thund.connectors.parquet_sink import ParquetSink
from thund.epoch import INVALID_SCHEMA, LATE_SCHEMA, UNFIT_SCHEMA, Outbox
from thund.sink import Record
from thund.stores import open_store
from thund_contract.errors import CallerError, StoreError

ROWS = pa.schema(
    {"_gar_id": pa.binary(16), "_epoch": pa.int64(), "_deleted": pa.bool_(), "n": pa.int64()}
)
OWN = {"pipeline": "p", "generation": "g"}


def outbox(epoch, rows=2, *, deleted=False):
    ids = [b"%08d%08d" % (epoch, i) for i in range(rows)]
    return Outbox(
        epoch,
        pa.table([ids, [epoch] * rows, [deleted] * rows, list(range(rows))], schema=ROWS),
        pa.table([["a"], [epoch], [0], [5]], schema=LATE_SCHEMA),
        INVALID_SCHEMA.empty_table(),
        UNFIT_SCHEMA.empty_table(),
    )


def test_required_each_epoch_is_kept_once(tmp_path):
    store = open_store(str(tmp_path))
    for _ in range(2):
        sink = ParquetSink(store, ROWS)
        for number in (1, 2):
            sink.apply(outbox(number), **OWN)
    assert not sink.apply(outbox(2, 9), **OWN)
    assert sink.record() == Record("p", "g", 2)
    assert sink.table().column("_epoch").to_pylist() == [1, 1, 2, 2]
    assert sink.lanes()["late"].column("offset").to_pylist() == [1, 2]
    assert [path.name for path in sorted(tmp_path.glob("rows-*"))] == [
        "rows-000000000001.parquet",
        "rows-000000000002.parquet",
    ]


def test_required_a_death_between_its_files_is_no_applied_epoch(tmp_path):
    """The lane's file is there, the rows' file is not: the epoch is offered again."""
    store = open_store(str(tmp_path))
    sink = ParquetSink(store, ROWS)
    sink.apply(outbox(1), **OWN)
    store.delete("rows-000000000001.parquet")
    assert sink.record() is None
    assert not sink.has_rows()
    assert sink.lanes()["late"].num_rows == 0
    assert sink.apply(outbox(1), **OWN)
    assert sink.lanes()["late"].num_rows == 1


def test_required_a_folder_with_other_files_has_rows(tmp_path):
    (tmp_path / "mine.parquet").write_bytes(b"")
    assert ParquetSink(open_store(str(tmp_path)), ROWS).has_rows()


def test_required_gaps_strangers_and_tombstones_are_refused(tmp_path):
    sink = ParquetSink(open_store(str(tmp_path)), ROWS)
    with pytest.raises(StoreError, match="outbox 2 was offered"):
        sink.apply(outbox(2), **OWN)
    with pytest.raises(CallerError, match="cannot take a row away"):
        sink.apply(outbox(1, deleted=True), **OWN)
    sink.apply(outbox(1), **OWN)
    with pytest.raises(CallerError, match="another history"):
        sink.apply(outbox(1), pipeline="p", generation="h")
    for act in (
        lambda: sink.replace(outbox(2), pipeline="p", version=2),
        lambda: sink.reset(**OWN),
    ):
        with pytest.raises(CallerError, match="in one transaction"):
            act()
