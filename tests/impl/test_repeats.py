"""Ids are remembered exactly as long as W allows, row by row, whatever batches they come in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thund.repeats import STATE, Repeats
from thund_contract.errors import CallerError, InputError
from thund_contract.vocabulary import END, NEVER, Aggregate, Config, WindowSpec

CONFIG = Config(
    pipeline="p",
    event_time="et",
    key=(),
    window=WindowSpec(10),
    aggregates=(Aggregate("n", "count"),),
    deduplicate=("a", "b"),
    remember_ms=5,
)
LONG = "a text that is too long for the words of an entry"
SCHEMA = pa.schema([("a", pa.string()), ("b", pa.float64())])
IDS = st.tuples(
    st.sampled_from([None, "", "x", "y", LONG]),
    st.sampled_from([None, 0.0, -0.0, 1.5, float("nan")]),
)
TIMES = st.integers(-20, 20)
ROWS = st.lists(st.tuples(IDS, TIMES, st.booleans()), max_size=30)


def batch(ids, schema=SCHEMA):
    columns = [pa.array([i[c] for i in ids], field.type) for c, field in enumerate(schema)]
    return pa.record_batch(columns, schema=schema)


def judge(repeats, rows, watermarks):
    """rows: (id, event time, whether it is not late). Gives which of those that are not are repeats."""
    chosen = np.array([i for i, row in enumerate(rows) if row[2]], np.uint32)
    return repeats.judge(
        batch([row[0] for row in rows]),
        np.array([row[1] for row in rows], np.int64),
        np.array(watermarks, np.int64),
        chosen,
    ).tolist()


def plain(id_):
    return tuple("nan" if x != x else x + 0.0 if isinstance(x, float) else x for x in id_)  # noqa: PLR0124


class Slow:
    """Law A7 in a dict."""

    def __init__(self):
        self.seen = {}

    def judge(self, rows, watermarks):
        out = []
        for (id_, time, told), watermark in zip(rows, watermarks, strict=True):
            if not told:
                continue
            first = self.seen.get(plain(id_))
            out.append(first is not None and watermark <= first + CONFIG.remember_ms)
            if not out[-1]:
                self.seen[plain(id_)] = time
        return out

    def forget(self, watermark):
        self.seen = {i: t for i, t in self.seen.items() if watermark <= t + CONFIG.remember_ms}


def remembered(repeats):
    table = repeats.snapshot()[STATE]
    ids = zip(*(table.column(f"id({name})").to_pylist() for name in "ab"), strict=True)
    pairs = zip(ids, table.column("event_time").to_pylist(), strict=True)
    return {plain(id_): time for id_, time in pairs}


@given(st.lists(st.tuples(ROWS, st.booleans(), st.booleans()), max_size=6), st.data())
def test_required_repeats_are_those_of_a_dict(batches, data):
    fast, slow, low = Repeats(CONFIG, SCHEMA), Slow(), NEVER
    for rows, cut, restart in batches:
        steps = st.lists(st.integers(-25, 25), min_size=len(rows), max_size=len(rows))
        watermarks = np.maximum.accumulate([low, *sorted(data.draw(steps))])[1:].tolist()
        low = max([low, *watermarks])
        assert judge(fast, rows, watermarks) == slow.judge(rows, watermarks)
        if cut:
            fast.forget(low)
            slow.forget(low)
            assert remembered(fast) == slow.seen
            assert fast.remembered == len(slow.seen)
        if cut and restart:
            state, fast = fast.snapshot(), Repeats(CONFIG, SCHEMA)
            fast.restore(state)


def test_required_a_drain_forgets_all():
    repeats = Repeats(CONFIG, SCHEMA)
    judge(repeats, [(("x", 1.0), 5, True)], [NEVER])
    repeats.forget(NEVER)
    assert repeats.remembered == 1
    repeats.forget(END)
    assert repeats.remembered == 0
    assert repeats.snapshot()[STATE].num_rows == 0


def test_required_a_snapshot_does_not_change_with_later_rows():
    repeats = Repeats(CONFIG, SCHEMA)
    judge(repeats, [(("x", 1.0), 5, True)], [NEVER])
    state = repeats.snapshot()[STATE]
    judge(repeats, [(("x", 1.0), 50, True)], [20])
    assert state.column("event_time").to_pylist() == [5]


def test_required_an_id_of_a_dictionary_is_kept_as_its_value():
    schema = pa.schema([("a", pa.dictionary(pa.int32(), pa.string())), ("b", pa.int8())])
    repeats = Repeats(CONFIG, schema)
    columns = batch([("x", 1), ("y", 1), ("x", 1)], schema)
    rows, zero = np.arange(3, dtype=np.uint32), np.zeros(3, np.int64)
    assert repeats.judge(columns, zero, zero, rows).tolist() == [False, False, True]
    assert repeats.snapshot()[STATE].schema.field("id(a)").type == pa.string()


def test_required_an_id_that_cannot_be_is_refused():
    with pytest.raises(CallerError, match="no column 'c'"):
        Repeats(replace(CONFIG, deduplicate=("c",)), SCHEMA)
    with pytest.raises(CallerError, match="list<item: int64>"):
        Repeats(replace(CONFIG, deduplicate=("c",)), pa.schema([("c", pa.list_(pa.int64()))]))
    other = pa.schema([("a", pa.string()), ("b", pa.int64())])
    zero = np.zeros(1, np.int64)
    with pytest.raises(InputError, match="int64"):
        Repeats(CONFIG, SCHEMA).judge(batch([("x", 1)], other), zero, zero, zero.astype(np.uint32))
