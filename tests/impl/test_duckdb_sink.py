"""The DuckDB sink keeps every value exactly, and says clearly what it cannot work with."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import duckdb
import pyarrow as pa
import pytest

from thund.connectors.duckdb_sink import DuckDbSink
from thund.epoch import INVALID_SCHEMA, LATE_SCHEMA, UNFIT_SCHEMA, Outbox
from thund_contract.errors import CallerError, StoreError
from thund_contract.vocabulary import END, NEVER

HEAD = {"_gar_id": pa.binary(16), "_epoch": pa.int64(), "_deleted": pa.bool_()}


def outbox(column, *, epoch=1):
    rows = len(column)
    head = [[b"%016d" % i for i in range(rows)], [epoch] * rows, [False] * rows]
    table = pa.table([*head, column], schema=pa.schema({**HEAD, "x": column.type}))
    lanes = [each.empty_table() for each in (LATE_SCHEMA, INVALID_SCHEMA, UNFIT_SCHEMA)]
    return Outbox(epoch, table, *lanes)


def put(path, offered):
    sink = DuckDbSink(str(path), "t", offered.rows.schema)
    sink.apply(offered, pipeline="p", generation="g")
    found = sink.table()
    sink.close()
    return found


@pytest.mark.parametrize(
    ("column", "sql"),
    [
        (pa.array([0, -(2**52), 2**52, None], pa.timestamp("ms", "UTC")), "TIMESTAMP"),
        (pa.array([0, -1, 2**40, None], pa.timestamp("us", "Europe/Paris")), "TIMESTAMP"),
        (pa.array([0, 2**32, None], pa.timestamp("s")), "TIMESTAMP"),
        (pa.array([0, 1, None], pa.timestamp("ns", "UTC")), "TIMESTAMP_NS"),
        (pa.array([0, -5, None], pa.date32()), "DATE"),
        (pa.array([0, 86400000, None], pa.date64()), "DATE"),
        (pa.array([0, 1, None], pa.time32("ms")), "TIME"),
        (pa.array([0, 1, None], pa.time64("ns")), "TIME_NS"),
        (pa.array([0, -1, None], pa.duration("ns")), "BIGINT"),
        (pa.array([True, False, None]), "BOOLEAN"),
        (pa.array([-128, 127, None], pa.int8()), "TINYINT"),
        (pa.array([-(2**63), 2**63 - 1, None], pa.int64()), "BIGINT"),
        (pa.array([0, 2**64 - 1, None], pa.uint64()), "UBIGINT"),
        (pa.array([0.5, -0.0, float("inf"), None], pa.float16()), "FLOAT"),
        (pa.array([0.1, float("-inf"), None], pa.float32()), "FLOAT"),
        (pa.array([0.1, 5e-324, 1.7e308, None], pa.float64()), "DOUBLE"),
        (pa.array(["", "ä\x00b", None], pa.string()), "VARCHAR"),
        (pa.array(["", "ä", None], pa.large_string()), "VARCHAR"),
        (pa.array([b"", b"\x00\xff", None], pa.binary()), "BLOB"),
        (pa.array([b"abc", b"\x00\xff\x00", None], pa.binary(3)), "BLOB"),
        (pa.array([1, -2, None], pa.decimal128(38, 3)), "DECIMAL(38,3)"),
        (pa.array(["a", "b", "a", None]).dictionary_encode(), "VARCHAR"),
        (pa.array([["b", "a"], [], None], pa.list_(pa.string())), "VARCHAR[]"),
        (pa.array([[1], [None]], pa.list_(pa.date32())), "DATE[]"),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_required_values_come_back_exactly(tmp_path, column, sql):
    found = put(tmp_path / "x.duckdb", outbox(column)).column("x")
    assert found.type == column.type
    as_stored = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    got = found.combine_chunks()
    got = got.dictionary_decode() if pa.types.is_dictionary(column.type) else got
    assert got.equals(as_stored)
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        described = connection.execute("DESCRIBE t").fetchall()
    assert described[2][:2] == ("x", sql)


def test_required_nan_and_signed_zero_come_back(tmp_path):
    found = put(tmp_path / "x.duckdb", outbox(pa.array([float("nan"), -0.0])))
    assert [str(value) for value in found.column("x").to_pylist()] == ["nan", "-0.0"]


def test_required_lanes_keep_their_rows_and_sentinels(tmp_path):
    late = pa.table([["a", "b"], [3, 4], [-5, 6], [NEVER, END]], schema=LATE_SCHEMA)
    invalid = pa.table([["a"], [7], ["nan"], [0]], schema=INVALID_SCHEMA)
    unfit = pa.table([[b"i" * 16], ["n"], ["9" * 40]], schema=UNFIT_SCHEMA)
    rows = outbox(pa.array([1])).rows
    sink = DuckDbSink(str(tmp_path / "x.duckdb"), "t", rows.schema)
    sink.apply(Outbox(1, rows, late, invalid, unfit), pipeline="p", generation="g")
    for name, wanted in (("late", late), ("invalid", invalid), ("unfit", unfit)):
        found = sink.lanes()[name]
        assert found.drop_columns(["_epoch"]).equals(wanted)
        assert found.column("_epoch").to_pylist() == [1] * wanted.num_rows
    sink.close()


def test_required_progress_is_in_the_transaction_of_the_rows(tmp_path):
    """A transaction that fails at its last statement leaves nothing of the first ones."""

    class Failing(DuckDbSink):
        def _set_record(self, record):
            super()._set_record(record)
            raise RuntimeError

    offered = outbox(pa.array([1, 2]))
    sink = Failing(str(tmp_path / "x.duckdb"), "t", offered.rows.schema)
    for act in (
        lambda: sink.apply(offered, pipeline="p", generation="g"),
        lambda: sink.replace(offered, pipeline="p", version=1),
        lambda: sink.reset(pipeline="p", generation="g"),
    ):
        with pytest.raises(RuntimeError):
            act()
    assert sink.record() is None
    assert not sink.has_rows()
    sink.close()


def test_required_two_connections_take_an_epoch_once(tmp_path):
    """Both read the same progress before either writes: the second one looks again."""
    barrier = threading.Barrier(2, timeout=10)

    class Meeting(DuckDbSink):
        met = 0

        def _merge(self, result, rows):
            if self.met < rows.column("_epoch")[0].as_py():
                self.met += 1
                barrier.wait()
            super()._merge(result, rows)

    schema = outbox(pa.array([1])).rows.schema
    sinks = [Meeting(str(tmp_path / "x.duckdb"), "t", schema) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        for number in (1, 2, 3):
            offered = outbox(pa.array([number, 2]), epoch=number)
            applied = pool.map(
                lambda sink, o=offered: sink.apply(o, pipeline="p", generation="g"), sinks
            )
            assert sorted(applied) == [False, True]
            assert sinks[0].record().last == number
            assert sinks[1].table().column("x").to_pylist() == [number, 2]
    for sink in sinks:
        assert sink.met == 3
        sink.close()


def test_required_several_tables_share_a_file(tmp_path):
    path = str(tmp_path / "x.duckdb")
    for table, pipeline in (("a", "p"), ("b", "q")):
        offered = outbox(pa.array([1]))
        sink = DuckDbSink(path, table, offered.rows.schema)
        assert sink.apply(offered, pipeline=pipeline, generation="g")
        sink.close()
    sink = DuckDbSink(path, "A", offered.rows.schema)
    assert sink.record().pipeline == "p"
    sink.close()


# ---- what it cannot work with ----------------------------------------------------------------------


@pytest.mark.parametrize("table", ["", "a b", "a.b", 'a"b', "1a", "a" * 101, "_thund_x", "_Thund"])
def test_required_a_bad_table_name_is_refused(tmp_path, table):
    with pytest.raises(CallerError, match="name of a table") as caught:
        DuckDbSink(str(tmp_path / "x.duckdb"), table, outbox(pa.array([1])).rows.schema)
    assert caught.value.code == "bad_table_name"


@pytest.mark.parametrize(
    "kind",
    [pa.decimal256(60, 2), pa.struct({"a": pa.int64()}), pa.null(), pa.month_day_nano_interval()],
)
def test_required_a_type_without_a_place_is_refused(tmp_path, kind):
    with pytest.raises(CallerError, match="column x has the type") as caught:
        DuckDbSink(str(tmp_path / "x.duckdb"), "t", pa.schema({**HEAD, "x": kind}))
    assert caught.value.code == "column_type"


def test_required_names_that_differ_in_case_only_are_refused(tmp_path):
    with pytest.raises(CallerError, match="several columns are called x"):
        DuckDbSink(
            str(tmp_path / "x.duckdb"), "t", pa.schema({**HEAD, "x": pa.int8(), "X": pa.int8()})
        )


@pytest.mark.parametrize("table", ["t", "t_late"])
def test_required_a_table_with_other_columns_is_refused(tmp_path, table):
    path = str(tmp_path / "x.duckdb")
    with duckdb.connect(path) as connection:
        connection.execute(f"CREATE TABLE {table} (mine INTEGER)")
    with pytest.raises(CallerError, match=f"table {table} has the columns mine INTEGER") as caught:
        DuckDbSink(path, "t", outbox(pa.array([1])).rows.schema)
    assert caught.value.code == "table_schema"
    with duckdb.connect(path) as connection:
        assert connection.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [(table,)]


def test_required_a_locked_file_says_so(tmp_path):
    path = str(tmp_path / "x.duckdb")
    holder = (
        f"import duckdb, sys\nheld = duckdb.connect({path!r})\nprint('held', flush=True)\n"
        "sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holder], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(StoreError, match="lock on file") as caught:
            DuckDbSink(path, "t", outbox(pa.array([1])).rows.schema)
        process.communicate(b"")
    assert caught.value.code == "sink_locked"
    assert "close the other program" in caught.value.action
    DuckDbSink(path, "t", outbox(pa.array([1])).rows.schema).close()


def test_required_a_path_that_cannot_be_a_database_says_so(tmp_path):
    (tmp_path / "text").write_text("not a database" * 1000)
    for path in (tmp_path, tmp_path / "text", tmp_path / "none" / "x", "/sys/kernel/x.duckdb"):
        with pytest.raises(StoreError, match="DuckDB refused") as caught:
            DuckDbSink(str(path), "t", outbox(pa.array([1])).rows.schema)
        assert caught.value.code == "sink"
        assert str(path) in caught.value.where
