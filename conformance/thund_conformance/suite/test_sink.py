"""The laws of the sink: merge by version, one transaction, and replays that change nothing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from thund.connectors.duckdb_sink import DuckDbSink
from thund.epoch import INVALID_SCHEMA, LATE_SCHEMA, UNFIT_SCHEMA, Outbox
from thund.sink import MemorySink, Record, Sink
from thund_conformance import judge
from thund_conformance.scripts import config, counts, log, scenario
from thund_contract.errors import ThundError
from thund_contract.scenario import Barrier, Crash, Deliver, DrainAll, Restart

SCHEMA = pa.schema(
    {
        "_gar_id": pa.binary(16),
        "_epoch": pa.int64(),
        "_deleted": pa.bool_(),
        "k": pa.string(),
        "window_start": pa.timestamp("ms", "UTC"),
        "window_end": pa.timestamp("ms", "UTC"),
        "rows": pa.int64(),
    }
)
Made = Callable[[], Sink]


@pytest.fixture(params=["memory", "duckdb"])
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    made: Sink = MemorySink()
    if request.param == "duckdb":
        made = DuckDbSink(str(tmp_path / "table.duckdb"), "results", SCHEMA)
    yield made
    made.close()


def outbox(epoch: int, *rows: tuple[str, int, int], version: int | None = None) -> Outbox:
    """Rows (name, value, 1 for a tombstone); one late row per epoch."""
    table = pa.table(
        {
            "_gar_id": pa.array([name.encode().ljust(16) for name, _, _ in rows], pa.binary(16)),
            "_epoch": pa.array([version or epoch] * len(rows), pa.int64()),
            "_deleted": pa.array([bool(gone) for _, _, gone in rows], pa.bool_()),
            "k": pa.array([name for name, _, _ in rows], pa.string()),
            "window_start": pa.array([0] * len(rows), pa.timestamp("ms", "UTC")),
            "window_end": pa.array([10] * len(rows), pa.timestamp("ms", "UTC")),
            "rows": pa.array([value for _, value, _ in rows], pa.int64()),
        },
        schema=SCHEMA,
    )
    late = pa.table([["p0"], [epoch], [epoch], [0]], schema=LATE_SCHEMA)
    empty = (INVALID_SCHEMA.empty_table(), UNFIT_SCHEMA.empty_table())
    return Outbox(epoch, table, late, *empty)


HISTORY = (
    outbox(1, ("a", 1, 0), ("b", 1, 0)),
    outbox(2),
    outbox(3, ("a", 3, 0), ("c", 3, 0)),
    outbox(4, ("b", 0, 1)),
)


def apply(sink: Sink, each: Outbox, generation: str = "g") -> bool:
    return sink.apply(each, pipeline="p", generation=generation)


def shown(sink: Sink) -> dict[str, int]:
    table = sink.table()
    if "k" not in table.column_names:
        return {}
    return dict(zip(table["k"].to_pylist(), table["rows"].to_pylist(), strict=True))


def late(sink: Sink) -> list[int]:
    return sorted(sink.lanes()["late"]["offset"].to_pylist())


@pytest.mark.law("M1")
def test_required_a_row_goes_over_an_older_version_only(sink: Sink) -> None:
    """Version 5 of a stays when version 3 comes in a later outbox; version 6 goes over it."""
    apply(sink, outbox(1, ("a", 50, 0), ("b", 50, 0), version=5))
    apply(sink, outbox(2, ("a", 30, 0), ("b", 30, 1), ("c", 30, 0), version=3))
    assert shown(sink) == {"a": 50, "b": 50, "c": 30}
    apply(sink, outbox(3, ("a", 51, 0), version=5))
    assert shown(sink)["a"] == 50, "an equal version is not greater"
    apply(sink, outbox(4, ("a", 60, 0), ("b", 60, 1), version=6))
    assert shown(sink) == {"a": 60, "c": 30}


@pytest.mark.law("M1")
def test_required_a_tombstone_takes_the_row_away(sink: Sink) -> None:
    for each in HISTORY:
        apply(sink, each)
    assert shown(sink) == {"a": 3, "c": 3}


@pytest.mark.law("M2")
def test_required_a_replay_of_any_outbox_changes_nothing(sink: Sink) -> None:
    for each in HISTORY:
        assert apply(sink, each)
    before = sink.table(), sink.record(), late(sink)
    for order in permutations(HISTORY):
        assert not any(apply(sink, each) for each in order)
    assert (sink.table(), sink.record(), late(sink)) == before


@pytest.mark.law("M2")
def test_required_the_old_table_does_not_come_back_with_a_slow_writer(sink: Sink) -> None:
    """Another engine, generation z, wakes up and offers its outbox: refused, nothing changes."""
    for each in HISTORY:
        apply(sink, each)
    before = sink.table()
    for each in (outbox(1, ("b", 1, 0)), outbox(5, ("b", 5, 0))):
        with pytest.raises(ThundError):
            apply(sink, each, generation="z")
    assert sink.table() == before


@pytest.mark.law("M2")
def test_required_the_table_is_that_of_the_committed_epochs(engine_name: str) -> None:
    """Two deaths between manifest and sink, a restart without need, and a drain."""
    s = scenario(
        config(output="update"), [log("p0", 1, 2, 12, 13, 25)], Crash(3), Deliver("p0", 2), Barrier(),
        Restart(), Crash(5), Deliver("p0", 2), Barrier(), Restart(), Restart(), DrainAll(),
    )  # fmt: skip
    outcome = judge.run_on(engine_name, s)
    assert counts(outcome.table) == {("a", 0): 2, ("a", 10): 2, ("a", 20): 1}
    merged: dict[str, object] = {}
    for epoch in outcome.epochs:
        merged |= {put.id: put for put in epoch.outbox}
    assert merged == {put.id: put for put in outcome.table}


@pytest.mark.law("M3")
def test_required_lanes_are_appended_once_for_each_epoch(sink: Sink) -> None:
    """A lane has no ids to merge by: that the epoch is recorded with it makes it exactly-once."""
    for each in (HISTORY[0], HISTORY[0], HISTORY[1], HISTORY[0], HISTORY[2], HISTORY[1]):
        apply(sink, each)
    assert late(sink) == [1, 2, 3]


@pytest.mark.law("M3")
def test_required_a_transaction_that_fails_leaves_neither_rows_nor_record(sink: Sink) -> None:
    """Outbox 2 has other columns, so it is refused half way; outbox 2 as it should be then fits."""
    apply(sink, HISTORY[0])
    wrong = outbox(2, ("d", 2, 0))
    bad = Outbox(
        2, wrong.rows.rename_columns([*SCHEMA.names[:-1], "other"]), *wrong.lanes().values()
    )
    with pytest.raises(ThundError):
        apply(sink, bad)
    assert (shown(sink), late(sink)) == ({"a": 1, "b": 1}, [1])
    assert apply(sink, outbox(2, ("d", 2, 0)))
    assert (shown(sink), late(sink)) == ({"a": 1, "b": 1, "d": 2}, [1, 2])


@pytest.mark.law("K5")
def test_required_the_record_moves_with_the_rows_one_epoch_at_a_time(sink: Sink) -> None:
    assert sink.record() is None
    for each in HISTORY:
        apply(sink, each)
        assert sink.record() == Record("p", "g", each.epoch)


@pytest.mark.law("K5")
def test_required_an_outbox_that_is_not_the_next_is_an_error(sink: Sink) -> None:
    for each in (HISTORY[1], HISTORY[3]):
        with pytest.raises(ThundError):
            apply(sink, each)
    apply(sink, HISTORY[0])
    with pytest.raises(ThundError):
        apply(sink, HISTORY[2])
    assert sink.record() == Record("p", "g", 1)


@pytest.mark.law("K5")
@pytest.mark.parametrize(("pipeline", "generation"), [("other", "g"), ("p", "other")])
def test_required_a_table_serves_one_pipeline_and_one_history(
    sink: Sink, pipeline: str, generation: str
) -> None:
    apply(sink, HISTORY[0])
    before = sink.table()
    for each in (HISTORY[0], HISTORY[1]):
        with pytest.raises(ThundError):
            sink.apply(each, pipeline=pipeline, generation=generation)
    assert (sink.table(), sink.record()) == (before, Record("p", "g", 1))
