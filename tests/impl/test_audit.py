"""The audit says yes to a true history, and names the first epoch of one that is not."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import thund
import thund.cli
from thund.builder import count, files, g_counter, lww, memory, monoid, pipeline, sum_
from thund_conformance.audit import Audit, audit_history, open_place

MINUTE = 60_000


def write(folder: Path, values: list[int]) -> None:
    folder.mkdir(exist_ok=True)
    times = pa.array([i * MINUTE for i in range(len(values))], pa.int64())
    pq.write_table(
        pa.table({"t": times, "k": ["x"] * len(values), "v": values}), folder / "a.parquet"
    )


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A history of five epochs of eight rows."""
    write(tmp_path / "data", list(range(40)))
    steps = pipeline("sums").source(files(tmp_path / "data")).watermark("t").key("k")
    steps = steps.tumbling("5m").aggregate(rows=count(), total=sum_("v")).sink(memory())
    steps = steps.incremental(str(tmp_path / "state")).trigger(rows=8, once=True)
    assert thund.run(steps.build()).progress.epoch == 5
    return tmp_path / "state"


def audited(state: Path) -> Audit:
    return audit_history(*open_place(str(state)))


@pytest.mark.law("T7", "S1", "K3")
def test_required_a_true_history_passes(state: Path) -> None:
    found = audited(state)
    assert (found.same, found.epochs, found.rows) == (True, 5, 40)


@pytest.mark.law("T7", "S1")
def test_required_a_source_that_gives_another_value_is_found_at_its_epoch(state: Path) -> None:
    values = list(range(40))
    values[19] += 1  # in the third epoch
    write(state.parent / "data", values)
    found = audited(state)
    assert found.differs_at == 3
    assert any("total" in line or "state" in line or "outbox" in line for line in found.differences)


@pytest.mark.law("T7", "S1", "S4")
def test_required_a_source_that_has_fewer_rows_is_found(state: Path) -> None:
    write(state.parent / "data", list(range(30)))
    assert audited(state).differs_at == 4


@pytest.mark.law("T7")
def test_required_an_engine_that_was_wrong_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A history that a wrong engine committed, with all its checksums right."""
    write(tmp_path / "data", list(range(40)))
    steps = pipeline("sums").source(files(tmp_path / "data")).watermark("t", delay="1m").key("k")
    steps = steps.tumbling("5m").aggregate(rows=count()).sink(memory())
    steps = steps.incremental(str(tmp_path / "state")).trigger(rows=8, once=True)
    with monkeypatch.context() as wrong:
        late = property(lambda windows: windows._closed_by - 2 * MINUTE)
        wrong.setattr("thund.windows.Windows._passed", late)
        thund.run(steps.build())
    assert audited(tmp_path / "state").differs_at == 1


@pytest.mark.law("T7", "A7", "A8", "E6")
@pytest.mark.parametrize("kind", ["hopping", "session", "calendar"])
def test_required_a_history_with_all_around_the_window_passes(tmp_path: Path, kind: str) -> None:
    """Renamed and derived columns, a filter, repeats, panes, several columns of one aggregate."""
    write(tmp_path / "data", [i * 7 % 11 for i in range(40)])
    steps = (
        pipeline("all")
        .source(files(tmp_path / "data"))
        .rename(host="k", at="t")
        .derive(id="v % 5", up="v * v", v="if_else(v == 3, null, v)", host="upper(host)")
        .filter("v != 4")
        .watermark("at", delay="2m", grace="1m", late_rule="window")
        .deduplicate("id", remember="2m")
        .key("host")
    )
    windowed = {
        "hopping": steps.hopping("5m", slide="2m"),
        "session": steps.session("2m"),
        "calendar": steps.calendar("hour", zone="Europe/Berlin", offset="10m"),
    }
    value = (
        windowed[kind]
        .aggregate(n=count("v"), total=sum_("v"), least=lww("v", "up"), ups=g_counter("up", "host"))
        .sink(memory())
        .incremental(str(tmp_path / "state"))
        .output("update")
        .panes("retracting")
        .trigger(rows=3, once=True, drain=True)
        .build()
    )
    shown = thund.run(value).progress
    assert min(shown.filtered, shown.repeated, shown.admitted) > 3
    found = audited(tmp_path / "state")
    assert found.same, "\n".join(found.differences)


class Longest:
    """The length of the longest run of bits, as a maximum."""

    name, version, arity, output_type = "longest", 1, 1, pa.int64()

    def empty(self):
        return 0

    def lift(self, *values):
        return values[0].bit_length()

    def merge(self, left, right):
        return max(left, right)

    def encode(self, state):
        return bytes([state])

    def decode(self, data):
        return data[0]

    def show(self, state):
        return state


@pytest.mark.law("T7", "G4")
def test_required_a_history_with_a_users_monoid_passes(tmp_path: Path) -> None:
    write(tmp_path / "data", list(range(40)))
    thund.register_monoid(Longest(), [(1,), (5,), (300,)])
    steps = pipeline("bits").source(files(tmp_path / "data")).watermark("t").key("k")
    steps = steps.hopping("10m", slide="4m").aggregate(bits=monoid("longest@1", "v")).sink(memory())
    steps = steps.incremental(str(tmp_path / "state")).trigger(rows=8, once=True, drain=True)
    table = thund.run(steps.build()).table
    assert table is not None
    assert max(table.column("bits").to_pylist()) == 6
    found = audited(tmp_path / "state")
    assert found.same, "\n".join(found.differences)


@pytest.mark.law("T7")
def test_required_the_command_says_which_epoch_and_exits_with_1(state: Path) -> None:
    assert CliRunner().invoke(thund.cli.cli, ["audit", str(state)]).exit_code == 0
    write(state.parent / "data", [0] * 40)
    done = CliRunner().invoke(thund.cli.cli, ["audit", str(state)])
    assert done.exit_code == 1
    assert "audit: FAIL at epoch 1" in done.output
