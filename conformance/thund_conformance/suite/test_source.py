"""The laws of the source and of the link: replay, sequence, lost rows, order, and no shedding."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from thund.batch import Delivery
from thund.connectors.files import FileSource
from thund.connectors.stream import with_stream_input
from thund.credits import Credits
from thund.definition import FilesSpec
from thund.source import Source
from thund_conformance import judge, link
from thund_conformance.scripts import config, log, row, scenario
from thund_contract.errors import InputError, LawBroken
from thund_contract.scenario import Barrier, Deliver, Duplicate, Reorder, Restart, Scenario
from thund_contract.vocabulary import NONE_BEFORE, Rows

# ---- S2, S3: on the engine ------------------------------------------------------------------------


@pytest.mark.law("S2")
def test_required_no_disorder_of_the_link_alters_a_row(engine_name: str) -> None:
    """In order, turned round, and with every row twice: the same epochs."""
    part = log("p0", 3, 1, 12, 11, 25, 24)
    calm = scenario(config(delay_ms=2), [part], Deliver("p0", 6), Barrier())
    turned = Scenario(calm.config, calm.logs, calm.assigned, (Reorder("p0", 6), Barrier()))
    twice = tuple(x for i in range(6) for x in (Deliver("p0", 1), Duplicate("p0", i)))
    doubled = Scenario(calm.config, calm.logs, calm.assigned, (*twice, Barrier()))
    first = judge.run_on(engine_name, calm)
    for other in (turned, doubled):
        found = judge.run_on(engine_name, other)
        judge.expect_same_epochs(first.epochs, found.epochs, ("calm", "wild"))
    assert found.duplicates == 6


SPARSE = (
    "p0",
    tuple(row("p0", offset, time) for offset, time in ((2, 1), (5, 2), (6, 3), (40, 4))),
)


def opened(engine_name: str) -> link.Link:
    s = scenario(config(), [SPARSE])
    at = link.Link(judge.maker(engine_name, s), s)
    at.alive.send("p0", 4)
    return at


def hand(at: link.Link, *places: int) -> None:
    part = at.logs["p0"]
    for place in places:
        at.alive.deliver(part[place], part[place - 1].offset if place else NONE_BEFORE)


@pytest.mark.law("S3")
def test_required_rows_are_accepted_along_the_chain_of_offsets(engine_name: str) -> None:
    """Offsets 2, 5, 6, 40: a hole in the numbers is no gap in the chain."""
    for order in permutations(range(4)):
        at = opened(engine_name)
        hand(at, *order)
        at.alive.commit()
        assert at.alive.position("p0") == 40
        assert [i for e in at.world.epochs() for i in e.items][1:] == [Rows("p0", 2, 40, 4)]


@pytest.mark.law("S3")
def test_required_a_row_waits_for_the_one_before_it(engine_name: str) -> None:
    at = opened(engine_name)
    hand(at, 1, 2)
    assert at.alive.position("p0") == NONE_BEFORE
    hand(at, 0)
    assert at.alive.position("p0") == 6


@pytest.mark.law("S3")
def test_required_what_is_accepted_or_held_is_a_duplicate(engine_name: str) -> None:
    """Row 2 is held and comes again; then row 0 comes twice; then all come once more."""
    at = opened(engine_name)
    hand(at, 2, 2)
    assert at.alive.duplicates == 1
    hand(at, 0, 0)
    assert at.alive.duplicates == 2
    hand(at, 1, 2, 1, 0, 3)
    assert at.alive.duplicates == 5
    assert at.alive.position("p0") == 40


@pytest.mark.law("S3")
def test_required_after_a_restart_the_chain_goes_on_from_the_last_accepted_row(
    engine_name: str,
) -> None:
    s = scenario(
        config(), [SPARSE], Deliver("p0", 2), Barrier(), Deliver("p0", 1), Restart(),
        Deliver("p0", 2), Barrier(),
    )  # fmt: skip
    items = [i for e in judge.run_on(engine_name, s).epochs for i in e.items if isinstance(i, Rows)]
    assert items == [Rows("p0", 2, 5, 2), Rows("p0", 6, 40, 2)]


# ---- S1, S4, S5: sources of the implementation ----------------------------------------------------


def folder(root: Path, **parts: list[int]) -> Path:
    """CSV files, one a partition; column n numbers the rows of all files."""
    for name, times in parts.items():
        lines = ["et,n", *(f"{time},{i}" for i, time in enumerate(times))]
        (root / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return root


def open_folder(root: Path, **options: Any) -> FileSource:
    return FileSource(FilesSpec(path=str(root), **options), event_time="et")


def read_all(
    source: Source, after: Mapping[str, int] | None = None, step: int = 3
) -> list[tuple[str, int, int, int]]:
    """(partition, offset, prev, event time) of every row in the order of the source."""
    sent = dict.fromkeys(source.partitions(), NONE_BEFORE) | dict(after or {})
    credit = dict.fromkeys(sent, 10**6)
    found = []
    while (d := source.read(sent, credit, step)) is not None:
        found += rows_of(d)
        for name, (_, last) in d.by_partition().items():
            sent[name] = last
    return found


def rows_of(d: Delivery) -> list[tuple[str, int, int, int]]:
    names = [d.partitions[i] for i in d.partition.tolist()]
    times = d.columns.column("et").to_pylist()
    return list(zip(names, d.offset.tolist(), d.prev.tolist(), times, strict=True))


@pytest.mark.law("S1")
def test_required_reading_a_range_again_gives_the_same_rows(tmp_path: Path) -> None:
    """From the start, from the middle, and one range of one partition."""
    source = open_folder(folder(tmp_path, a=[5, 6, 7, 8], b=[1, 2, 3]), chunk_rows=2)
    whole = read_all(source)
    assert len(whole) == 7
    assert read_all(open_folder(tmp_path, chunk_rows=2), step=1) == whole
    tail = [r for r in whole if (r[0], r[1]) not in {("a", 0), ("a", 1), ("b", 0), ("b", 1)}]
    assert read_all(source, {"a": 1, "b": 1}) == tail
    assert source.read_rows("a", 1, 2).column("et").to_pylist() == [6, 7]
    assert source.read_rows("a", 1, 2).column("et").to_pylist() == [6, 7]


@pytest.mark.law("S1")
def test_required_offsets_increase_and_name_the_one_before(tmp_path: Path) -> None:
    source = open_folder(folder(tmp_path, a=[5, 6, 7], b=[1, 2]), chunk_rows=1)
    for name in ("a", "b"):
        mine = [(offset, prev) for n, offset, prev, _ in read_all(source) if n == name]
        assert [prev for _, prev in mine] == [NONE_BEFORE, *(o for o, _ in mine[:-1])]
        assert mine == sorted(mine)


@pytest.mark.law("S4")
@pytest.mark.parametrize("how", ["changed", "truncated", "removed"])
def test_required_rows_that_are_no_longer_there_are_an_error(tmp_path: Path, how: str) -> None:
    """What was read before a restart has changed, is cut short, or is gone; it names the file."""
    source = open_folder(folder(tmp_path, a=[5, 6, 7, 8], b=[1, 2]))
    read_all(source)
    mark = source.fingerprint({"a": 3, "b": 1})
    path = tmp_path / "a.csv"
    text = path.read_text(encoding="utf-8")
    if how == "removed":
        path.unlink()
    else:
        path.write_text(
            text.replace("6,1", "9,1") if how == "changed" else text[:-8], encoding="utf-8"
        )
    with pytest.raises(InputError) as error:
        open_folder(tmp_path).verify(mark)
    assert "a" in str(error.value)


@pytest.mark.law("S4")
def test_required_a_source_that_grows_is_no_error(tmp_path: Path) -> None:
    source = open_folder(folder(tmp_path, a=[5, 6]))
    read_all(source)
    mark = source.fingerprint({"a": 1})
    with (tmp_path / "a.csv").open("a", encoding="utf-8") as file:
        file.write("7,2\n")
    grown = open_folder(tmp_path)
    grown.verify(mark)
    assert [r[3] for r in read_all(grown, {"a": 1})] == [7]


@pytest.mark.law("S4")
def test_required_a_stream_that_ends_before_what_was_read_is_an_error() -> None:
    batch = pa.record_batch({"et": pa.array([1, 2, 3], pa.int64())})
    with pytest.raises(InputError):
        read_all(with_stream_input([batch]), {"stream": 5})


@pytest.mark.law("S5")
@pytest.mark.parametrize("step", [1, 2, 100])
def test_required_a_bounded_source_takes_turns_by_chunks_of_offsets(
    tmp_path: Path, step: int
) -> None:
    """By (offset div 2, partition, offset), however much is read at a time."""
    source = open_folder(folder(tmp_path, b=[1, 2, 3], a=[5, 6, 7, 8, 9]), chunk_rows=2)
    order = [(name, offset) for name, offset, _, _ in read_all(source, step=step)]
    assert order == sorted(order, key=lambda at: (at[1] // 2, at[0], at[1]))
    assert len(order) == 8


@pytest.mark.law("S5")
@pytest.mark.parametrize("step", [1, 2, 100])
def test_required_an_order_column_merges_the_heads(tmp_path: Path, step: int) -> None:
    """The next row is that of the least head; a row hidden behind a later one waits for it."""
    folder(tmp_path, a=[4, 1, 9], b=[2, 4, 3])
    source = open_folder(tmp_path, order_by="et")
    order = [(name, offset) for name, offset, _, _ in read_all(source, step=step)]
    assert order == [("b", 0), ("a", 0), ("a", 1), ("b", 1), ("b", 2), ("a", 2)]


@pytest.mark.law("S5")
def test_required_offsets_alone_say_where_to_go_on(tmp_path: Path) -> None:
    """Stopped after any row and opened anew, the rest comes in the same order."""
    folder(tmp_path, a=[4, 1, 9], b=[2, 4, 3])
    for options in ({"chunk_rows": 2}, {"order_by": "et"}):
        whole = read_all(open_folder(tmp_path, **options))
        after: dict[str, int] = {}
        for index, (name, offset, _, _) in enumerate(whole):
            after[name] = offset
            assert read_all(open_folder(tmp_path, **options), after) == whole[index + 1 :]


# ---- C4 -----------------------------------------------------------------------------------------


@pytest.mark.law("C4")
def test_required_a_source_without_credit_is_paused_and_sheds_nothing(tmp_path: Path) -> None:
    """Nothing comes for a partition without credit; with credit again, the very next row comes."""
    source = open_folder(folder(tmp_path, a=[5, 6, 7], b=[1, 2]), chunk_rows=2)
    start = {"a": NONE_BEFORE, "b": NONE_BEFORE}
    waiting = source.read(start, {"a": 0, "b": 5}, 100)
    assert waiting is not None
    assert waiting.num_rows == 0
    one = source.read(start, {"a": 1, "b": 5}, 100)
    assert one is not None
    assert [(n, o) for n, o, _, _ in rows_of(one)] == [("a", 0)]
    again = source.read({"a": 0, "b": NONE_BEFORE}, {"a": 9, "b": 9}, 100)
    assert again is not None
    assert [(n, o) for n, o, _, _ in rows_of(again)] == [("a", 1), ("b", 0), ("b", 1), ("a", 2)]


@pytest.mark.law("C4")
def test_required_a_stream_is_asked_for_no_more_than_there_is_credit_for() -> None:
    """Its iterator stands still while there is no credit: the input waits, it is not buffered."""
    asked = []

    def batches() -> Any:
        for n in range(100):
            asked.append(n)
            yield pa.record_batch({"et": pa.array([n], pa.int64())})

    source = with_stream_input(batches)
    sent = {"stream": NONE_BEFORE}
    for _ in range(3):
        d = source.read(sent, {"stream": 1}, 100)
        assert d is not None
        sent = {"stream": int(d.offset[-1])}
    for _ in range(10):
        d = source.read(sent, {"stream": 0}, 100)
        assert d is not None
        assert d.num_rows == 0
    assert len(asked) <= 5


@pytest.mark.law("C4")
def test_required_no_row_is_sent_without_a_credit() -> None:
    own = Credits(2)
    own.add("a")
    own.send("a", 2)
    with pytest.raises(LawBroken):
        own.send("a", 1)
