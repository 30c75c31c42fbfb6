"""Every sink takes each epoch once, in order, and refuses what it cannot be sure of."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from thund.checkpoint import Checkpoints
from thund.connectors.duckdb_sink import DuckDbSink
from thund.epoch import INVALID_SCHEMA, LATE_SCHEMA, UNFIT_SCHEMA, Epoch, Outbox
from thund.sink import MemorySink, Record, publish, rebuild, recompute_version
from thund.stores import open_store
from thund_contract.errors import CallerError, StoreError
from thund_contract.vocabulary import Aggregate, Clock, Config, WindowSpec

CONFIG = Config("p", "et", ("k",), WindowSpec(1000), (Aggregate("n", "count"),))
ROWS = pa.schema(
    {
        "_gar_id": pa.binary(16),
        "_epoch": pa.int64(),
        "_deleted": pa.bool_(),
        "k": pa.string(),
        "window_start": pa.timestamp("ms", "UTC"),
        "n": pa.int64(),
    }
)
OWN = {"pipeline": "p", "generation": "g"}


def id_of(key):
    return key.encode().ljust(16, b".")


def outbox(epoch, keys="", *, deleted="", late=0, n=None, version=None):
    every = keys + deleted
    return Outbox(
        epoch,
        pa.table(
            {
                "_gar_id": [id_of(key) for key in every],
                "_epoch": [epoch if version is None else version] * len(every),
                "_deleted": [False] * len(keys) + [True] * len(deleted),
                "k": list(every),
                "window_start": [0] * len(every),
                "n": [epoch if n is None else n] * len(every),
            },
            ROWS,
        ),
        pa.table([["a"] * late, list(range(late)), [5] * late, [9] * late], schema=LATE_SCHEMA),
        INVALID_SCHEMA.empty_table(),
        UNFIT_SCHEMA.empty_table(),
    )


def shown(sink):
    table = sink.table()
    return {row["_gar_id"].decode()[0]: (row["_epoch"], row.get("n")) for row in table.to_pylist()}


def late(sink):
    return [(row["_epoch"], row["offset"]) for row in sink.lanes()["late"].to_pylist()]


@pytest.fixture(params=["memory", "duckdb"])
def sink(request, tmp_path):
    if request.param == "memory":
        made = MemorySink()
    else:
        made = DuckDbSink(str(tmp_path / "x.duckdb"), "t", ROWS)
    yield made
    made.close()


def history(epochs, *, store=None, nonce="g", config=CONFIG):
    made = Checkpoints(
        store or open_store("memory://"),
        config=config,
        definition={},
        nonce=nonce,
        durable=lambda name, number: None,
    )
    made.recover()
    for each in epochs:
        made.commit(Epoch(each.epoch, (Clock(0),), 0, (), {}, each, False), source={})
    return made


def published(checkpoints, sink):
    steps = []
    publish(checkpoints, sink, durable=lambda name, number: steps.append((name, number)))
    return steps


# ---- one transaction -------------------------------------------------------------------------------


def test_required_a_new_sink_is_empty(sink):
    assert sink.record() is None
    assert not sink.has_rows()
    assert sink.table().num_rows == 0
    assert {name: lane.num_rows for name, lane in sink.lanes().items()} == {
        "late": 0,
        "invalid": 0,
        "unfit": 0,
    }


def test_required_outboxes_merge_by_id(sink):
    assert sink.apply(outbox(1, "ab", late=2), **OWN)
    assert sink.apply(outbox(2, "bc", late=1), **OWN)
    assert sink.apply(outbox(3, "d", deleted="ax"), **OWN)
    assert shown(sink) == {"b": (2, 2), "c": (2, 2), "d": (3, 3)}
    assert late(sink) == [(1, 0), (1, 1), (2, 0)]
    assert sink.record() == Record("p", "g", 3)
    assert sink.has_rows()
    assert sink.table().schema.equals(pa.schema([f for f in ROWS if f.name != "_deleted"]))


def test_required_a_row_goes_only_over_an_older_one(sink):
    sink.apply(outbox(1, "abcd", version=5, n=50), **OWN)
    sink.apply(outbox(2, "a", deleted="c", version=5, n=51), **OWN)
    sink.apply(outbox(3, "a", deleted="d", version=4, n=41), **OWN)
    sink.apply(outbox(4, "a", deleted="b", version=6, n=60), **OWN)
    assert shown(sink) == {"a": (6, 60), "c": (5, 50), "d": (5, 50)}


def test_required_an_epoch_is_taken_once(sink):
    sink.apply(outbox(1, "a", late=1), **OWN)
    assert not sink.apply(outbox(1, "a", late=1, n=99), **OWN)
    assert sink.apply(outbox(2), **OWN)
    assert not sink.apply(outbox(1, "z"), **OWN)
    assert shown(sink) == {"a": (1, 1)}
    assert late(sink) == [(1, 0)]
    assert sink.record() == Record("p", "g", 2)


def test_required_a_gap_is_refused(sink):
    for number in (2, 3):
        with pytest.raises(StoreError, match=f"outbox {number} was offered") as caught:
            sink.apply(outbox(number, "a"), **OWN)
        assert caught.value.code == "sink_gap"
    sink.apply(outbox(1), **OWN)
    with pytest.raises(StoreError, match="has the epochs up to 1"):
        sink.apply(outbox(3, "a"), **OWN)
    assert not sink.has_rows()


@pytest.mark.parametrize(
    ("other", "found"),
    [
        ({"pipeline": "q", "generation": "g"}, "pipeline 'p'"),
        ({"pipeline": "p", "generation": "h"}, "generation g"),
    ],
)
@pytest.mark.parametrize("number", [1, 2, 3])
def test_required_another_history_is_refused(sink, other, found, number):
    """Its old outboxes are refused too, not skipped."""
    sink.apply(outbox(1, "a"), **OWN)
    sink.apply(outbox(2, "a"), **OWN)
    with pytest.raises(CallerError, match=found) as caught:
        sink.apply(outbox(number, "z"), **other)
    assert caught.value.code == "not_our_table"
    assert shown(sink) == {"a": (2, 2)}


def test_required_a_writer_that_is_slow_changes_nothing(sink):
    """Many writers offer the same outboxes: the table is that of one."""
    with ThreadPoolExecutor(8) as pool:
        for number in (1, 2, 3):
            offered = outbox(number, "abc", late=1)
            applied = list(pool.map(lambda _, o=offered: sink.apply(o, **OWN), range(8)))
            assert applied.count(True) == 1
    assert shown(sink) == dict.fromkeys("abc", (3, 3))
    assert late(sink) == [(1, 0), (2, 0), (3, 0)]


def test_required_other_columns_are_refused(sink):
    sink.apply(outbox(1, "a"), **OWN)
    narrow = Outbox(2, outbox(2, "b").rows.drop_columns(["n"]), *list(outbox(2).lanes().values()))
    with pytest.raises(CallerError, match="columns") as caught:
        sink.apply(narrow, **OWN)
    assert caught.value.code == "table_schema"
    assert sink.record() == Record("p", "g", 1)


# ---- publishing ------------------------------------------------------------------------------------


def test_required_publish_catches_up_in_order(sink):
    made = history([outbox(1, "a"), outbox(2, "b"), outbox(3)])
    assert published(made, sink) == [("sink", 1), ("sink", 2), ("sink", 3)]
    assert published(made, sink) == []
    made.commit(Epoch(4, (), 0, (), {}, outbox(4, "a"), False), source={})
    assert published(made, sink) == [("sink", 4)]
    assert shown(sink) == {"a": (4, 4), "b": (2, 2)}


def test_required_a_table_ahead_of_the_state_is_an_error(sink):
    """The state folder was put back from an older copy."""
    published(history([outbox(1, "a"), outbox(2, "b")]), sink)
    with pytest.raises(StoreError, match="up to 2, the state only those up to 1") as caught:
        published(history([outbox(1, "a")]), sink)
    assert caught.value.code == "sink_ahead"
    assert "rebuild" in caught.value.action


def test_required_another_engine_that_went_on_is_not_taken_for_that(sink):
    store = open_store("memory://")
    slow = history([outbox(1, "a")], store=store)
    published(history([outbox(2, "b")], store=store, nonce="other"), sink)
    assert published(slow, sink) == []
    assert shown(sink) == {"a": (1, 1), "b": (2, 2)}


@pytest.mark.parametrize("epochs", [0, 1, 2])
def test_required_a_new_state_on_an_old_table_is_an_error(sink, epochs):
    published(history([outbox(1, "a")]), sink)
    fresh = history([outbox(number) for number in range(1, epochs + 1)], nonce="h")
    with pytest.raises(CallerError, match="another history") as caught:
        published(fresh, sink)
    assert "rebuild" in caught.value.action


def test_required_rows_without_a_record_are_an_error(tmp_path):
    import duckdb

    path = str(tmp_path / "x.duckdb")
    DuckDbSink(path, "t", ROWS).close()
    with duckdb.connect(path) as connection:
        connection.execute("INSERT INTO t (_gar_id, _epoch) VALUES ('x', 57)")
    sink = DuckDbSink(path, "t", ROWS)
    with pytest.raises(CallerError, match="no record of who wrote them"):
        published(history([outbox(1)]), sink)
    with pytest.raises(CallerError, match="no record of who wrote them"):
        recompute_version(sink, pipeline="p")
    sink.close()


def test_required_an_outbox_no_longer_kept_is_an_error(sink):
    made = history([outbox(1, "a"), outbox(2, "b"), outbox(3, "c")])
    made.collect(1, {"another sink": 3})
    for act in (published, lambda made, sink: rebuild(made, sink, durable=lambda *_: None)):
        with pytest.raises(StoreError, match="outbox of epoch 1") as caught:
            act(made, sink)
        assert caught.value.code == "outbox_gone"
    assert sink.record() is None


def test_required_a_rebuilt_table_is_that_of_the_outboxes(sink):
    sink.replace(outbox(1, "xyz", late=3), pipeline="q", version=1)
    made = history([outbox(1, "ab", late=1), outbox(2, "b", deleted="a")])
    rebuild(made, sink, durable=lambda name, number: None)
    assert shown(sink) == {"b": (2, 2)}
    assert late(sink) == [(1, 0)]
    assert sink.record() == Record("p", "g", 2)


# ---- recompute -------------------------------------------------------------------------------------


def test_required_recompute_replaces_table_and_lanes(sink):
    for keys in ("abc", "cd"):
        version = recompute_version(sink, pipeline="p")
        assert sink.replace(outbox(version, keys, late=1), pipeline="p", version=version)
    assert shown(sink) == {"c": (2, 2), "d": (2, 2)}
    assert late(sink) == [(2, 0)]
    assert sink.record() == Record("p", "recompute", 2)


def test_required_a_recompute_that_was_beaten_changes_nothing(sink):
    slow = recompute_version(sink, pipeline="p")
    quick = recompute_version(sink, pipeline="p")
    assert sink.replace(outbox(quick, "new"), pipeline="p", version=quick)
    assert not sink.replace(outbox(slow, "old", late=1), pipeline="p", version=slow)
    assert set(shown(sink)) == set("new")
    assert recompute_version(sink, pipeline="p") == 2


def test_required_the_two_modes_do_not_share_a_table(sink):
    sink.replace(outbox(1, "a"), pipeline="p", version=1)
    with pytest.raises(CallerError, match="mode recompute"):
        published(history([outbox(1, "b")]), sink)


def test_required_recompute_stops_at_a_table_of_incremental_mode(sink):
    published(history([outbox(1, "b")]), sink)
    for stop in (
        lambda: recompute_version(sink, pipeline="p"),
        lambda: sink.replace(outbox(2, "a"), pipeline="p", version=2),
    ):
        with pytest.raises(CallerError, match="mode incremental"):
            stop()
    assert shown(sink) == {"b": (1, 1)}
