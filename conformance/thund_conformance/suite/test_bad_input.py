"""Bad input through the front door: one clear error or a lane, and nothing committed is lost."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from thund_contract.vocabulary import MAX_EVENT_TIME

HOUR = 3_600_000

DEFINITION = """
name = "{name}"
mode = "incremental"
state_root = "{state}"
key = ["k"]
[source]
kind = "files"
path = "{data}"
{source}
[watermark]
column = "t"
{watermark}
[window]
kind = "tumbling"
size = "{size}"
[aggregates]
rows = "count"
total = "{total}"
[sink]
kind = "duckdb"
path = "{sink}"
table = "sums"
[trigger]
rows = {rows}
once = true
drain = {drain}
{extra}
"""


class Front:
    """A folder with data, a definition and the `thund` command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.data.mkdir()

    def define(self, **changes: str) -> None:
        facts = {
            "name": "sums",
            "state": "state",
            "data": "data",
            "source": "",
            "watermark": 'allowed_lateness = "1h"',
            "size": "1h",
            "total": "sum(v)",
            "sink": "sums.duckdb",
            "rows": "4",
            "drain": "false",
            "extra": "",
        }
        (self.folder / "p.toml").write_text(DEFINITION.format(**(facts | changes)))

    def write(self, name: str, **columns: object) -> None:
        pq.write_table(pa.table(columns), self.data / name)

    def good(self, name: str = "a.parquet", rows: int = 8) -> None:
        self.write(
            name,
            t=pa.array([i * HOUR for i in range(rows)], pa.int64()),
            k=["x"] * rows,
            v=pa.array(range(rows), pa.int64()),
        )

    def run(self, *, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        command = [*prefix, sys.executable, "-m", "thund", "run", "p.toml"]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)

    def fails(self, *words: str, prefix: tuple[str, ...] = ()) -> str:
        """The run ends with one error in four plain lines, which names `words`."""
        done = self.run(prefix=prefix)
        assert done.returncode == 1, (done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        for line in ("error[", "allowed:", "where:", "do:"):
            assert line in done.stderr, done.stderr
        for word in words:
            assert word in done.stderr, (word, done.stderr)
        return done.stderr

    def passes(self) -> str:
        done = self.run()
        assert done.returncode == 0, done.stderr
        return done.stdout

    def status(self) -> dict[str, object]:
        done = subprocess.run(
            [sys.executable, "-m", "thund", "status", "p.toml", "--json"],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=True,
        )
        facts: dict[str, object] = json.loads(done.stdout)
        return facts

    def lane(self, lane: str) -> list[tuple[object, ...]]:
        import duckdb

        with duckdb.connect(str(self.folder / "sums.duckdb"), read_only=True) as connection:
            query = f'SELECT partition, "offset", * EXCLUDE (partition, "offset", watermark, _epoch) FROM sums_{lane} ORDER BY ALL'
            return connection.execute(query).fetchall()


@pytest.fixture
def front(tmp_path: Path) -> Front:
    return Front(tmp_path)


# ---- the definition ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"size": "0s"}, ("window.size", "0")),
        ({"size": "-1h"}, ("window.size",)),
        ({"size": "soon"}, ("window.size", "soon")),
        ({"extra": "colour = 3"}, ("trigger.colour",)),
        ({"watermark": 'alowed_lateness = "1h"'}, ("alowed_lateness", "allowed_lateness")),
        ({"watermark": 'delay = "-1s"'}, ("watermark.delay",)),
        ({"total": "median(v)"}, ("median", "sum")),
        ({"total": "sum"}, ("total",)),
        ({"data": "nowhere"}, ("nowhere",)),
    ],
)
def test_required_a_wrong_definition_is_one_clear_error(
    front: Front, changes: dict[str, str], words: tuple[str, ...]
) -> None:
    front.good()
    front.define(**changes)
    front.fails(*words)
    assert not (front.folder / "state").exists() or not any(
        (front.folder / "state").glob("epoch=*")
    )


def test_required_the_traceback_is_there_when_asked_for(front: Front) -> None:
    front.define(size="0s")
    command = [sys.executable, "-m", "thund", "--traceback", "run", "p.toml"]
    done = subprocess.run(command, cwd=front.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" in done.stderr


# ---- the data ----------------------------------------------------------------------------------------


def test_required_a_missing_column_is_named(front: Front) -> None:
    front.write("a.parquet", t=[0, 1], k=["x", "y"])
    front.define()
    front.fails("v", "t, k")


def test_required_a_column_of_the_wrong_type_is_named(front: Front) -> None:
    front.write("a.parquet", t=[0, 1], k=["x", "y"], v=["one", "two"])
    front.define()
    front.fails("v", "string")


def test_required_files_of_different_types_are_named(front: Front) -> None:
    front.good("a.parquet")
    front.write("b.parquet", t=[0, 1], k=["x", "y"], v=["one", "two"])
    front.define()
    front.fails("b.parquet")


@pytest.mark.law("A4", "A5", "A6")
def test_required_absurd_event_times_are_quarantined(front: Front) -> None:
    """Null, NaN, infinite, and years beyond the declared range: a lane, a count, and W stays sane."""
    front.write(
        "a.parquet",
        t=pa.array([0.0, None, float("nan"), float("inf"), 1e300, 2.0**52 + 1, HOUR, 2 * HOUR]),
        k=["x"] * 8,
        v=pa.array(range(8), pa.int64()),
    )
    front.define(drain="true")
    said = front.passes()
    assert "rows=8 admitted=3 late=0 invalid=5" in said
    reasons = [(row[1], row[2]) for row in front.lane("invalid")]
    assert reasons == [
        (1, "null"),
        (2, "nan"),
        (3, "nan"),
        (4, "out_of_range"),
        (5, "out_of_range"),
    ]


@pytest.mark.law("A4")
def test_required_the_declared_range_is_inclusive(front: Front) -> None:
    edges = [-MAX_EVENT_TIME - 1, -MAX_EVENT_TIME, MAX_EVENT_TIME, MAX_EVENT_TIME + 1]
    front.write("a.parquet", t=pa.array(edges, pa.int64()), k=["x"] * 4, v=[1, 2, 3, 4])
    front.define(drain="true")
    assert "rows=4 admitted=2 late=0 invalid=2" in front.passes()
    assert [row[1] for row in front.lane("invalid")] == [0, 3]


@pytest.mark.law("A4")
def test_required_one_garbage_cell_does_not_stop_a_csv(front: Front) -> None:
    rows = ["t,k,v", *(f"2024-01-01T0{i}:00:00Z,x,{i}" for i in range(5)), "yesterday,x,9"]
    (front.data / "a.csv").write_text("\n".join(rows) + "\n")
    front.define(drain="true")
    assert "rows=6 admitted=5 late=0 invalid=1" in front.passes()
    assert [(row[1], row[2]) for row in front.lane("invalid")] == [(5, "undecodable")]


def test_required_an_empty_table_is_no_rows_and_an_empty_file_is_an_error(front: Front) -> None:
    front.good("a.parquet", rows=0)
    front.define(drain="true")
    assert "rows=0" in front.passes()
    (front.data / "b.parquet").write_bytes(b"")
    front.fails("b.parquet")


def test_required_a_truncated_parquet_file_is_named_and_what_was_committed_stands(
    front: Front,
) -> None:
    front.good("a.parquet")
    front.define()
    front.passes()
    before = front.status()
    front.good("b.parquet", rows=100)
    whole = (front.data / "b.parquet").read_bytes()
    (front.data / "b.parquet").write_bytes(whole[: len(whole) // 2])
    front.fails("b.parquet")
    assert front.status() == before
    (front.data / "b.parquet").write_bytes(whole)
    assert "rows=108" in front.passes()


@pytest.mark.law("S1", "S4")
@pytest.mark.parametrize("damage", ["changed", "shorter", "removed"])
def test_required_a_file_that_changed_since_its_offset_was_committed_stops_the_run(
    front: Front, damage: str
) -> None:
    front.good("a.parquet")
    front.good("b.parquet")
    front.define()
    front.passes()
    before = front.status()
    if damage == "changed":
        front.write("a.parquet", t=pa.array([HOUR] * 8, pa.int64()), k=["z"] * 8, v=[7] * 8)
    elif damage == "shorter":
        front.good("a.parquet", rows=3)
    else:
        (front.data / "a.parquet").unlink()
    front.fails("a")
    assert front.status() == before


# ---- the state folder --------------------------------------------------------------------------------


@pytest.mark.law("K8")
def test_required_the_state_of_another_pipeline_is_refused(front: Front) -> None:
    front.good()
    front.define()
    front.passes()
    before = front.status()
    front.define(name="other", sink="other.duckdb")
    front.fails("other", "sums")
    front.define(size="2h", sink="other.duckdb")
    front.fails("size", "7200000", "3600000")
    front.define()
    assert front.status() == before


def test_required_a_file_in_the_place_of_the_state_folder_is_an_error(front: Front) -> None:
    front.good()
    front.define()
    (front.folder / "state").write_text("not a folder")
    front.fails("state")
    assert (front.folder / "state").read_text() == "not a folder"


def in_own_mount(script: str) -> tuple[str, ...]:
    """A command prefix under which `script` has prepared a mount that only the command sees."""
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare(1) to mount a small or read-only disk")
    probe = subprocess.run(
        ["unshare", "-rm", "sh", "-c", "mount -t tmpfs tmpfs /mnt"],
        capture_output=True,
        check=False,
    )
    if probe.returncode:
        pytest.skip("needs leave to mount in a namespace of its own")
    return ("unshare", "-rm", "sh", "-ec", f'{script}; exec "$@"', "sh")


def test_required_a_read_only_state_folder_is_one_clear_error(front: Front) -> None:
    front.good()
    front.define()
    front.passes()
    before = front.status()
    front.good("b.parquet")
    state = front.folder / "state"
    prefix = in_own_mount(f"mount --bind {state} {state} && mount -o remount,ro,bind {state}")
    front.fails("state", prefix=prefix)
    assert front.status() == before
    front.passes()


def test_required_a_full_disk_is_one_clear_error_and_the_next_run_goes_on(front: Front) -> None:
    """The state folder lies on a disk of 64 KiB; epochs are committed until it is full."""
    rows = 4000
    front.write(
        "a.parquet",
        t=pa.array([i * HOUR for i in range(rows)], pa.int64()),
        k=[f"key-{i}" for i in range(rows)],
        v=pa.array(range(rows), pa.int64()),
    )
    front.define(rows="100")
    state, saved = front.folder / "state", front.folder / "saved"
    state.mkdir()
    saved.mkdir()
    script = f"mount -t tmpfs -o size=64k tmpfs {state}"
    prefix = in_own_mount(script)
    keep = f'{script}; set +e; "$@"; code=$?; cp -r {state}/. {saved}/; exit $code'
    front.fails("state", prefix=(*prefix[:4], keep, "sh"))
    shutil.rmtree(state)
    saved.rename(state)
    committed = front.status()["epoch"]
    assert isinstance(committed, int)
    assert committed > 0
    assert f"rows={rows} " in front.passes()
