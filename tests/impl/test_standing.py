"""Who holds W and what waits for it, as tables of cases; and what a person sees of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import thund
import thund.cli
from thund.builder import count, files, memory, pipeline
from thund.definition import Pipeline
from thund.standing import OpenWindow, Since, bound, holder, open_windows, since, without
from thund_contract.errors import CallerError
from thund_contract.vocabulary import (
    CALENDAR,
    COUNT,
    HOPPING,
    NEVER,
    SESSION,
    Aggregate,
    Config,
    PartitionState,
    WindowSpec,
)


def at(name: str, time: int | None, *, assigned: bool = True, idle: bool = False) -> PartitionState:
    return PartitionState(name, assigned, 0, time, 0, 0, 0, 0, idle)


GONE = at("a", 1, assigned=False)
IDLE = at("b", 2, idle=True)


@pytest.mark.parametrize(
    ("partitions", "held_by", "allowed", "w_without"),
    [
        ([], None, None, None),
        ([GONE], None, None, None),
        ([GONE, IDLE], None, None, None),
        ([at("c", 9)], "c", 6, 5),
        ([GONE, IDLE, at("c", 9), at("d", 20)], "c", 6, 17),
        ([at("c", 20), at("d", 9)], "d", 6, 17),
        ([at("d", 9), at("c", 9)], "c", 6, 6),
        ([at("c", -4), at("d", 0)], "c", -7, 5),
        ([at("c", 20), at("d", None)], "d", NEVER, 17),
        ([at("d", None), at("c", None)], "c", NEVER, 5),
    ],
)
def test_required_the_holder_is_the_active_partition_that_is_furthest_behind(
    partitions: list[PartitionState],
    held_by: str | None,
    allowed: int | None,
    w_without: int | None,
) -> None:
    """W stands at 5, the delay is 3."""
    assert holder(partitions) == held_by
    assert bound(partitions, 3) == allowed
    if held_by is not None:
        assert without(5, partitions, 3, held_by) == w_without


@pytest.mark.parametrize(
    ("holders", "look_back", "found"),
    [
        ("ccc", 9, Since(1, earlier=False)),
        ("cdc", 9, Since(3, earlier=False)),
        ("dcc", 9, Since(2, earlier=False)),
        ("ccc", 3, Since(1, earlier=False)),
        ("cccc", 3, Since(2, earlier=True)),
        ("dccc", 3, Since(2, earlier=False)),
        ("ccd", 9, None),
    ],
)
def test_required_since_is_the_first_epoch_without_another_holder_after_it(
    holders: str, look_back: int, found: Since | None
) -> None:
    """holders: of the epochs 1, 2, ...; c is asked for."""
    history = [(epoch, [at(name, 0)]) for epoch, name in enumerate(holders, 1)]
    assert since("c", reversed(history), look_back) == found


def of_window(spec: WindowSpec, *key: str) -> Config:
    return Config("p", "t", key, spec, (Aggregate("rows", COUNT),), grace_ms=2)


def state(start: str, rows: Sequence[tuple[object, ...]], *names: str) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * (1 + len(names))
    kinds = [
        pa.int64() if name.startswith(("window", "cell")) else None for name in (start, *names)
    ]
    arrays = [pa.array(c, kind) for c, kind in zip(columns, kinds, strict=True)]
    return pa.table(dict(zip((start, *names), arrays, strict=True)))


@pytest.mark.parametrize(
    ("spec", "table", "found"),
    [
        (
            WindowSpec(10, 3),
            state("window_start", [(13, "x"), (3, "x"), (3, "y"), (-7, "x")], "key(k)"),
            [(3, 13, 2), (13, 23, 1)],
        ),
        (
            WindowSpec(10, 0, HOPPING, 4),
            state("cell_start", [(2, "x"), (4, "x"), (4, "y"), (8, None)], "key(k)"),
            [(-4, 6, 2), (0, 10, 3), (4, 14, 3), (8, 18, 1)],
        ),
        (
            WindowSpec(0, kind=SESSION, gap_ms=5),
            state("window_start", [(1, 9, "x"), (2, 8, "y"), (1, 9, "y")], "window_end", "key(k)"),
            [(1, 9, 2), (2, 8, 1)],
        ),
        (
            WindowSpec(0, kind=CALENDAR, unit="hour", zone="UTC"),
            state("window_start", [(0, "x"), (3_600_000, "x")], "key(k)"),
            [(0, 3_600_000, 1), (3_600_000, 7_200_000, 1)],
        ),
    ],
    ids=["tumbling", "hopping", "session", "calendar"],
)
def test_required_open_windows_are_those_of_the_state_that_w_has_not_closed(
    spec: WindowSpec, table: pa.Table, found: list[tuple[int, int, int]]
) -> None:
    """W is 6 and the grace 2: an end of 4 is closed, one of 6 is open until W is 8."""
    assert open_windows(of_window(spec, "k"), 6, table) == tuple(OpenWindow(*w) for w in found)
    assert [w for w in found if w[1] == 6] == [
        (w.start_ms, w.end_ms, w.groups)
        for w in open_windows(of_window(spec, "k"), 7, table)
        if w.end_ms == 6
    ]
    assert all(w.end_ms > 6 for w in open_windows(of_window(spec, "k"), 8, table))
    assert open_windows(of_window(spec, "k"), 6, table.slice(0, 0)) == ()


def test_required_without_a_key_a_window_has_one_group() -> None:
    table = state("cell_start", [(2,), (4,)])
    found = open_windows(of_window(WindowSpec(10, 0, HOPPING, 4)), NEVER, table)
    assert [(w.start_ms, w.groups) for w in found] == [(-4, 1), (0, 1), (4, 1)]


@pytest.fixture
def made(tmp_path: Path) -> Pipeline:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.csv").write_text("t,k\n0,x\n25000,x\n61000,y\n")
    (tmp_path / "data/b.csv").write_text("t,k\n12000,x\n")
    steps = (
        pipeline("sums").source(files(tmp_path / "data")).watermark("t").key("k").tumbling("10s")
    )
    steps = steps.aggregate(rows=count()).sink(memory()).incremental(str(tmp_path / "state"))
    return steps.trigger(rows=2, once=True).build()


def test_required_a_definition_a_file_and_a_folder_have_one_status(
    made: Pipeline, tmp_path: Path
) -> None:
    assert made.state_root is not None
    Path(made.state_root).mkdir()
    assert thund.status(made) is None
    thund.run(made)
    found = thund.status(made)
    assert found is not None
    assert (found.holder, found.watermark, found.without) == ("b", 12_000, 61_000)
    assert [(w.start_ms, w.end_ms, w.groups) for w in found.waiting] == [
        (10_000, 20_000, 1),
        (20_000, 30_000, 1),
    ]
    assert thund.status(made.state_root) == found
    (tmp_path / "p.toml").write_text(made.to_toml())
    assert thund.status(tmp_path / "p.toml") == found


def test_required_a_pipeline_without_a_state_has_no_status(made: Pipeline) -> None:
    import msgspec

    bare = msgspec.structs.replace(made, mode="recompute", state_root=None)
    with pytest.raises(CallerError, match="no state_root"):
        thund.status(bare)


def shown(*arguments: str) -> str:
    done = CliRunner().invoke(thund.cli.cli, ["status", *arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def test_required_the_command_shows_the_holder_and_what_waits(made: Pipeline) -> None:
    assert made.state_root is not None
    Path(made.state_root).mkdir()
    assert "no committed epoch yet" in shown(made.state_root)
    assert json.loads(shown(made.state_root, "--json")) is None
    thund.run(made)
    text = shown(made.state_root)
    assert "b holds W since epoch 1, committed " in text
    assert "Without it W would be 1970-01-01 00:01:01; 2 open windows with 2 groups" in text
    facts = json.loads(shown(made.state_root, "--json"))
    assert facts["holder"] == "b"
    first = {"start_ms": 10_000, "end_ms": 20_000, "groups": 1, "operator": ""}
    assert facts["waiting"][0] == first
    assert facts["partitions"][1]["behind_ms"] == 49_000


def test_required_the_command_says_when_nothing_holds_w(made: Pipeline) -> None:
    import msgspec

    assert made.state_root is not None
    trigger = msgspec.structs.replace(made.trigger, drain=True)
    thund.run(msgspec.structs.replace(made, trigger=trigger))
    assert "W has ended." in shown(made.state_root)
