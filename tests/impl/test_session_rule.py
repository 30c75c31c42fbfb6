"""The window rule over sessions, with and without a look for repeats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from thund.batch import Delivery
from thund.late import LateRule
from thund.repeats import Repeats
from thund.session_rule import SessionRule
from thund.sessions import STATE, Sessions
from thund.watermark import Watermark, decode_event_time
from thund_contract import vocabulary as v

ROWS = [
    (0, "a", 1, "admitted"),
    (50, "b", 2, "admitted"),  # W closes the session of a
    (5, "a", 3, "late"),
    (45, "b", 4, "late"),  # before the session of b
    (55, "b", 5, "admitted"),
    (52, "b", 2, "repeated"),
    (51, "b", 6, "admitted"),
    (52, "b", 6, "repeated"),
    (64, "b", 7, "admitted"),  # the session is [50, 74) now
    (60, "b", 8, "admitted"),
    (40, "b", 4, "late"),  # an id that came late is not remembered
    (63, "b", 4, "admitted"),
]


@pytest.mark.parametrize("deduplicates", [True, False])
@pytest.mark.parametrize("cut", [1, 3, len(ROWS)])
def test_each_row_finds_what_the_rows_before_it_left(deduplicates: bool, cut: int) -> None:
    schema = pa.schema([("t", pa.int64()), ("k", pa.utf8()), ("id", pa.int64())])
    config = v.Config(
        "p",
        "t",
        ("k",),
        v.WindowSpec(0, kind=v.SESSION, gap_ms=10),
        (v.Aggregate("rows", v.COUNT),),
        late_rule=v.WINDOW_RULE,
        deduplicate=("id",) if deduplicates else (),
        remember_ms=100,
    )
    watermark = Watermark(0, rule=LateRule.of(config), tells_seen=True)
    watermark.add("p")
    sessions = Sessions(config, schema)
    repeats = Repeats(config, schema) if deduplicates else None
    rule = SessionRule(sessions, watermark, repeats, config.grace_ms)
    late = []
    for at in range(0, len(ROWS), cut):
        given = _delivery(schema, at, ROWS[at : at + cut])
        times = decode_event_time(given.columns.column("t"))
        admission = watermark.admit(times, given.partition, given.partitions)
        admission = rule.fold(given, times.values, admission)
        sessions.close(watermark.W)
        late += [at + i for i in admission.late.tolist()]
    fates = [fate for *_, fate in ROWS]
    assert late == [i for i, fate in enumerate(fates) if fate == "late"]
    counts = watermark.partitions()[0]
    repeated = fates.count("repeated") if deduplicates else 0
    admitted = len(ROWS) - len(late) - repeated
    assert (counts.accepted, counts.admitted, counts.late, counts.repeated) == (
        len(ROWS),
        admitted,
        len(late),
        repeated,
    )
    state = sessions.snapshot()[STATE].to_pydict()
    assert (state["window_start"], state["window_end"]) == ([50], [74])
    assert state["rows"] == [admitted - 1]


def _delivery(schema: pa.Schema, first: int, rows: list[Any]) -> Delivery:
    columns = [pa.array([row[c] for row in rows], f.type) for c, f in enumerate(schema)]
    offset = np.arange(first, first + len(rows))
    batch = pa.record_batch(columns, schema=schema)
    return Delivery(batch, ("p",), np.zeros(len(rows), np.int32), offset, offset - 1)
