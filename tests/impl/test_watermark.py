"""Event times of every type, and W row by row against a plain model."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thund.watermark import REASONS, LateRule, Watermark, decode_event_time
from thund_contract import vocabulary as v
from thund_contract.errors import CallerError, LawBroken

DAY = 86_400_000


def decoded(column: Any) -> list[Any]:
    """Per row the time in ms, or the reason."""
    times = decode_event_time(column)
    if times.reasons is None:
        if len(times.values):
            assert (times.low, times.high) == (times.values.min(), times.values.max())
        return times.values.tolist()
    pairs = zip(times.values.tolist(), times.reasons.tolist(), strict=True)
    return [REASONS[code] if code else value for value, code in pairs]


@pytest.mark.parametrize(
    ("kind", "values", "want"),
    [
        (pa.int64(), [5, -5, None, v.MAX_EVENT_TIME, v.MIN_EVENT_TIME], [5, -5, "null", v.MAX_EVENT_TIME, v.MIN_EVENT_TIME]),
        (pa.int64(), [v.MAX_EVENT_TIME + 1, v.MIN_EVENT_TIME - 1], ["out_of_range"] * 2),
        (pa.int64(), [(1 << 63) - 1, -(1 << 63), 0], ["out_of_range", "out_of_range", 0]),
        (pa.uint64(), [7, (1 << 64) - 1, 1 << 63], [7, "out_of_range", "out_of_range"]),
        (pa.int16(), [-300, None], [-300, "null"]),
        (pa.uint8(), [255], [255]),
        (pa.float64(), [1.9, -1.1, math.nan, None, math.inf, -math.inf, 1e300, -0.0], [1, -2, "nan", "null", "nan", "nan", "out_of_range", 0]),
        (pa.float32(), [2.5, math.nan], [2, "nan"]),
        (pa.timestamp("s"), [-1, 2, 1 << 60, None], [-1000, 2000, "out_of_range", "null"]),
        (pa.timestamp("ms", tz="Europe/Vienna"), [-1, 2], [-1, 2]),
        (pa.timestamp("us"), [-1, 999, 1000, -1000, -1001], [-1, 0, 1, -1, -2]),
        (pa.timestamp("ns", tz="UTC"), [-1, 999_999, 1_000_000], [-1, 0, 1]),
        (pa.date32(), [-1, 3, None, (1 << 31) - 1], [-DAY, 3 * DAY, "null", "out_of_range"]),
        (pa.date64(), [DAY, -DAY], [DAY, -DAY]),
        (pa.null(), [None], ["null"]),
        (pa.int64(), [], []),
    ],
)  # fmt: skip
def test_required_event_times_of_each_type(kind: Any, values: list[Any], want: list[Any]) -> None:
    """Floor to ms, zones are UTC moments, and a reason where there is no time."""
    base = pa.int32() if kind == pa.date32() else pa.int64()
    if pa.types.is_temporal(kind):
        column = pa.array([0, *values], base).view(kind).slice(1)
    else:
        column = pa.array([None, *values], kind).slice(1)
    assert decoded(column) == want
    if len(values) and not pa.types.is_null(kind):
        assert decoded(column.dictionary_encode()) == want


def test_required_texts_are_iso_8601_and_one_bad_one_stops_nothing() -> None:
    """With and without zone, short and long forms, alone or mixed, mean the same."""
    good = {
        "1970-01-01": 0,
        "1970-01-01T00:00:01": 1000,
        "1970-01-01 00:00:00.001999": 1,
        "1969-12-31T23:59:59.9995": -1,
        "1970-01-01T01:00:00+01:00": 0,
        "1970-01-01T00:00:00.5Z": 500,
        "19700101T000002Z": 2000,
        "1970-W01-4": 0,
        "0001-01-01T00:00:00": -62_135_596_800_000,
        "9999-12-31T23:59:59.999": 253_402_300_799_999,
    }
    for text, want in good.items():
        assert decoded(pa.array([text])) == [want]
    assert decoded(pa.array(list(good), pa.large_utf8())) == list(good.values())
    bad = ["", "yesterday", "1970-13-01", "12:00", None, "1970-01-01", "0000-01-01", "10000-01-01"]
    got = decoded(pa.array(bad, pa.string_view()))
    assert got == [*["undecodable"] * 4, "null", 0, *["undecodable"] * 2]


FIRST, LAST = datetime.fromisoformat("0001-01-02"), datetime.fromisoformat("9999-12-30")


@given(st.lists(st.datetimes(FIRST, LAST), min_size=1), st.booleans())
@settings(max_examples=50, deadline=None)
def test_required_the_fast_way_over_texts_means_the_same(
    moments: list[datetime], zone: bool
) -> None:
    """Arrow's parser and the one that goes text by text agree."""
    offset = timezone(timedelta(hours=5, minutes=30)) if zone else None
    texts = [moment.replace(tzinfo=offset).isoformat() for moment in moments]
    alone = [decoded(pa.array([text]))[0] for text in texts]
    assert decoded(pa.array(texts)) == alone
    assert decoded(pa.array([*texts, "never"])) == [*alone, "undecodable"]


@pytest.mark.parametrize("kind", [pa.bool_(), pa.binary(), pa.time32("s"), pa.decimal128(5, 0)])
def test_required_other_types_are_no_event_times(kind: Any) -> None:
    """They are refused, whatever is in them."""
    with pytest.raises(CallerError, match="event time"):
        decode_event_time(pa.nulls(1, kind))


class Model:
    """W1 to W6 and A1 to A5, one step at a time."""

    def __init__(self, delay: int, future: int | None, rule: LateRule) -> None:
        self.delay, self.future, self.now, self.W = delay, future, 0, v.NEVER
        self.rule = rule
        self.state: dict[str, list[Any]] = {}
        self.idle: set[str] = set()

    def add(self, name: str) -> None:
        self.idle.discard(name)
        self.state.setdefault(name, [True, None, 0, 0, 0, 0])[0] = True
        self.settle()

    def remove(self, name: str) -> None:
        self.state[name][0] = False
        self.settle()

    def find_idle(self, names: list[str]) -> None:
        self.idle |= set(names)
        self.settle()

    def settle(self) -> None:
        awake = [state for name, state in self.state.items() if name not in self.idle]
        tops = [top for assigned, top, *_ in awake if assigned]
        if tops and None not in tops:
            self.W = max(self.W, min(tops) - self.delay)

    def row(self, name: str, time: int | None) -> tuple[str, int]:
        state, seen = self.state[name], self.W
        self.idle.discard(name)
        state[2] += 1
        if time is None or (self.future is not None and time > self.now + self.future):
            state[5] += 1
            return "null" if time is None else "too_far_ahead", seen
        late = self.is_late(state[1], time)
        state[4 if late else 3] += 1
        state[1] = time if state[1] is None else max(state[1], time)
        if self.rule.update == v.BY_ROW:
            self.settle()
        return "late" if late else "admitted", seen

    def is_late(self, top: int | None, time: int) -> bool:
        if self.rule.kind == v.WINDOW_RULE:
            rule = self.rule
            start = (time - rule.offset_ms) // rule.size_ms * rule.size_ms + rule.offset_ms
            return start + rule.size_ms + rule.grace_ms <= self.W
        behind = self.rule.kind == v.PARTITION_RULE and top is not None and time < top - self.delay
        return behind or time < self.W


@given(st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_required_w_moves_row_by_row_under_any_change_of_partitions(seed: int) -> None:
    """Mixed partitions, added, removed, idle, and added again; the guard; restarts; any cut.

    All three late rules, and W that moves by row or by epoch.
    """
    rng = np.random.default_rng(seed)
    names = ["a", "b", "c", "d"][: int(rng.integers(1, 5))]
    delay, future = int(rng.choice([0, 3, 50])), [None, 20][int(rng.integers(0, 2))]
    rule = LateRule(
        kind=str(rng.choice(v.LATE_RULES)),
        update=str(rng.choice([v.BY_ROW, v.BY_ROW, v.BY_EPOCH])),
        size_ms=int(rng.integers(1, 40)),
        offset_ms=int(rng.integers(-20, 20)),
        grace_ms=int(rng.choice([0, 5, 60])),
    )
    model, bound = Model(delay, future, rule), Watermark(delay, future, rule=rule)
    clock = int(rng.integers(-200, 200))
    for _ in range(30):
        active = [name for name, state in model.state.items() if state[0]]
        action = rng.random()
        clock += int(rng.integers(0, 30))
        if action < 0.25 or not active:
            name = str(rng.choice(names))
            model.add(name)
            bound.add(name)
        elif action < 0.35:
            name = str(rng.choice(active))
            model.remove(name)
            bound.remove(name)
        elif action < 0.45:
            bound = Watermark(delay, future, bound.partitions(), bound.W, rule)
        elif action < 0.55:
            bound.end_epoch()
            if rule.update == v.BY_EPOCH:
                model.settle()
        elif action < 0.7:
            found = [name for name in active if rng.random() < 0.6]
            model.find_idle(found)
            bound.idle(found)
        else:
            model.now = clock
            bound.clock(clock)
            rows(rng, model, bound, active, clock)
        assert bound.W == model.W
        for one in bound.partitions():
            counts = [one.accepted, one.admitted, one.late, one.invalid]
            assert [one.assigned, one.max_event_time, *counts] == model.state[one.partition]
            assert one.idle == (one.partition in model.idle)
    bound.drain()
    assert bound.W == v.END


def rows(rng: Any, model: Model, bound: Watermark, active: list[str], clock: int) -> None:
    """One batch, over some of the active partitions, with names that have no rows too."""
    n = int(rng.integers(1, 40))
    times = clock + rng.integers(-40, 30, n) if rng.random() < 0.6 else clock + np.arange(n)
    mask = rng.random(n) < float(rng.choice([0, 0, 0.2]))
    column = pa.array(times, mask=mask)
    absent = ["x"] if rng.random() < 0.3 else []
    names = (*absent, *active)
    part = rng.integers(len(absent), len(names), n).astype(np.int32)
    got = bound.admit(decode_event_time(column), part, names)
    want: dict[str, list[tuple[int, int]]] = {"admitted": [], "late": [], "invalid": []}
    reasons = []
    for i, time in enumerate(column.to_pylist()):
        fate, seen = model.row(names[part[i]], time)
        if fate not in want:
            reasons.append(fate)
        want[fate if fate in want else "invalid"].append((i, seen))
    admitted = range(n) if got.admitted is None else got.admitted.tolist()
    assert list(admitted) == [i for i, _ in want["admitted"]]
    assert list(zip(got.late.tolist(), got.late_watermark.tolist(), strict=True)) == want["late"]
    seen_by = zip(got.invalid.tolist(), got.invalid_watermark.tolist(), strict=True)
    assert list(seen_by) == want["invalid"]
    assert [REASONS[code] for code in got.invalid_reason] == reasons


def test_required_rows_of_a_partition_that_is_not_assigned_break_a_law() -> None:
    """The sequencer keeps them out; here they are an error."""
    bound = Watermark(0)
    bound.add("a")
    bound.remove("a")
    times = decode_event_time(pa.array([1]))
    for names in (("a",), ("b",), ("a", "b")):
        with pytest.raises(LawBroken, match="partition"):
            bound.admit(times, np.zeros(1, np.int32), names)
    with pytest.raises(LawBroken):
        bound.remove("b")
