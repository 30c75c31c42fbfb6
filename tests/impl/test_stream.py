"""Record batches that a caller hands over are a log: skipped, waited for, let go, or said to be lost."""

from __future__ import annotations

import json
import threading

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thund
from thund.connectors.stream import ONLY, with_stream_input
from thund_contract.errors import CallerError, InputError

PLENTY = 1 << 40


def batch(first, names):
    et = pa.array(range(first, first + len(names)), pa.int64())
    return pa.record_batch({"et": et, "p": pa.array(list(names), pa.string())})


def batches(*groups):
    first, made = 0, []
    for names in groups:
        made.append(batch(first, names))
        first += len(names)
    return made


def read_all(s, after, *, max_rows=1000, commit=False):
    """Rows as (partition, offset, prev), assigning partitions as they show up."""
    rows = []
    while True:
        d = s.read(after, dict.fromkeys(after, PLENTY), max_rows)
        if d is None:
            return rows
        assert d.num_rows <= max_rows
        assert d.columns.column("et").to_pylist() == d.offset.tolist()
        places = [d.partitions[p] for p in d.partition]
        rows += zip(places, d.offset.tolist(), d.prev.tolist(), strict=True)
        after.update({name: last for name, (_, last) in d.by_partition().items()})
        if commit:
            s.commit(after)
        new = {name: -1 for name in s.partitions() if name not in after}
        assert d.num_rows or new, "an empty delivery waits for something"
        after.update(new)


def test_required_without_a_column_it_is_one_partition_and_batches_are_not_copied():
    given_ = batches("xx", "", "yyy")
    s = thund.with_stream_input(given_)
    assert s.partitions() == (ONLY,)
    d = s.read({ONLY: -1}, {ONLY: PLENTY}, 10)
    assert (
        d.columns.column("et").buffers()[1].address == given_[0].column("et").buffers()[1].address
    )
    rows = read_all(with_stream_input(given_), {ONLY: -1})
    assert rows == [(ONLY, o, o - 1) for o in range(5)]


def test_required_a_column_divides_it_and_new_partitions_are_waited_for():
    s = with_stream_input(iter(batches("aab", "bca")), partition="p", partitions=["b"])
    assert s.partitions() == ("b",)
    d = s.read({"b": -1}, {"b": 9}, 10)
    assert d is not None
    assert d.num_rows == 0
    assert s.partitions() == ("a", "b")
    assert read_all(s, {"a": -1, "b": -1}) == [
        ("a", 0, -1),
        ("a", 1, 0),
        ("b", 2, -1),
        ("b", 3, 2),
        ("c", 4, -1),
        ("a", 5, 1),
    ]


@given(
    st.lists(st.text("ab", max_size=5), max_size=6),
    st.integers(1, 4),
    st.lists(st.integers(0, 4), min_size=2, max_size=2),
)
def test_required_rows_stop_at_the_first_without_credit_and_go_on_from_anywhere(
    groups, max_rows, credit
):
    names = "".join(groups)
    s = with_stream_input(batches("", *groups), partition="p", partitions="ab")
    after, left, got = {"a": -1, "b": -1}, dict(zip("ab", credit, strict=True)), []
    while (d := s.read(after, left, max_rows)) is not None and d.num_rows:
        for name, (rows, last) in d.by_partition().items():
            after[name], left[name] = last, left[name] - rows
        got += [d.partitions[p] for p in d.partition]
    assert "".join(got) == names[: len(got)]
    if len(got) < len(names):
        assert d is not None
        assert left[names[len(got)]] == 0
    fresh = with_stream_input(iter(batches("", *groups)), partition="p", partitions="ab")
    rest = read_all(fresh, dict(after), max_rows=max_rows)
    assert "".join(p for p, *_ in rest) == names[len(got) :]
    assert [o for _, o, _ in rest] == list(range(len(got), len(names)))
    for name in "ab":
        chain = [after[name], *(o for p, o, _ in rest if p == name)]
        assert [before for p, _, before in rest if p == name] == chain[:-1]


def test_required_after_a_restart_committed_rows_are_skipped_and_not_kept():
    s = with_stream_input(iter(batches("aa", "aa", "ab", "ab")), partition="p", partitions="ab")
    assert read_all(s, {"a": 4, "b": -1}) == [("b", 5, -1), ("a", 6, 4), ("b", 7, 5)]
    assert [block.first for block in s._kept] == [4, 6]


def test_required_an_input_that_ends_before_what_was_read_is_an_error():
    s = with_stream_input(iter(batches("aaa")))
    with pytest.raises(InputError, match="ended after 3 rows") as caught:
        read_all(s, {ONLY: 3})
    assert caught.value.code == "lost_rows"
    assert read_all(with_stream_input(iter(batches("aaa"))), {ONLY: 2}) == []


def test_required_uncommitted_rows_can_be_had_again_and_committed_ones_are_let_go():
    s = with_stream_input(iter(batches("aa", "bb", "aa")), partition="p", partitions="ab")
    rows = read_all(s, {"a": -1, "b": -1})
    assert read_all(s, {"a": -1, "b": -1}) == rows
    s.commit({"a": 1, "b": 2})
    assert [block.first for block in s._kept] == [2, 4]
    assert read_all(s, {"a": 1, "b": 2}) == [("b", 3, 2), ("a", 4, 1), ("a", 5, 4)]
    with pytest.raises(InputError, match="cannot be read twice"):
        s.read({"a": 0, "b": 2}, {"a": 9, "b": 9}, 10)


def test_required_memory_does_not_grow_with_what_is_committed():
    s = with_stream_input((batch(4 * i, "abab") for i in range(50)), partition="p")
    read_all(s, {}, max_rows=3, commit=True)
    assert len(s._kept) == 0


@pytest.mark.parametrize(
    "make", [lambda: batches("aa", "bb"), lambda: lambda: iter(batches("aa", "bb"))]
)
def test_required_a_list_or_a_function_can_be_read_again(make):
    s = with_stream_input(make(), partition="p")
    rows = read_all(s, {}, commit=True)
    assert s.read_rows("b", 2, 3).column("et").to_pylist() == [2, 3]
    assert s.read_rows("a", 0, 1).column("et").to_pylist() == [0, 1]
    assert read_all(s, {"a": -1, "b": -1}) == rows
    with pytest.raises(InputError, match="ends before offset 4"):
        s.read_rows("b", 3, 4)


def test_required_an_iterator_gives_again_only_what_it_keeps():
    s = with_stream_input(iter(batches("aa", "aa")))
    s.read({ONLY: -1}, {ONLY: 9}, 9)
    assert s.read_rows(ONLY, 0, 1).column("et").to_pylist() == [0, 1]
    with pytest.raises(InputError, match="not read yet"):
        s.read_rows(ONLY, 0, 3)
    s.commit({ONLY: 1})
    with pytest.raises(InputError, match="cannot be read twice"):
        s.read_rows(ONLY, 0, 1)


def test_required_the_iterator_is_asked_only_for_what_is_read():
    """A source that is not read is paused: it takes nothing and sheds nothing."""
    asked = []

    def endless():
        first = 0
        while True:
            asked.append(first)
            yield batch(first, "aa")
            first += 2

    s = with_stream_input(endless())
    for last in (1, 3):
        assert s.read({ONLY: last - 2}, {ONLY: 9}, 10).num_rows == 2
    assert s.read({ONLY: 3}, {ONLY: 0}, 10).num_rows == 0
    assert asked == [0, 2, 4]


def test_required_a_commit_does_not_wait_for_a_caller_without_rows():
    asked, more = threading.Event(), threading.Event()

    def slow():
        yield batch(0, "aa")
        asked.set()
        assert more.wait(20)

    s = with_stream_input(slow())
    assert s.read({ONLY: -1}, {ONLY: 9}, 9).num_rows == 2
    reader = threading.Thread(target=s.read, args=({ONLY: 1}, {ONLY: 9}, 9), daemon=True)
    reader.start()
    assert asked.wait(20)
    writer = threading.Thread(target=s.commit, args=({ONLY: 1},), daemon=True)
    writer.start()
    writer.join(20)
    committed = not writer.is_alive()
    more.set()
    reader.join(20)
    assert committed
    assert s.fingerprint({ONLY: 1})["rows"] == 2


def test_required_tables_and_readers_are_inputs_too():
    table = pa.Table.from_batches(batches("aa", "a"))
    assert len(read_all(with_stream_input(table), {ONLY: -1})) == 3
    assert len(read_all(with_stream_input(table.to_reader()), {ONLY: -1})) == 3


def test_required_a_fingerprint_knows_columns_and_kind():
    s = with_stream_input(batches("aa"))
    mark = json.loads(json.dumps(s.fingerprint({ONLY: 1})))
    assert mark["rows"] == 2
    with_stream_input(batches("bbb")).verify(mark)
    with pytest.raises(InputError, match="columns"):
        with_stream_input([pa.record_batch({"et": [1]})]).verify(mark)
    with pytest.raises(InputError, match="kind"):
        s.verify({"kind": "files"})


def test_required_what_cannot_be_a_stream_is_refused():
    with pytest.raises(CallerError, match="no batch"):
        with_stream_input([])
    assert read_all(with_stream_input([], schema=pa.schema({"et": pa.int64()})), {ONLY: -1}) == []
    with pytest.raises(CallerError, match="no column 'q'"):
        with_stream_input(batches("a"), partition="q")
    mixed = [*batches("aa"), pa.record_batch({"et": [1.5]})]
    with pytest.raises(InputError, match="columns of the stream") as caught:
        read_all(with_stream_input(mixed), {ONLY: -1})
    assert caught.value.where.endswith("offset 2")
    empty = pa.record_batch({"et": [0, 1], "p": pa.array(["a", None])})
    with pytest.raises(InputError, match="no partition") as caught:
        read_all(with_stream_input([empty], partition="p"), {})
    assert caught.value.where.endswith("offset 1")


def test_required_offsets_are_int64_and_places_int32():
    d = with_stream_input(batches("ab"), partition="p", partitions="ab").read(
        {"a": -1, "b": -1}, {"a": 5, "b": 5}, 9
    )
    assert (d.offset.dtype, d.prev.dtype, d.partition.dtype) == (np.int64, np.int64, np.int32)
