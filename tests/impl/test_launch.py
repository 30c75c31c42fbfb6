"""Definitions that run: modes, outputs, streams and files give one answer."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import thund
from thund.builder import count, duckdb, files, memory, pipeline, stream, sum_
from thund.definition import Pipeline
from thund_contract.errors import CallerError, InputError

HOUR = 3_600_000
TIMES = [0, 1, HOUR, HOUR + 1, 3 * HOUR, 1, 3 * HOUR + 5]


def batches(rows: int = 2) -> list[pa.RecordBatch]:
    table = pa.table(
        {"t": pa.array(TIMES, pa.int64()), "k": list("xyxyxxy"), "v": list(range(len(TIMES)))}
    )
    return list(table.to_batches(max_chunksize=rows))


def definition(
    output: str = "append", state_root: str | None = None, *, drain: bool = True
) -> Pipeline:
    steps = (
        pipeline("sums")
        .source(stream())
        .watermark("t")
        .key("k")
        .tumbling("1h")
        .aggregate(rows=count(), total=sum_("v"))
        .sink(memory())
        .output(output)
        .trigger(rows=3, once=True, drain=drain)
    )
    return (steps.incremental(state_root) if state_root else steps).build()


def shown(table: pa.Table | None) -> list[dict[str, object]]:
    assert table is not None
    rows = table.drop_columns(["_gar_id", "_epoch"]).to_pylist()
    return sorted(rows, key=repr)


@pytest.mark.law("R2", "T2", "E4")
@pytest.mark.parametrize("output", ["append", "update", "complete"])
def test_required_recompute_and_incremental_give_one_table(tmp_path: Path, output: str) -> None:
    whole = thund.run(definition(output), stream=batches())
    epochs = thund.run(definition(output, str(tmp_path / "state")), stream=batches())
    assert (whole.mode, epochs.mode) == ("recompute", "incremental")
    assert epochs.progress.epoch == 3
    assert whole.progress.late == epochs.progress.late == 1
    assert shown(whole.table) == shown(epochs.table)
    assert len(shown(whole.table)) == 6
    late = [run.lanes["late"].drop_columns(["_epoch"]).to_pylist() for run in (whole, epochs)]
    assert late[0] == late[1]


@pytest.mark.law("R2")
def test_required_incremental_without_a_state_falls_back_and_says_so() -> None:
    asked = pipeline("sums").source(stream()).watermark("t").key("k").tumbling("1h")
    asked = asked.aggregate(rows=count()).sink(memory()).incremental()
    ran = thund.run(asked.build(), stream=batches())
    assert ran.mode == "recompute"
    assert ran.note is not None
    assert "state_root" in ran.note


@pytest.mark.law("R2", "K5")
def test_required_a_table_of_the_other_mode_stops_both(tmp_path: Path) -> None:
    def over(state: str | None) -> Pipeline:
        steps = pipeline("sums").source(stream()).watermark("t").key("k").tumbling("1h")
        steps = steps.aggregate(rows=count()).sink(duckdb(tmp_path / "a.duckdb", table="sums"))
        return (steps.incremental(state) if state else steps).build()

    thund.run(over(None), stream=batches())
    with pytest.raises(CallerError, match="recompute"):
        thund.run(over(str(tmp_path / "state")), stream=batches())


@pytest.mark.law("S4")
def test_required_a_stream_that_is_shorter_than_before_is_an_error(tmp_path: Path) -> None:
    open_ended = definition("append", str(tmp_path / "state"), drain=False)
    first = thund.run(open_ended, stream=iter(batches()))
    assert first.progress.accepted == len(TIMES)
    with pytest.raises(InputError):
        thund.run(open_ended, stream=batches()[:1])


@pytest.mark.law("S1", "R1")
def test_required_a_stream_goes_on_where_it_was(tmp_path: Path) -> None:
    """The same iterator from its beginning: rows up to the committed offset are skipped."""
    open_ended = definition("update", str(tmp_path / "state"), drain=False)

    def cut_short() -> Iterator[pa.RecordBatch]:
        yield from batches()[:2]

    assert thund.run(open_ended, stream=cut_short()).progress.accepted == 4
    again = thund.run(definition("update", str(tmp_path / "state")), stream=batches())
    assert again.progress.accepted == len(TIMES)
    assert shown(again.table) == shown(thund.run(definition("update"), stream=batches()).table)


@pytest.mark.law("W6")
def test_required_a_drained_state_refuses_rows_that_came_later(tmp_path: Path) -> None:
    drained = definition("append", str(tmp_path / "state"))
    first = thund.run(drained, stream=batches()[:2])
    assert first.progress.drained
    with pytest.raises(InputError, match="drained"):
        thund.run(drained, stream=batches())
    assert thund.run(drained, stream=batches()[:2]).progress == first.progress


def test_required_a_definition_without_its_stream_says_what_is_missing() -> None:
    with pytest.raises(CallerError, match="stream"):
        thund.run(definition())


@pytest.mark.law("K5")
def test_required_a_table_is_rebuilt_from_the_outboxes_when_asked(tmp_path: Path) -> None:
    """Rows that nobody committed are an error first, and gone after `thund state rebuild`."""
    import duckdb as database
    from click.testing import CliRunner

    import thund.cli

    (tmp_path / "data").mkdir()
    pq.write_table(pa.Table.from_batches(batches()), tmp_path / "data/a.parquet")
    steps = pipeline("sums").source(files(tmp_path / "data")).watermark("t").key("k").tumbling("1h")
    steps = steps.aggregate(rows=count()).sink(duckdb(tmp_path / "a.duckdb", table="sums"))
    made = steps.incremental(str(tmp_path / "state")).trigger(rows=3, once=True).build()
    (tmp_path / "p.toml").write_text(made.to_toml())

    def rows() -> list[tuple[object, ...]]:
        with database.connect(str(tmp_path / "a.duckdb"), read_only=True) as connection:
            return connection.execute("SELECT * FROM sums ORDER BY ALL").fetchall()

    thund.run(made)
    before = rows()
    with database.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.execute("DELETE FROM _thund_progress")
        connection.execute("UPDATE sums SET rows = 99")
    with pytest.raises(CallerError, match="record"):
        thund.run(made)
    command = ["state", "rebuild", str(tmp_path / "p.toml"), "--yes"]
    done = CliRunner().invoke(thund.cli.cli, command, catch_exceptions=False)
    assert "rebuild: epochs=3" in done.output
    assert rows() == before


@pytest.mark.law("W2", "W5")
@pytest.mark.parametrize("incremental", [False, True])
def test_required_a_stream_shows_its_partitions_as_their_rows_come(
    tmp_path: Path, *, incremental: bool
) -> None:
    steps = pipeline("sums").source(stream(partition_column="k")).watermark("t").key("k")
    steps = steps.tumbling("1h").aggregate(rows=count()).sink(memory())
    steps = steps.trigger(rows=2, once=True, drain=True)
    made = (steps.incremental(str(tmp_path / "s")) if incremental else steps).build()
    ran = thund.run(made, stream=iter(batches()))
    assert ran.progress.accepted == len(TIMES)
    assert sum(row["rows"] for row in shown(ran.table)) == ran.progress.admitted


@pytest.mark.law("A1", "A2", "A3", "T2", "T7")
@pytest.mark.parametrize("update", ["row", "epoch"])
@pytest.mark.parametrize("rule", ["row", "window", "partition"])
def test_required_every_late_rule_runs_and_can_be_audited(
    tmp_path: Path, rule: Literal["row", "window", "partition"], update: Literal["row", "epoch"]
) -> None:
    from thund_conformance.audit import audit_history, open_place

    (tmp_path / "data").mkdir()
    rng = random.Random(f"{rule} {update}")
    for name in ("a", "b"):
        times = [i * 60_000 + rng.randrange(-4, 4) * HOUR // 2 for i in range(200)]
        table = pa.table({"t": pa.array(times, pa.int64()), "k": ["x", "y"] * 100})
        pq.write_table(table, tmp_path / f"data/{name}.parquet")

    def made(state: str | None) -> Pipeline:
        steps = pipeline("sums").source(files(tmp_path / "data", chunk_rows=7))
        steps = steps.watermark(
            "t", delay="20m", grace="40m", late_rule=rule, watermark_update=update
        )
        steps = steps.key("k").tumbling("1h").aggregate(rows=count()).sink(memory())
        steps = steps.output("update").trigger(rows=30, once=True, drain=True)
        return (steps.incremental(state) if state else steps).build()

    ran = thund.run(made(str(tmp_path / "state")))
    assert 0 < ran.progress.late < 400
    found = audit_history(*open_place(str(tmp_path / "state")))
    assert found.same, found.differences
    assert found.rows == 400
    if update == "row":
        assert shown(thund.run(made(None)).table) == shown(ran.table)


@pytest.mark.parametrize("command", ["status", "audit"])
def test_required_who_only_looks_leaves_nothing_behind(tmp_path: Path, command: str) -> None:
    from click.testing import CliRunner

    import thund.cli

    place = tmp_path / "nothing"
    with pytest.raises(CallerError, match="nothing"):
        CliRunner().invoke(thund.cli.cli, [command, str(place)], catch_exceptions=False)
    assert not place.exists()
