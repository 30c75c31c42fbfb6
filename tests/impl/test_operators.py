"""Several windows of one pipeline: each has the result that it would have alone, whatever the sink."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import thund
from thund.builder import (
    Builder,
    calendar,
    count,
    duckdb,
    files,
    hopping,
    last,
    memory,
    parquet,
    pipeline,
    session,
    sum_,
    tumbling,
)
from thund.connectors.duckdb_sink import DuckDbSink
from thund.connectors.parquet_sink import ParquetSink
from thund.definition import Pipeline
from thund.epoch import INVALID_SCHEMA, LATE_SCHEMA, UNFIT_SCHEMA, Outbox, Shown
from thund.launch import rebuild_sink
from thund.manifest import differences, plain
from thund.operators import Operators, operator_configs
from thund.prepare import source_columns
from thund.sink import MemorySink, Sink
from thund.stores import open_store
from thund_conformance.audit import audit_history, open_place
from thund_contract.errors import CallerError
from thund_contract.vocabulary import Aggregate, Config, Operator, WindowSpec

MINUTE = 60_000
TIMES = [0, 1, 7, 3, 12, 4, 31, 33, 29, 60, 61, 75, 58, 90, 140]
SUM = {"rows": count(), "total": sum_("v")}
WINDOWS = {
    "hops": {"key": (), "window": hopping("30m", slide="10m"), "aggregates": SUM},
    "visits": {"key": ("k",), "window": session("10m"), "aggregates": {"final": last("w")}},
    "hours": {"key": ("j", "k"), "window": calendar("hour", zone="UTC"), "aggregates": SUM},
}
OUTPUTS = {"hops": "complete", "visits": "update", "hours": "append"}


def source(folder: Path) -> Path:
    """Rows of two keys, one of them late; k, j, v and w."""
    (folder / "rows").mkdir(exist_ok=True)
    n = len(TIMES)
    columns = {
        "t": pa.array([t * MINUTE for t in TIMES], pa.int64()),
        "k": list("xyxxyxxyxyxxyyx"),
        "j": [i % 2 for i in range(n)],
        "v": [2**62 if t in (61, 75) else t for t in TIMES],
        "w": list(range(n)),
    }
    pq.write_table(pa.table(columns), folder / "rows" / "a.parquet")
    return folder / "rows"


def begun(folder: Path) -> Builder:
    return pipeline("p").source(files(source(folder))).watermark("t", delay="5m")


def several(folder: Path) -> Builder:
    """A tumbling window, and the three further ones."""
    steps = begun(folder).key("k").tumbling("20m").aggregate(**SUM)
    for name, window in WINDOWS.items():
        steps = steps.also(name, output=OUTPUTS[name], **window)
    return steps.trigger(rows=4, once=True, drain=True)


def alone(folder: Path, name: str) -> list[dict[str, object]]:
    """The result of one of these windows in a pipeline of its own."""
    kinds = {"": {"key": ("k",), "window": tumbling("20m"), "aggregates": SUM}, **WINDOWS}
    one = kinds[name]
    steps = begun(folder).key(*one["key"])
    steps = Builder({**steps.raw, "window": dict(one["window"].raw)}, (*steps.steps, "window"))
    built = steps.aggregate(**one["aggregates"]).sink(memory()).trigger(drain=True).build()
    return shown(thund.run(built).table)


def shown(table: pa.Table | None) -> list[dict[str, object]]:
    assert table is not None
    rows = table.drop_columns(["_gar_id", "_epoch"]).to_pylist()
    return sorted(rows, key=repr)


def ids(table: pa.Table) -> set[bytes]:
    return set(table.column("_gar_id").to_pylist())


# ---- one answer ------------------------------------------------------------------------------------


@pytest.mark.law("E5", "R2", "T2")
@pytest.mark.parametrize("mode", ["recompute", "incremental"])
def test_required_each_window_shows_what_it_shows_alone(tmp_path: Path, mode: str) -> None:
    steps = several(tmp_path).sink(memory())
    built = steps if mode == "recompute" else steps.incremental(tmp_path / "state")
    ran = thund.run(built.build())
    tables = {"": ran.table, **ran.more}
    assert ran.mode == mode
    assert ran.progress.late == 2
    for name, table in tables.items():
        assert shown(table) == alone(tmp_path, name), name
    found = [ids(table) for table in tables.values()]
    assert len(set().union(*found)) == sum(map(len, found))


@pytest.mark.law("G4", "A6")
def test_required_what_does_not_fit_is_in_one_lane_by_id(tmp_path: Path) -> None:
    """The rows at 61 and 75 have 2**62 each; a key of the hours has one of them."""
    ran = thund.run(several(tmp_path).sink(memory()).build())
    lost = ran.lanes["unfit"].to_pylist()
    assert {(row["aggregate"], row["value"]) for row in lost} <= {
        ("total", str(2**63 + n)) for n in (0, 60, 118)
    }
    nulls = {}
    for name, table in (("", ran.table), ("hops", ran.more["hops"]), ("hours", ran.more["hours"])):
        assert table is not None
        nulls[name] = ids(table.filter(table.column("total").is_null()))
    assert {name: len(found) for name, found in nulls.items()} == {"": 1, "hops": 2, "hours": 0}
    assert {row["_gar_id"] for row in lost} == nulls[""] | nulls["hops"]


@pytest.mark.law("K1", "K5", "T7")
def test_required_a_folder_per_window_and_one_history(tmp_path: Path) -> None:
    steps = several(tmp_path).sink(memory()).incremental(tmp_path / "state")
    thund.run(steps.build())
    kept = {path.name.rpartition("-")[0] for path in (tmp_path / "state/epoch=2").iterdir()}
    further = ("hops", "visits", "hours")
    assert kept - {""} == {
        "operator-windows", "outbox-rows", "operator-results-hops", "operator-results-unfit-hops",
        *(f"operator-windows-{name}" for name in further),
        *(f"outbox-rows-{name}" for name in further),
    } | ({"outbox-late"} & kept)  # fmt: skip
    found = audit_history(*open_place(str(tmp_path / "state")))
    assert (found.same, found.rows) == (True, len(TIMES)), found.differences


@pytest.mark.law("R1", "K5")
def test_required_a_table_for_each_window_in_a_database(tmp_path: Path) -> None:
    """Two runs over one state, then a rebuild: the tables stay those of the windows."""
    import duckdb as engine

    path = str(tmp_path / "out.duckdb")
    steps = several(tmp_path).sink(duckdb(path, table="sums")).incremental(tmp_path / "state")
    raw = {**steps.raw["more"], "visits": {**steps.raw["more"]["visits"], "table": "trips"}}
    built = Builder({**steps.raw, "more": raw}, steps.steps).build()
    thund.run(built)
    names = {"": "sums", "hops": "sums_hops", "visits": "trips", "hours": "sums_hours"}
    for again in (False, True):
        if again:
            assert rebuild_sink(built) == thund.run(built).progress.epoch
        with engine.connect(path) as connection:
            for name, table in names.items():
                found = connection.sql(f"FROM {table}").to_arrow_table()
                assert sorted(ids(found)) == sorted(found.column("_gar_id").to_pylist())
                assert len(found) == len(alone(tmp_path, name)), name


@pytest.mark.law("E6", "M3")
def test_required_a_folder_of_files_for_each_window(tmp_path: Path) -> None:
    steps = begun(tmp_path).key("k").tumbling("20m").aggregate(**SUM)
    steps = steps.also("hours", output="append", **WINDOWS["hours"])
    steps = steps.also("visits", output="update", panes="retracting", **WINDOWS["visits"])
    steps = steps.sink(parquet(tmp_path / "log")).incremental(tmp_path / "state")
    thund.run(steps.trigger(rows=4, once=True, drain=True).build())
    top = {path.name for path in (tmp_path / "log").glob("rows-*")}
    for name in ("hours", "visits"):
        assert {path.name for path in (tmp_path / "log" / name).iterdir()} == top
    hours = pa.concat_tables(map(pq.read_table, sorted((tmp_path / "log/hours").iterdir())))
    assert shown(hours) == alone(tmp_path, "hours")
    panes = pa.concat_tables(map(pq.read_table, sorted((tmp_path / "log/visits").iterdir())))
    assert {"_pane", "_timing", "_retraction"} < set(panes.column_names)
    back = panes.filter(panes.column("_retraction")).num_rows
    assert panes.num_rows - 2 * back == len(alone(tmp_path, "visits"))


@pytest.mark.law("W7")
def test_required_status_tells_the_windows_that_wait(tmp_path: Path) -> None:
    steps = several(tmp_path).sink(memory()).incremental(tmp_path / "state")
    thund.run(steps.trigger(rows=4, once=True).build())
    found = thund.status(tmp_path / "state")
    assert found is not None
    assert found.waiting == ()  # one partition: without it W would be the same
    table = pq.read_table(tmp_path / "rows" / "a.parquet")
    pq.write_table(table.slice(0, 5), tmp_path / "rows" / "b.parquet")
    thund.run(steps.incremental(tmp_path / "two").trigger(rows=4, once=True).build())
    two = thund.status(tmp_path / "two")
    assert two is not None
    assert {w.operator for w in two.waiting} == {"", *WINDOWS}
    hours = [w for w in two.waiting if w.operator == "hours"]
    assert [(w.start_ms, w.end_ms, w.groups) for w in hours] == [
        (0, 60 * MINUTE, 4),
        (60 * MINUTE, 120 * MINUTE, 3),
    ]


# ---- one transaction -------------------------------------------------------------------------------

ROWS = pa.schema(
    {"_gar_id": pa.binary(16), "_epoch": pa.int64(), "_deleted": pa.bool_(), "n": pa.int64()}
)
OTHER = pa.schema([*list(ROWS)[:3], pa.field("m", pa.string())])
OWN = {"pipeline": "p", "generation": "g"}


def outbox(epoch: int, *, narrow: bool = False) -> Outbox:
    """A row for the first window, and one for the other: 5 and "five", under epoch and number."""
    first = pa.table([[b"%016d" % epoch], [epoch], [False], [5]], schema=ROWS)
    other = pa.table([[b"%016d" % epoch], [epoch], [False], ["five"]], schema=OTHER)
    lanes = [schema.empty_table() for schema in (LATE_SCHEMA, INVALID_SCHEMA, UNFIT_SCHEMA)]
    more = {"other": Shown(first if narrow else other)}
    return Outbox(epoch, first, *lanes, more=more)


@pytest.fixture(params=["memory", "duckdb", "parquet"])
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> Sink:
    if request.param == "memory":
        return MemorySink()
    if request.param == "parquet":
        return ParquetSink(open_store(str(tmp_path / "log")), ROWS, more={"other": OTHER})
    more = {"other": ("t_other", OTHER)}
    return DuckDbSink(str(tmp_path / "x.duckdb"), "t", ROWS, more=more)


@pytest.mark.law("K5")
def test_required_an_epoch_is_applied_to_all_tables_or_to_none(sink: Sink) -> None:
    """The other window's rows of epoch 2 have wrong columns: nothing of it is there."""
    assert sink.apply(outbox(1), **OWN)
    with pytest.raises(CallerError, match="columns"):
        sink.apply(outbox(2, narrow=True), **OWN)
    assert sink.apply(outbox(2), **OWN)
    assert not sink.apply(outbox(2), **OWN)
    assert sink.table().column("n").to_pylist() == [5, 5]
    assert sink.table("other").column("m").to_pylist() == ["five", "five"]
    record = sink.record()
    assert record is not None
    assert record.last == 2
    sink.close()


@pytest.mark.law("K5", "R2")
def test_required_tables_are_emptied_and_replaced_together(tmp_path: Path) -> None:
    more = {"other": ("t_other", OTHER)}
    for made in (MemorySink(), DuckDbSink(str(tmp_path / "x.duckdb"), "t", ROWS, more=more)):
        made.replace(outbox(1), pipeline="p", version=1)
        made.replace(outbox(2), pipeline="p", version=2)
        assert [made.table(name).num_rows for name in ("", "other")] == [1, 1]
        made.reset(**OWN)
        assert not made.has_rows()
        assert made.table("other").num_rows == 0
        made.close()


@pytest.mark.law("K5")
def test_required_a_death_before_a_row_of_the_second_table(tmp_path: Path) -> None:
    class Dying(DuckDbSink):
        def _merge(self, result: object, rows: pa.Table) -> None:
            super()._merge(result, rows)  # type: ignore[arg-type]
            if "m" not in rows.column_names:
                raise RuntimeError

    path, more = str(tmp_path / "x.duckdb"), {"other": ("t_other", OTHER)}
    dying = Dying(path, "t", ROWS, more=more)
    with pytest.raises(RuntimeError):
        dying.apply(outbox(1), **OWN)
    assert not dying.has_rows()
    assert dying.record() is None
    dying.close()


@pytest.mark.law("M3")
def test_required_the_file_of_the_first_window_makes_the_epoch_applied(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    sink = ParquetSink(store, ROWS, more={"other": OTHER})
    sink.apply(outbox(1), **OWN)
    store.delete("rows-000000000001.parquet")
    assert (sink.record(), sink.has_rows(), sink.table("other").num_rows) == (None, False, 0)
    assert sink.apply(outbox(1), **OWN)
    assert sink.table("other").num_rows == 1


def test_required_two_windows_do_not_share_a_table(tmp_path: Path) -> None:
    for table in ("T", "t_late"):
        with pytest.raises(CallerError, match="two tables are called") as caught:
            DuckDbSink(str(tmp_path / "x.duckdb"), "t", ROWS, more={"other": (table, OTHER)})
        assert caught.value.code == "table_names"


# ---- the definition --------------------------------------------------------------------------------

TOML = """
name = "p"
key = ["k"]

[source]
kind = "files"
path = "rows"

[watermark]
column = "t"

[window]
kind = "tumbling"
size = "20m"

[aggregates]
rows = "count"

[more.visits]
key = ["k"]
output = "update"
table = "trips"

[more.visits.window]
kind = "session"
gap = "10m"

[more.visits.aggregates]
final = "last(w)"

[more.all]
key = []

[more.all.window]
kind = "hopping"
size = "30m"
slide = "10m"

[more.all.aggregates]
rows = "count"
total = "sum(v)"

[sink]
kind = "duckdb"
path = "out.duckdb"
table = "sums"
"""


def test_required_builder_and_toml_give_the_same_value() -> None:
    value = Pipeline.from_toml(TOML)
    steps = pipeline("p").source(files("rows")).watermark("t").key("k").tumbling("20m")
    steps = steps.aggregate(rows=count())
    steps = steps.also("all", key=(), window=hopping("30m", slide="10m"), aggregates=SUM)
    steps = steps.also("visits", output="update", table="trips", **WINDOWS["visits"])
    built = steps.sink(duckdb("out.duckdb", table="sums")).build()
    assert built == value
    assert built.fingerprint() == value.fingerprint()
    assert Pipeline.from_toml(value.to_toml()) == value
    assert [one.name for one in value.config().more] == ["all", "visits"]
    with pytest.raises(CallerError, match="two further windows named 'all'"):
        steps.also("all", key=(), window=tumbling("1h"), aggregates=SUM)


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("[more.visits", "[more.Visits", 'more: "Visits" cannot be the name of a window'),
        ("[more.visits", "[more.late", 'more: "late" cannot be the name of a window'),
        ("[more.visits", "[more.window", 'more: "window" cannot be the name of a window'),
        ('column = "t"', 'column = "t"\nlate_rule = "window"', "does not go with several windows"),
        ('gap = "10m"', 'gap = "0m"', "more.visits.window.gap: .* is no window gap"),
        ('gap = "10m"', 'gap = "soon"', "more.visits.window.gap: .* is no duration"),
        ('gap = "10m"', 'gaps = "10m"', "more.visits.window.gaps: no such key"),
        ('gap = "10m"\n', "", "more.visits.window.gap: missing"),
        ('kind = "session"', 'kind = "visit"', 'more.visits.window.kind: "visit" does not fit'),
        ("last(w)", "last()", "more.visits.aggregates.final"),
        ("last(w)", "last", "more.visits.aggregates.final: .* needs a column"),
        ("key = []", "keys = []", "more.all.keys: no such key"),
        ("key = []\n", "", "more.all.key: missing"),
        ("key = []", "key = 5", "more.all.key: 5 does not fit"),
        ("key = []", 'key = ["window_end"]', r"more.all.key\[0\]: .* keeps for itself"),
        ("key = []", 'key = ["total"]', "more.all.aggregates: .* stands beside"),
        ("key = []", 'key = []\nname = "x"', "more.all.name: .* is a second name"),
        ("key = []", 'key = []\npanes = "discarding"', "more.all.panes: .* does not go with"),
        ('table = "sums"', "", "sink.table: missing"),
        ('table = "trips"', 'table = " "', "more.visits.table: .* is no name"),
        ("[more.all]\nkey = []", "[more.all]\nkey = []\n[more.all.sink]", "more.all.sink: no such key"),
    ],
)  # fmt: skip
def test_required_a_wrong_further_window_is_refused_by_its_key(
    old: str, new: str, found: str
) -> None:
    assert old in TOML
    with pytest.raises(CallerError, match=found):
        Pipeline.from_toml(TOML.replace(old, new))


def test_required_what_else_a_further_window_cannot_be() -> None:
    with pytest.raises(CallerError, match="is no table of windows"):
        Pipeline.from_toml("more = 5\n" + TOML[: TOML.index("[more.visits]")])
    parts = TOML.replace('kind = "duckdb"\npath = "out.duckdb"\ntable = "sums"', 'kind = "memory"')
    with pytest.raises(CallerError, match="the sink has none"):
        Pipeline.from_toml(parts)
    log = 'kind = "parquet"\npath = "log"'
    parts = TOML.replace('kind = "duckdb"\npath = "out.duckdb"\ntable = "sums"', log)
    parts = 'mode = "incremental"\nstate_root = "s"' + parts.replace('table = "trips"', "")
    with pytest.raises(CallerError, match="cannot take away a session") as caught:
        Pipeline.from_toml(parts)
    assert "more.visits.panes" in caught.value.action


CONFIG = Config(
    "p", "t", ("k",), WindowSpec(10), (Aggregate("n", "count"),),
    more=(Operator("o", ("j",), WindowSpec(20), (Aggregate("m", "max", "v"),)),),
)  # fmt: skip


@pytest.mark.law("K8")
def test_required_a_further_window_is_part_of_what_a_state_is_for() -> None:
    old = plain(replace(CONFIG, more=()))
    assert differences(old, old) == []
    assert differences(plain(CONFIG), plain(CONFIG)) == []
    assert "more" in str(differences(old, plain(CONFIG)))
    other = replace(CONFIG, more=(replace(CONFIG.more[0], window=WindowSpec(30)),))
    assert differences(plain(CONFIG), plain(other)) == [
        "more[0].window.size_ms: 20 in the state, 30 now"
    ]
    del old["more"]  # a state from before there were further windows
    assert differences(old, plain(replace(CONFIG, more=()))) == []


def test_required_a_source_has_the_columns_of_all_windows() -> None:
    assert source_columns(CONFIG) == ("t", "k", "j", "v")
    schema = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("v", pa.int64())])
    with pytest.raises(CallerError, match="'j'"):
        Operators(CONFIG, schema)


@pytest.mark.law("A2", "E5")
@pytest.mark.parametrize("name", ["window", "o", "late", ""])
def test_required_names_tell_the_windows_apart(name: str) -> None:
    assert list(operator_configs(CONFIG)) == ["", "o"]
    again = replace(CONFIG, more=(*CONFIG.more, replace(CONFIG.more[0], name=name)))
    with pytest.raises(CallerError, match="a further window named"):
        operator_configs(again)
    with pytest.raises(CallerError, match="late rule 'window'"):
        operator_configs(replace(CONFIG, late_rule="window"))
