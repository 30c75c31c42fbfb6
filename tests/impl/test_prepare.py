"""Columns are renamed, derived and filtered before anything else looks at them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import thund
from thund.builder import count, files, memory, pipeline, stream, sum_
from thund.prepare import Preparation, source_columns, source_time
from thund_contract.errors import CallerError
from thund_contract.vocabulary import Aggregate, Config, WindowSpec

CONFIG = Config(
    pipeline="p",
    event_time="et",
    key=("carrier",),
    window=WindowSpec(10),
    aggregates=(Aggregate("n", "pn_counter", "up", ("down", "host")),),
    rename=(("carrier", "line"), ("et", "at"), ("up", "carrier")),
    derive=(("down", "down + up"), ("host", 'coalesce(host, "none")'), ("hot", "down > 3")),
    filter="hot or is_null(kept)",
    deduplicate=("id",),
)
SCHEMA = pa.schema(
    [
        ("line", pa.string()),
        ("at", pa.int64()),
        ("carrier", pa.int64()),
        ("down", pa.int64()),
        ("host", pa.string()),
        ("kept", pa.bool_()),
        ("id", pa.int64()),
    ]
)


def test_required_renaming_comes_first_and_all_at_once_then_each_derived_column():
    batch = pa.record_batch(
        [
            ["a", "b", "c"],
            [1, 2, 3],
            [1, 1, 1],
            [9, 2, None],
            [None, "h", "h"],
            [True] * 3,
            [1, 2, 3],
        ],
        schema=SCHEMA,
    )
    preparation = Preparation(CONFIG, SCHEMA)
    prepared = preparation.apply(batch)
    assert prepared.columns.schema == preparation.schema
    assert prepared.columns.to_pydict() == {
        "carrier": ["a", "b", "c"],
        "et": [1, 2, 3],
        "up": [1, 1, 1],
        "down": [10, 3, None],
        "host": ["none", "h", "h"],
        "kept": [True] * 3,
        "id": [1, 2, 3],
        "hot": [True, False, None],
    }
    assert prepared.passes.tolist() == [True, False, False]


def test_required_without_a_filter_or_where_all_pass_nothing_is_said_of_the_rows():
    batch = pa.record_batch([["a"], [1], [1], [9], ["h"], [True], [1]], schema=SCHEMA)
    assert Preparation(CONFIG, SCHEMA).apply(batch).passes is None
    bare = replace(CONFIG, rename=(), derive=(), filter=None)
    assert Preparation(bare, SCHEMA).apply(batch).columns is batch


def test_required_a_source_is_asked_for_the_columns_under_their_own_names():
    assert set(source_columns(CONFIG)) == set(SCHEMA.names)
    assert source_time(CONFIG) == "at"
    assert source_time(replace(CONFIG, derive=(("et", "at"),))) is None
    assert source_columns(replace(CONFIG, rename=(), derive=(), filter=None)) == (
        *("et", "carrier", "id", "up", "down", "host"),
    )


@pytest.mark.parametrize(
    ("change", "found", "where"),
    [
        ({"rename": (("x", "nope"),)}, "no column 'nope'", "rename.x"),
        ({"rename": (("kept", "id"),)}, "a column 'kept' is there already", "rename.kept"),
        ({"derive": (("x", "nope + 1"),)}, "no column 'nope'", "derive.x: nope + 1"),
        ({"derive": (("x", "y"), ("y", "id"))}, "no column 'y'", "derive.x: y"),
        ({"filter": "id"}, "the filter 'id' is of type int64", "filter"),
        ({"filter": "null"}, "the filter 'null' is of type null", "filter"),
    ],
)
def test_required_what_does_not_fit_the_source_is_refused_at_the_start(change, found, where):
    bare = replace(CONFIG, rename=(), derive=(), filter=None)
    with pytest.raises(CallerError) as caught:
        Preparation(replace(bare, **change), SCHEMA)
    assert found in caught.value.found
    assert caught.value.where == where


def table(ran, *names):
    rows = ran.table.sort_by([("window_start", "ascending"), (names[0], "ascending")])
    return list(zip(*(rows.column(name).to_pylist() for name in names), strict=True))


def test_required_a_run_filters_and_finds_repeats_and_counts_both():
    flights = (
        pipeline("flights")
        .source(stream())
        .rename(delay="dep delay", at="sent at")
        .derive(hour="delay / 60", late="hour > 0 or null")
        .filter("delay != 99")
        .watermark("at", allowed_lateness=10)
        .deduplicate("id", remember="1s")
        .key("late")
        .tumbling(100)
        .aggregate(n=count(), total=sum_("delay"))
        .sink(memory())
        .trigger(once=True, drain=True)
        .build()
    )
    rows = [(60, 1, "a"), (5, 2, "b"), (60, 3, "a"), (99, 200, "c"), (1, 150, "d"), (7, 230, "b")]
    batch = pa.record_batch(
        [list(column) for column in zip(*rows, strict=True)], ["dep delay", "sent at", "id"]
    )
    ran = thund.run(flights, stream=[batch])
    shown = ran.progress
    counts = (shown.accepted, shown.admitted, shown.late, shown.filtered, shown.repeated)
    assert counts == (6, 2, 1, 1, 2)
    assert sorted(table(ran, "n", "total")) == [(1, 5), (1, 60)]


def test_required_a_cell_that_is_no_time_is_known_under_another_name(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("sent at,x,unused\n1,5,\n2,6,\nnever,7,\n4,1,\n")
    value = (
        pipeline("p")
        .source(files(path, types={"sent at": "int64"}))
        .rename(at="sent at")
        .filter("x > 1")
        .watermark("at")
        .key()
        .tumbling(100)
        .aggregate(total=sum_("x"))
        .sink(memory())
        .trigger(once=True, drain=True)
        .build()
    )
    ran = thund.run(value)
    assert (ran.progress.invalid, ran.progress.filtered) == (1, 1)
    assert ran.lanes["invalid"].column("reason").to_pylist() == ["undecodable"]
    assert ran.table.column("total").to_pylist() == [11]
