"""Sessions against a row-by-row model in plain Python."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from thund.batch import Delivery
from thund.sessions import STATE, Sessions
from thund_contract import vocabulary as v
from thund_contract.errors import CallerError, LawBroken

LONG = "a key of more than twelve bytes, number "
KEYS = [(1, "a"), (2, "a"), (None, LONG + "1"), (2, LONG + "2"), (3, None), (4, "")]
FLOATS = [0.5, -0.25, 1e300, -1e300, 1e-300, 3.0, None]
SCHEMA = pa.schema(
    [("t", pa.int64()), ("k", pa.int32()), ("w", pa.utf8()), ("x", pa.float64()), ("n", pa.int64())]
)
AGGREGATES = (
    v.Aggregate("rows", v.COUNT),
    v.Aggregate("values", v.COUNT, "x"),
    v.Aggregate("total", v.SUM, "x"),
    v.Aggregate("least", v.MIN, "n"),
    v.Aggregate("most", v.MAX, "n"),
    v.Aggregate("first", v.FIRST, "w"),
    v.Aggregate("distinct", v.COUNT_DISTINCT, "n"),
)


def config(output: str, gap: int, **more: Any) -> v.Config:
    window = v.WindowSpec(0, kind=v.SESSION, gap_ms=gap)
    return v.Config("p", "t", ("k", "w"), window, AGGREGATES, output=output, **more)


@dataclass
class Session:
    key: Any
    start: int
    end: int
    rows: list[Any]
    touched: bool = True
    shown: set[int] = field(default_factory=set)

    def values(self) -> tuple[Any, ...]:
        xs = [x for _, _, x, _ in self.rows if x is not None]
        ns = [n for *_, n in self.rows if n is not None]
        total = float(sum((Fraction(x) for x in xs), Fraction(0))) if xs else None
        return (
            len(self.rows),
            len(xs),
            total,
            min(ns, default=None),
            max(ns, default=None),
            self.key[1],
            len(set(ns)),
        )

    def line(self) -> tuple[Any, ...]:
        return (self.key, self.start, self.end, *self.values())


class Model:
    """What the laws say, row by row."""

    def __init__(self, config: v.Config) -> None:
        self.config = config
        self.open: dict[Any, list[Session]] = defaultdict(list)
        self.closed: list[Session] = []
        self.results: list[Any] = []
        self.merges = self.late = 0
        self.closed_by = v.NEVER

    def sessions(self) -> list[Session]:
        return [s for sessions in self.open.values() for s in sessions]

    def row(self, key: Any, row: Any, watermark: int) -> bool:
        """One row; whether it is admitted by the window rule, which every early row passes."""
        self.close(watermark)
        t, gap = row[0], self.config.window.gap_ms
        within = any(s.start <= t < s.end for s in self.open[key])
        if watermark != v.NEVER and t + self.config.grace_ms < watermark and not within:
            self.late += 1
            return False
        touching = [s for s in self.open[key] if s.start < t + gap and t < s.end]
        self.merges += len(touching) > 1
        for s in touching:
            self.open[key].remove(s)
        self.open[key].append(
            Session(
                key,
                min([t, *(s.start for s in touching)]),
                max([t + gap, *(s.end for s in touching)]),
                [row, *(row for s in touching for row in s.rows)],
                shown=set().union(*(s.shown for s in touching)),
            )
        )
        return True

    def close(self, watermark: int) -> None:
        if watermark == self.closed_by:
            return
        self.closed_by = watermark
        for s in self.sessions():
            if s.end + self.config.grace_ms <= watermark:
                self.open[s.key].remove(s)
                self.closed.append(s)

    def emit(self) -> tuple[list[Any], list[Any]]:
        """What is put, and (key, start) of what is taken away."""
        every = [*self.sessions(), *self.closed]
        gone = [(s.key, start) for s in every for start in s.shown if start != s.start]
        self.results += [s.line() for s in self.closed]
        if self.config.output == v.APPEND:
            put, gone = [s.line() for s in self.closed], []
        elif self.config.output == v.UPDATE:
            put = [s.line() for s in every if s.touched]
        else:
            put = [s.line() for s in self.sessions()] + self.results
        self.closed = []
        for s in self.sessions():
            s.touched, s.shown = False, {s.start}
        return sorted(put, key=repr), sorted(gone, key=repr)


def delivery(keys: list[Any], rows: list[Any]) -> Delivery:
    columns = [
        [t for t, *_ in rows],
        [k for k, _ in keys],
        [w for _, w in keys],
        [x for _, _, x, _ in rows],
        [n for *_, n in rows],
    ]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    offset = np.array([o for _, o, *_ in rows], np.int64)
    batch = pa.record_batch(arrays, schema=SCHEMA)
    return Delivery(batch, ("p",), np.zeros(len(rows), np.int32), offset, offset - 1)


class Pair:
    """The operator and the model side by side."""

    def __init__(self, config: v.Config) -> None:
        self.config, self.model = config, Model(config)
        self.sessions = Sessions(config, SCHEMA)
        self.epoch, self.watermark, self.offset = 0, v.NEVER, 0
        self.ids: dict[Any, Any] = {}

    def batch(self, keys: list[Any], times: list[int], moves: list[int], values: Any) -> None:
        """Rows, each with the W that it leads to; a row may enter by the window rule."""
        rows, bars, kept, expected = [], [], [], []
        for key, t, after, (x, n) in zip(keys, times, moves, values, strict=True):
            row = (t, self.offset, x, n)
            self.offset += 1
            seen = self.watermark
            barred = seen != v.NEVER and t + self.config.grace_ms < seen
            admitted = self.model.row(key, row, seen)
            kept.append(admitted or self.config.late_rule == v.WINDOW_RULE)
            if kept[-1]:
                bars.append(seen if barred else v.NEVER)
                expected.append(admitted)
            rows.append(row)
            self.watermark = max(seen, after)
        given = delivery(keys, rows)
        chosen = None if all(kept) else np.flatnonzero(kept).astype(np.uint32)
        event_time = np.array(times, np.int64)
        if self.config.late_rule == v.WINDOW_RULE:
            entered = self.sessions.judge(given, event_time, chosen, np.array(bars, np.int64))
            assert entered.tolist() == expected
        else:
            self.sessions.fold(given, event_time, chosen)
        self.close()

    def close(self) -> None:
        self.sessions.close(self.watermark)
        self.model.close(self.watermark)
        assert self.sessions.open_groups == len(self.model.sessions())

    def cut(self) -> tuple[list[Any], list[Any]]:
        self.epoch += 1
        rows, unfit = self.sessions.emit(self.epoch)
        assert unfit.num_rows == 0
        put, gone = [], []
        for name in ("window_start", "window_end"):
            place = rows.column_names.index(name)
            rows = rows.set_column(place, name, rows[name].cast(pa.int64()))
        for row in rows.to_pylist():
            assert row["_epoch"] == self.epoch
            if row["_deleted"]:
                gone.append(self.ids[row["_gar_id"]])
                continue
            key = (row["k"], row["w"])
            start, end = row["window_start"], row["window_end"]
            self.ids[row["_gar_id"]] = (key, start)
            put.append((key, start, end, *(row[a.name] for a in AGGREGATES)))
        found = sorted(put, key=repr), sorted(gone, key=repr)
        assert found == self.model.emit()
        state = self.sessions.snapshot()[STATE]
        keys = zip(state["key(k)"].to_pylist(), state["key(w)"].to_pylist(), strict=True)
        starts, ends = state["window_start"].to_pylist(), state["window_end"].to_pylist()
        held = sorted(zip(keys, starts, ends, state["rows"].to_pylist(), strict=True), key=repr)
        expected = ((s.key, s.start, s.end, len(s.rows)) for s in self.model.sessions())
        assert held == sorted(expected, key=repr)
        return found

    def restart(self) -> None:
        tables = self.sessions.snapshot()
        self.sessions = Sessions(self.config, SCHEMA)
        self.sessions.restore(tables, self.watermark)


def values(rng: Any, n: int) -> list[Any]:
    return [
        (FLOATS[i], None if i == 2 else int(i)) for i in rng.integers(0, len(FLOATS), n).tolist()
    ]


def stream(pair: Pair, keys: list[Any], rng: Any) -> int:
    """Some epochs of random rows, with restarts between them. Gives the number of tombstones."""
    now, spread, gone = int(rng.integers(-60, 60)), int(rng.integers(1, 40)), 0
    by_row = pair.config.late_rule == v.ROW_RULE
    for _ in range(rng.integers(1, 6)):
        for _ in range(rng.integers(0, 4)):
            n = int(rng.integers(1, 30))
            times = (now + rng.integers(-spread, 8, n)).tolist()
            now += int(rng.integers(0, 12))
            if by_row and pair.watermark != v.NEVER:
                times = [max(t, pair.watermark) for t in times]
            moves = [min(times) if by_row else t - int(rng.integers(0, spread)) for t in times]
            if rng.random() < 0.3:
                moves = [v.NEVER] * n
            chosen = [keys[i] for i in rng.integers(0, len(keys), n)]
            pair.batch(chosen, times, moves, values(rng, n))
        gone += len(pair.cut()[1])
        if rng.random() < 0.4:
            pair.restart()
    pair.watermark = v.END
    pair.close()
    pair.cut()
    assert pair.sessions.open_groups == 0
    return gone


@pytest.mark.parametrize("output", [v.APPEND, v.UPDATE, v.COMPLETE])
@pytest.mark.parametrize("rule", [v.ROW_RULE, v.WINDOW_RULE])
@pytest.mark.parametrize("spare", [0, 1024])
def test_random_rows_against_the_model(
    output: str, rule: str, spare: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """spare 0: entries and keys of the past go at once, and numbers change all the time."""
    monkeypatch.setattr("thund.session_table._SPARE", spare)
    monkeypatch.setattr("thund.sessions._SPARE", spare)
    rng = np.random.default_rng([11, len(output), len(rule), spare])
    merges = gone = late = 0
    for _ in range(30):
        gap, grace = int(rng.integers(1, 12)), int(rng.integers(0, 9))
        pair = Pair(config(output, gap, grace_ms=grace, late_rule=rule))
        gone += stream(pair, KEYS[: rng.integers(1, len(KEYS) + 1)], rng)
        merges += pair.model.merges
        late += pair.model.late
    assert merges > 20
    assert (gone > 10) == (output != v.APPEND)
    assert (late > 10) == (rule == v.WINDOW_RULE)


@pytest.mark.parametrize("output", [v.APPEND, v.UPDATE])
def test_many_keys_that_come_and_go(output: str) -> None:
    """Tables grow in the middle of a batch, and shrink again."""
    rng = np.random.default_rng(5)
    pair = Pair(config(output, 10, grace_ms=3))
    for epoch in range(8):
        n = 1500 if epoch < 5 else 20
        keys = [(int(k), LONG + str(k)) for k in rng.integers(0, 300 * (epoch + 1), n)]
        times = (60 * epoch + rng.integers(0, 90, n)).tolist()
        times = [max(t, pair.watermark) for t in times]
        pair.batch(keys, times, [60 * epoch - 5] * n, values(rng, n))
        pair.cut()
        if epoch == 3:
            pair.restart()
    assert pair.model.merges > 50
    assert pair.sessions.open_groups < 40


def test_sessions_at_both_ends_of_the_declared_range() -> None:
    pair = Pair(config(v.UPDATE, 1 << 51))
    ends = [v.MIN_EVENT_TIME, v.MAX_EVENT_TIME]
    pair.batch([KEYS[0]] * 2, ends, [v.NEVER] * 2, [(1.0, 1)] * 2)
    assert len(pair.cut()[0]) == 2


def test_touching_covers_stay_apart_and_one_more_row_joins_them() -> None:
    pair = Pair(config(v.UPDATE, 10))
    never, one = [v.NEVER], [(1.0, 1)]
    pair.batch([KEYS[0]] * 2, [0, 10], never * 2, one * 2)
    assert [line[1:3] for line in pair.cut()[0]] == [(0, 10), (10, 20)]
    pair.batch([KEYS[0]], [9], never, one)
    put, gone = pair.cut()
    assert [line[1:4] for line in put] == [(0, 20, 3)]
    assert gone == [(KEYS[0], 10)]


def test_a_row_before_a_shown_session_takes_its_id_away() -> None:
    pair = Pair(config(v.COMPLETE, 10))
    pair.batch([KEYS[0]], [5], [v.NEVER], [(1.0, 1)])
    pair.cut()
    pair.restart()
    pair.batch([KEYS[0]] * 2, [3, -2], [v.NEVER] * 2, [(1.0, 1)] * 2)
    assert pair.cut()[1] == [(KEYS[0], 5)]


def test_a_row_that_a_closed_session_could_hold_is_refused() -> None:
    pair = Pair(config(v.APPEND, 10))
    pair.batch([KEYS[0]], [0], [30], [(1.0, 1)])
    given = delivery([KEYS[0]], [(5, 1, 1.0, 1)])
    with pytest.raises(LawBroken, match="session that is closed"):
        pair.sessions.fold(given, np.array([5], np.int64), None)


def test_a_gap_of_nothing_is_refused() -> None:
    with pytest.raises(CallerError, match="session gap of 0 ms"):
        Sessions(config(v.APPEND, 0), SCHEMA)
