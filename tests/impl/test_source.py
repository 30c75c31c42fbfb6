"""Deliveries come back into the log's order, each row once, whatever the link does to them."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from thund.batch import Delivery
from thund.order import merge
from thund.source import Sequencer
from thund_reference import source as reference


def delivery(*rows, partitions=("a", "b")):
    """Rows are (partition, offset, prev); the value column says which row it was."""
    return Delivery(
        pa.record_batch({"row": pa.array([f"{p}{o}" for p, o, _ in rows], pa.string())}),
        partitions,
        np.array([partitions.index(p) for p, _, _ in rows], np.int32),
        np.array([o for _, o, _ in rows], np.int64),
        np.array([p for _, _, p in rows], np.int64),
    )


def names(d):
    assert [f"{d.partitions[p]}{o}" for p, o in zip(d.partition, d.offset, strict=True)] == (
        d.columns.column("row").to_pylist()
    )
    return d.columns.column("row").to_pylist()


def test_required_rows_in_order_come_back_as_they_are():
    s = Sequencer({"a": -1, "b": 4})
    d = delivery(("a", 0, -1), ("b", 7, 4), ("a", 3, 0))
    assert s.deliver(d) is d
    assert (s.position("a"), s.position("b"), s.duplicates) == (3, 7, 0)


def test_required_a_held_row_follows_the_row_it_waited_for():
    s = Sequencer({"a": -1, "b": -1})
    assert names(s.deliver(delivery(("a", 2, 1), ("b", 0, -1), ("a", 1, 0)))) == ["b0"]
    assert (s.held("a"), s.position("a")) == (2, -1)
    assert names(s.deliver(delivery(("b", 1, 0), ("a", 0, -1), ("b", 2, 1)))) == [
        "b1",
        "a0",
        "a1",
        "a2",
        "b2",
    ]
    assert s.held("a") == 0


def test_required_duplicates_are_dropped_and_counted_held_ones_too():
    s = Sequencer({"a": 1})
    again = delivery(("a", 1, 0), ("a", 4, 3), ("a", 4, 3), partitions=("a",))
    assert s.deliver(again).num_rows == 0
    assert (s.duplicates, s.held("a")) == (2, 1)
    assert names(s.deliver(delivery(("a", 3, 1), ("a", 3, 1), partitions=("a",)))) == ["a3", "a4"]
    assert s.duplicates == 3


def test_required_removal_drops_held_rows_and_keeps_the_position():
    s = Sequencer({"a": 5, "b": -1})
    s.deliver(delivery(("a", 8, 7)))
    s.remove("a")
    assert (s.held("a"), s.position("a")) == (0, 5)
    assert names(s.deliver(delivery(("a", 6, 5), ("b", 0, -1)))) == ["b0"]
    assert (s.unassigned, s.duplicates) == (1, 0)
    s.add("a", 5)
    assert names(s.deliver(delivery(("a", 6, 5), ("a", 8, 6)))) == ["a6", "a8"]


def test_required_a_held_row_does_not_keep_its_whole_delivery_alive():
    s = Sequencer({"a": -1})
    big = delivery(("a", 900, 899), *[("a", o, o - 1) for o in range(500)], partitions=("a",))
    assert s.deliver(big).num_rows == 500
    ((parked, _),) = s._logs["a"].held.values()
    assert parked.num_rows == 1


@given(st.randoms(use_true_random=False), st.integers(1, 12), st.integers(1, 4))
def test_required_any_link_gives_what_the_reference_gives(rnd: random.Random, rows, batch):
    """Duplicates, reordering and cuts at random; both count and accept the same, row by row."""
    offsets = {p: sorted(rnd.sample(range(30), rows)) for p in "ab"}
    wire = [
        (p, o, before)
        for p in "ab"
        for o, before in zip(offsets[p], [-1, *offsets[p]], strict=False)
        for _ in range(rnd.choice([1, 1, 2]))
    ]
    rnd.shuffle(wire)
    s, want, duplicates = Sequencer({"a": -1, "b": -1}), [], 0
    states = {p: reference.Sequencer() for p in "ab"}
    got = []
    for at in range(0, len(wire), batch):
        part = wire[at : at + batch]
        for p, o, before in part:
            states[p], accepted, duplicate = reference.deliver(states[p], before, o)
            want += [f"{p}{one}" for one in accepted]
            duplicates += duplicate
        got += names(s.deliver(delivery(*part)))
        assert {p: s.position(p) for p in "ab"} == {p: states[p].last for p in "ab"}
        assert {p: s.held(p) for p in "ab"} == {p: len(states[p].held) for p in "ab"}
    assert got == want
    assert s.duplicates == duplicates


@given(st.lists(st.lists(st.integers(-3, 3), max_size=6), min_size=1, max_size=5), st.data())
def test_required_merge_takes_the_least_head_and_changes_no_partitions_order(logs, data):
    """Against the plain rule, with credit and room that run out anywhere."""
    credit = [data.draw(st.integers(0, 6)) for _ in logs]
    room = data.draw(st.integers(1, 20))
    keys = np.zeros((len(logs), 6), np.int64)
    for place, log in enumerate(logs):
        keys[place, : len(log)] = log
    heads = np.zeros(len(logs), np.int64)
    stops = np.array([len(log) for log in logs], np.int64)
    picked, origin = np.empty(room, np.int64), np.empty(room, np.int64)
    count = merge(keys, heads, stops, np.array(credit, np.int64), picked, origin)
    want, at = [], [0] * len(logs)
    while len(want) < room:
        ready = [(log[at[p]], p) for p, log in enumerate(logs) if at[p] < len(log)]
        if not ready or credit[min(ready)[1]] == 0:
            break
        p = min(ready)[1]
        want.append((p, at[p]))
        at[p] += 1
        credit[p] -= 1
        if at[p] == len(logs[p]):
            break
    assert list(zip(origin[:count].tolist(), picked[:count].tolist(), strict=True)) == want
    assert heads.tolist() == at


def test_required_concat_puts_partitions_under_one_list_of_names():
    both = Delivery.concat(
        [
            delivery(("b", 0, -1), partitions=("b",)),
            delivery(("a", 0, -1), ("b", 1, 0), partitions=("a", "b")),
        ]
    )
    assert names(both) == ["b0", "a0", "b1"]
    assert both.by_partition() == {"a": (1, 0), "b": (2, 1)}
    assert names(both.take(np.array([2, 0]))) == ["b1", "b0"]
    assert names(both.slice(1, 2)) == ["a0"]
