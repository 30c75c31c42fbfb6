"""A log of panes tells an append-only sink the same as the table has, whatever the kind of panes."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import thund
from thund.builder import count, files, parquet, pipeline, sum_
from thund.connectors.parquet_sink import ParquetSink
from thund.panes import pane_schema
from thund.stores import open_store
from thund_contract.errors import CallerError
from thund_contract.vocabulary import Aggregate, Config, WindowSpec

ROWS = [
    # time, key, x
    (1, "a", 1),
    (2, "a", 2),
    (3, "b", 4),
    (11, "a", 8),
    (4, "a", 16),
    (5, "a", 32),
]


def defined(tmp_path, panes, *, rows=2, window=lambda at: at.tumbling(10)):
    """A pipeline over a file of ROWS that cuts an epoch at so many rows, into a log of panes."""
    path = tmp_path / "rows.jsonl"
    if not path.exists():
        path.write_text(
            "".join(json.dumps(dict(zip("tkx", row, strict=True))) + "\n" for row in ROWS)
        )
    value = pipeline("p").source(files(path)).watermark("t", grace=100, late_rule="window").key("k")
    return (
        window(value)
        .aggregate(n=count(), total=sum_("x"))
        .sink(parquet(tmp_path / "log"))
        .incremental(tmp_path / "state")
        .output("update")
        .panes(panes)
        .trigger(rows=rows, once=True, drain=True)
        .build()
    )


def log(tmp_path, value, source):
    """The log as a reader finds it: its own order within an epoch, epoch after epoch."""
    schema = pane_schema(value.config(), source)
    sink = ParquetSink(open_store(str(tmp_path / "log")), schema)
    table = sink.table().sort_by(
        [("_epoch", "ascending"), ("window_start", "ascending"), ("k", "ascending")]
    )
    names = ("_epoch", "k", "_pane", "_timing", "_retraction", "n", "total")
    return list(zip(*(table.column(name).to_pylist() for name in names), strict=True))


SOURCE = pa.schema([("t", pa.int64()), ("k", pa.string()), ("x", pa.int64())])
LATER = [
    (2, "a", 0, "early", False, 1, 8),
]
KINDS = {
    "accumulating": [
        (1, "a", 0, "early", False, 2, 3),
        (2, "b", 0, "on_time", False, 1, 4),
        *LATER,
        (3, "a", 1, "on_time", False, 4, 51),
    ],
    "discarding": [
        (1, "a", 0, "early", False, 2, 3),
        (2, "b", 0, "on_time", False, 1, 4),
        *LATER,
        (3, "a", 1, "on_time", False, 2, 48),
    ],
    "retracting": [
        (1, "a", 0, "early", False, 2, 3),
        (2, "b", 0, "on_time", False, 1, 4),
        *LATER,
        (3, "a", 0, "early", True, 2, 3),
        (3, "a", 1, "on_time", False, 4, 51),
    ],
}


@pytest.mark.parametrize("panes", KINDS)
def test_required_each_kind_of_panes_says_what_changed(tmp_path, panes):
    value = defined(tmp_path, panes)
    thund.run(value)
    assert log(tmp_path, value, SOURCE) == KINDS[panes]


@pytest.mark.parametrize("panes", KINDS)
def test_required_numbers_and_timings_go_on_in_the_next_life(tmp_path, panes):
    """The first life ends after one epoch; the rows that are left come to the next one."""
    value = defined(tmp_path, panes)

    class Killed(Exception):
        pass

    def die(step, epoch):
        if (step, epoch) == ("manifest", 1):
            raise Killed

    with pytest.raises(Killed):
        thund.run(value, durable=die)
    thund.run(value)
    assert log(tmp_path, value, SOURCE) == KINDS[panes]


def test_required_a_session_that_is_merged_away_is_taken_back(tmp_path):
    rows = [(5, "a", 1), (10, "a", 2), (0, "a", 4)]
    (tmp_path / "rows.jsonl").write_text(
        "".join(json.dumps(dict(zip("tkx", row, strict=True))) + "\n" for row in rows)
    )
    value = defined(tmp_path, "accumulating", rows=1, window=lambda at: at.session(6))
    thund.run(value)
    assert log(tmp_path, value, SOURCE) == [
        (1, "a", 0, "early", False, 1, 1),
        (2, "a", 1, "early", False, 2, 3),
        (3, "a", 0, "early", False, 3, 7),
        (3, "a", 1, "early", True, 2, 3),
    ]


def test_required_a_name_of_the_lane_is_no_column_of_the_result():
    config = Config(
        "p", "t", ("_pane",), WindowSpec(10), (Aggregate("n", "count"),), output="update"
    )
    with pytest.raises(CallerError, match="a column named _pane"):
        pane_schema(config, pa.schema([("t", pa.int64()), ("_pane", pa.int64())]))
