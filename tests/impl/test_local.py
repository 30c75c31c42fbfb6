"""Runs that do not end by themselves: sources that grow while they are read, and triggers by time or size."""

import threading
from collections.abc import Callable, Iterator
from itertools import count as count_up
from pathlib import Path
from typing import Any

import pytest

import thund
from thund.builder import count, duckdb, files, pipeline, sum_
from thund.definition import Pipeline
from thund.history import History
from thund.launch import open_source
from thund.runners.local import Progress
from thund.stores import open_store
from thund_conformance.audit import audit_history
from thund_contract.vocabulary import Idle, Item, Rows

PATIENCE_S = 60.0


def append(path: Path, rows: range) -> None:
    with path.open("a") as out:
        out.writelines(f"{i * 1000},x,{i}\n" for i in rows)


def definition(
    folder: Path, *, state: bool, idle: str = "0s", future: str | None = None, **trigger: object
) -> Pipeline:
    steps = (
        pipeline("sums")
        .source(files(folder / "data"))
        .watermark("t", idle_timeout=idle, max_future=future)
        .key("k")
        .tumbling("10s")
        .aggregate(rows=count(), total=sum_("v"))
        .sink(duckdb(folder / "out.duckdb", table="sums"))
        .output("update")
        .trigger(**trigger)
    )
    return (steps.incremental(str(folder / "state")) if state else steps.recompute()).build()


class Watched:
    """A run in a thread of its own, whose progress can be waited for."""

    def __init__(self, made: Pipeline, **options: Any) -> None:
        self.changed = threading.Condition()
        self.last: Progress | None = None
        self.told = 0
        self.failed: BaseException | None = None
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(made,), kwargs=options)
        self.thread.start()

    def _run(self, made: Pipeline, **options: Any) -> None:
        try:
            thund.run(made, progress=self._tell, stop=self.stop, **options)
        except BaseException as error:  # noqa: BLE001 - shown by the test that waits
            self.failed = error
        with self.changed:
            self.changed.notify_all()

    def _tell(self, progress: Progress) -> None:
        with self.changed:
            self.last, self.told = progress, self.told + 1
            self.changed.notify_all()

    def wait_for(self, good: Callable[[Progress], bool]) -> None:
        with self.changed:
            reached = self.changed.wait_for(
                lambda: self.failed is not None or (self.last is not None and good(self.last)),
                timeout=PATIENCE_S,
            )
        if self.failed is not None:
            raise self.failed
        assert reached, self.last

    def end(self) -> None:
        self.stop.set()
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive()


@pytest.mark.law("S5", "K1")
def test_required_a_file_that_grows_is_followed_and_committed_by_time(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    log = tmp_path / "data/a.csv"
    log.write_text("t,k,v\n")
    append(log, range(25))
    run = Watched(definition(tmp_path, state=True, interval="20ms", once=False))
    try:
        run.wait_for(lambda p: p.accepted == 25 and p.epoch >= 1)
        append(log, range(25, 60))
        run.wait_for(lambda p: p.accepted == 60)
    finally:
        run.end()
    history = History(open_store(str(tmp_path / "state")))
    manifest = history.manifest(history.highest())
    assert manifest.epoch >= 2
    assert sum(p.accepted for p in manifest.partitions) == 60
    assert not manifest.drained


@pytest.mark.law("W5", "K3")
def test_required_a_file_that_appears_is_a_partition_from_then_on(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.csv").write_text("t,k,v\n0,x,1\n1000,x,2\n")
    run = Watched(definition(tmp_path, state=True, rows=2, once=False))
    try:
        run.wait_for(lambda p: p.epoch == 1)
        (tmp_path / "data/b.csv").write_text("t,k,v\n0,y,1\n2000,y,2\n")
        run.wait_for(lambda p: p.accepted == 4)
    finally:
        run.end()
    history = History(open_store(str(tmp_path / "state")))
    names = [p.partition for p in history.manifest(history.highest()).partitions]
    assert len(names) == 2


@pytest.mark.law("R2")
def test_required_recompute_answers_again_when_its_source_has_grown(tmp_path: Path) -> None:
    import duckdb as database

    (tmp_path / "data").mkdir()
    log = tmp_path / "data/a.csv"
    log.write_text("t,k,v\n")
    append(log, range(5))
    run = Watched(definition(tmp_path, state=False, interval="20ms", once=False))
    try:
        run.wait_for(lambda p: p.accepted == 5 and run.told == 2)  # read, and then replaced
        append(log, range(5, 12))
        run.wait_for(lambda p: p.accepted == 12)
    finally:
        run.end()
    with database.connect(str(tmp_path / "out.duckdb"), read_only=True) as connection:
        (total,) = connection.execute("SELECT sum(rows)::BIGINT FROM sums").fetchall()
        (record,) = connection.execute("SELECT generation, last FROM _thund_progress").fetchall()
    assert total == (12,)
    assert record[0] == "recompute"
    assert record[1] >= 2


@pytest.mark.law("K1")
def test_required_a_trigger_by_bytes_cuts_epochs(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    log = tmp_path / "data/a.csv"
    log.write_text("t,k,v\n")
    append(log, range(1000))
    made = definition(tmp_path, state=True, bytes=100, once=True)
    assert thund.run(made).progress.epoch >= 1


@pytest.mark.law("C1", "C2", "C3")
def test_required_few_credits_cut_epochs_and_lose_nothing(tmp_path: Path) -> None:
    """A window of 7 rows per partition, and no other trigger than the end."""
    import msgspec

    (tmp_path / "data").mkdir()
    for name in ("a", "b"):
        (tmp_path / f"data/{name}.csv").write_text("t,k,v\n")
        append(tmp_path / f"data/{name}.csv", range(50))
    made = msgspec.structs.replace(definition(tmp_path, state=True, once=True), credits=7)
    ran = thund.run(made)
    assert ran.progress.accepted == 100
    assert ran.progress.epoch >= 50 // 7


def committed(folder: Path) -> list[Item]:
    """Every item of the history."""
    return [
        item for m in History(open_store(str(folder / "state"))).manifests() for item in m.items
    ]


@pytest.mark.law("W4", "T7")
def test_required_a_file_that_stays_silent_no_longer_holds_the_watermark(tmp_path: Path) -> None:
    """Rows come to a as long as W stands at b's only row; the history is then what the laws say."""
    (tmp_path / "data").mkdir()
    log = tmp_path / "data/a.csv"
    log.write_text("t,k,v\n")
    append(log, range(25))
    (tmp_path / "data/b.csv").write_text("t,k,v\n0,y,1\n")
    made = definition(tmp_path, state=True, idle="1s", rows=1_000_000, once=False)
    run = Watched(made)
    try:
        for row in range(25, 300):
            run.wait_for(lambda p, row=row: p.accepted > row)
            assert run.last is not None
            if run.last.watermark > 0:
                break
            append(log, range(row, row + 1))
        run.wait_for(lambda p: p.watermark >= 24_000 and p.epoch >= 2)
    finally:
        run.end()
    assert Idle(("b",)) in committed(tmp_path)
    assert audit_history(History(open_store(str(tmp_path / "state"))), open_source(made)).same


@pytest.mark.law("W4")
def test_required_the_work_of_an_epoch_is_no_idleness(tmp_path: Path) -> None:
    """By this clock each durable step takes ten seconds, and waiting takes none."""
    (tmp_path / "data").mkdir()
    log = tmp_path / "data/a.csv"
    log.write_text("t,k,v\n")
    append(log, range(5))
    (tmp_path / "data/b.csv").write_text("t,k,v\n0,y,1\n")
    clock = [0]

    def durable(step: str, epoch: int) -> None:
        clock[0] += 10_000

    made = definition(tmp_path, state=True, idle="1s", rows=2, once=False)
    run = Watched(made, now=lambda: clock[0], durable=durable)
    try:
        run.wait_for(lambda p: p.accepted == 6)
        append(log, range(5, 9))
        run.wait_for(lambda p: p.accepted == 10 and p.epoch == 5)
    finally:
        run.end()
    assert clock[0] >= 100_000
    assert not any(isinstance(item, Idle) for item in committed(tmp_path))


@pytest.mark.law("W4")
def test_required_a_run_to_the_end_of_what_is_there_finds_nobody_idle(tmp_path: Path) -> None:
    """Ten seconds pass between any two looks at the clock, and rows of b come after those of a."""
    import msgspec

    (tmp_path / "data").mkdir()
    for name in ("a", "b"):
        (tmp_path / f"data/{name}.csv").write_text("t,k,v\n")
        append(tmp_path / f"data/{name}.csv", range(20))
    clock = count_up(0, 10_000)
    made = definition(tmp_path, state=True, idle="1s", once=True)
    thund.run(msgspec.structs.replace(made, credits=4), now=lambda: next(clock))
    items = committed(tmp_path)
    assert sum(item.rows for item in items if isinstance(item, Rows)) == 40
    assert not any(isinstance(item, Idle) for item in items)


@pytest.mark.law("R2")
def test_required_recompute_reads_the_clock_once(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.csv").write_text("t,k,v\n0,x,1\n1000,x,2\n")
    readings = count_up(5_000)
    thund.run(
        definition(tmp_path, state=False, idle="1s", future="1h", once=True),
        now=lambda: next(readings),
    )
    assert next(readings) == 5_001


def test_required_a_stream_that_never_answers_does_not_hold_a_stop(tmp_path: Path) -> None:
    """The reader waits in the caller's iterator; what was accepted is committed all the same."""
    import pyarrow as pa

    from thund.builder import memory, stream

    never = threading.Event()

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"t": pa.array([1, 2, 3], pa.int64()), "k": ["x", "y", "x"]})
        never.wait(PATIENCE_S)

    steps = pipeline("sums").source(stream()).watermark("t").key("k").tumbling("10s")
    steps = steps.aggregate(rows=count()).sink(memory()).incremental(str(tmp_path / "state"))
    run = Watched(steps.trigger(rows=2, once=True).build(), stream=batches)
    try:
        run.wait_for(lambda p: p.epoch >= 1)
    finally:
        run.end()
        never.set()
    history = History(open_store(str(tmp_path / "state")))
    partitions = history.manifest(history.highest()).partitions
    assert sum(p.accepted for p in partitions) == 3
