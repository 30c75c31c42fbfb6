"""The core with windows of a grid against a row-by-row model in plain Python."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thund.batch import Delivery
from thund.calendar import Calendar
from thund.pipeline import Core
from thund.results import OWN_COLUMNS, RESULTS, RESULTS_UNFIT, outbox_schema
from thund.windows import STATE, Windows
from thund_contract import vocabulary as v
from thund_contract.errors import CallerError, InputError, LawBroken

TEXTS = ["", "a", "ab", "aaaaaaaaaaaa", "aaaaaaaaaaaab", "ä" * 9, "x" * 300, "x" * 299 + "y"]
BYTES = [text.encode() for text in TEXTS]
FLOATS = [0.0, -0.0, 1.5, -2.25, math.nan, -math.nan, math.inf, -math.inf, 5e-324]
INTEGERS = [0, 1, -1, 7, 100, -100]
VALUES = [*FLOATS, 0.1, 0.2, 1e300, -1e300, 1e308, 1e-300, 3.3e16, -7e-9, 2.0**-1060, 1 / 3]

KEY_TYPES: list[tuple[Any, list[Any]]] = [
    (pa.int64(), [*INTEGERS, (1 << 63) - 1, -(1 << 63)]),
    (pa.uint64(), [0, 1, (1 << 64) - 1, 1 << 63]),
    (pa.int8(), INTEGERS),
    (pa.uint16(), [0, 1, 65535]),
    (pa.bool_(), [True, False]),
    (pa.float64(), FLOATS),
    (pa.float32(), FLOATS),
    (pa.utf8(), TEXTS),
    (pa.large_utf8(), TEXTS),
    (pa.string_view(), TEXTS),
    (pa.binary(), BYTES),
    (pa.binary(3), [b"abc", b"abd", b"\x00\x00\x00"]),
    (pa.date32(), [0, -1, 20000]),
    (pa.time64("us"), [0, 86_399_999_999]),
    (pa.timestamp("ns", tz="UTC"), [0, -1, 1 << 60]),
    (pa.duration("s"), [0, -5, 1 << 40]),
    (pa.decimal128(20, 3), ["0.000", "-1.500", "99999999999999999.999"]),
    (pa.decimal256(50, 0), ["0", str(10**49), str(-(10**49))]),
    (pa.dictionary(pa.int8(), pa.utf8()), TEXTS),
    (pa.null(), [None]),
]


def column(kind: Any, choices: list[Any], n: int, nulls: float, rng: Any) -> Any:
    """A random column of a type, in a slice of a longer array, so that offsets are not zero."""
    picked = [choices[i] for i in rng.integers(0, len(choices), n + 3)]
    values = [None if rng.random() < nulls else x for x in picked]
    if pa.types.is_decimal(kind):
        return pa.array(values, pa.utf8()).cast(kind).slice(3)
    if pa.types.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array(values, width).cast(kind).slice(3)
    if kind == pa.float32():
        with np.errstate(over="ignore"):
            values = [None if x is None else float(np.float32(x)) for x in values]
    return pa.array(values, kind).slice(3)


def plain(values: Any) -> list[Any]:
    """A column as Python values in which equal keys are equal."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_temporal(values.type):
        values = values.cast(pa.int32() if values.type.bit_width == 32 else pa.int64())
    return [canonical(x) for x in values.to_pylist()]


def canonical(x: Any) -> Any:
    """NaN as a text, and a zero with its sign seen."""
    if isinstance(x, float):
        return "nan" if math.isnan(x) else (x, math.copysign(1, x))
    return x


def key_of(x: Any) -> Any:
    """As a key, -0.0 is 0.0."""
    return (0.0, 1.0) if x == (0.0, -1.0) else x


def order(x: Any) -> Any:
    """The order of min and max."""
    return (math.inf, 2) if x == "nan" else x


class Model:
    """What the laws say, row by row."""

    def __init__(self, config: v.Config, partitions: list[str]) -> None:
        self.config, self.W = config, v.NEVER
        self.top: dict[str, int] = {}
        self.active = set(partitions)
        self.counts = {p: [0, 0, 0, 0, 0] for p in partitions}
        self.open: dict[Any, list[Any]] = defaultdict(list)
        self.touched: set[Any] = set()
        self.leaving: dict[Any, list[Any]] = {}
        self.closed: dict[Any, list[Any]] = {}
        window = config.window
        self.calendar = (
            Calendar(window.zone, window.unit, window.offset_ms) if window.zone else None
        )

    def windows(self, time: int) -> list[tuple[int, int]]:
        """The windows that hold a time, by the definition of the grid."""
        if self.calendar:
            return [self.calendar.window(time)]
        window = self.config.window
        slide = window.slide_ms or window.size_ms
        far = range(time // slide - window.size_ms // slide - 3, time // slide + 3)
        shift = window.offset_ms % slide
        spans = [(n * slide + shift, n * slide + shift + window.size_ms) for n in far]
        return [(start, end) for start, end in spans if start <= time < end]

    def passed(self, end: int) -> bool:
        return self.W != v.NEVER and end + self.config.grace_ms <= self.W

    def row(self, partition: str, time: Any, key: Any, values: Any) -> tuple[str, int]:
        """One row: what became of it, and the W that it saw."""
        seen, count = self.W, self.counts[partition]
        count[0] += 1
        if time is None:
            count[3] += 1
            return "invalid", seen
        windows = self.windows(time)
        left = [window for window in windows if not self.passed(window[1])]
        by_window = self.config.late_rule == v.WINDOW_RULE
        late = not left if by_window else time < self.W
        count[2 if late else 1] += 1
        if not late:
            count[4] += len(windows) - len(left)
            for window in left:
                self.open[window, key].append(values)
                self.touched.add((window, key))
        self.top[partition] = max(time, self.top.get(partition, time))
        self.settle()
        self.close()
        return "late" if late else "admitted", seen

    def settle(self) -> None:
        if self.active and all(p in self.top for p in self.active):
            low = min(self.top[p] for p in self.active)
            self.W = max(self.W, low - self.config.delay_ms)

    def close(self) -> None:
        for group in [group for group in self.open if self.passed(group[0][1])]:
            self.leaving[group] = self.open.pop(group)

    def emit(self) -> dict[Any, list[Any]]:
        groups = {**self.open, **self.leaving}
        self.closed.update(self.leaving)
        if self.config.output == v.APPEND:
            groups = self.leaving
        elif self.config.output == v.UPDATE:
            groups = {g: rows for g, rows in groups.items() if g in self.touched}
        else:
            groups = {**self.open, **self.closed}
        self.leaving, self.touched = {}, set()
        return {group: [self.show(a, i, rows) for i, a in enumerate(self.config.aggregates)]
                for group, rows in groups.items()}  # fmt: skip

    def show(self, aggregate: v.Aggregate, i: int, rows: list[Any]) -> Any:
        """The value shown, or an Unfit text."""
        if aggregate.column is None:
            return len(rows)
        values = [row[i] for row in rows if row[i] is not None]
        if aggregate.operation == v.COUNT:
            return len(values)
        if not values:
            return None
        if aggregate.operation == v.MIN:
            return min(values, key=order)
        if aggregate.operation == v.MAX:
            return max(values, key=order)
        return total(values, mean=aggregate.operation == v.MEAN)


def total(values: list[Any], *, mean: bool) -> Any:
    """The exact sum or mean, rounded once."""
    if isinstance(values[0], int):
        exact = Fraction(sum(values), len(values) if mean else 1)
        if mean:
            return canonical(float(exact))
        return int(exact) if -(1 << 63) <= exact < 1 << 63 else f"unfit {int(exact)}"
    numbers = [math.nan if x == "nan" else x[0] for x in values]
    infinite = {x for x in numbers if math.isinf(x)}
    if any(math.isnan(x) for x in numbers) or len(infinite) == 2:
        return "nan"
    if infinite:
        return canonical(infinite.pop())
    exact = sum((Fraction(x) for x in numbers), Fraction(0)) / (len(numbers) if mean else 1)
    try:
        return canonical(float(exact) + 0.0)
    except OverflowError:
        return f"unfit {exact.numerator}/{exact.denominator}"


def shown(outbox: pa.Table, unfit: pa.Table, config: v.Config, epoch: int) -> dict[Any, list[Any]]:
    """An emission as the model has it."""
    assert plain(outbox["_epoch"]) == [epoch] * len(outbox)
    assert plain(outbox["_deleted"]) == [False] * len(outbox)
    ids = outbox["_gar_id"].to_pylist()
    windows = zip(plain(outbox["window_start"]), plain(outbox["window_end"]), strict=True)
    assert len(set(ids)) == len(ids)
    keys = list(zip(*(plain(outbox[name]) for name in config.key), strict=True)) or [()] * len(ids)
    values = list(zip(*(plain(outbox[a.name]) for a in config.aggregates), strict=True))
    out = {
        i: (window, key, list(row))
        for i, window, key, row in zip(ids, windows, keys, values, strict=True)
    }
    place = {a.name: i for i, a in enumerate(config.aggregates)}
    for row in unfit.to_pylist():
        values = out[row["_gar_id"]][2]
        assert values[place[row["aggregate"]]] is None
        values[place[row["aggregate"]]] = f"unfit {row['value']}"
    return {(window, key): row for window, key, row in out.values()}


def partial(table: pa.Table, name: str, i: int) -> Any:
    """The exact float sum of a state row, read as the docstring of windows.py says."""
    exact = Fraction(int(table[f"sum({name})"][i].as_py()))
    exact *= Fraction(2) ** table[f"sum({name}).exponent"][i].as_py()
    wide = table[f"sum({name}).wide"][i].as_py()
    return exact + Fraction(int.from_bytes(wide or b"", "little", signed=True), 1 << 1075)


def check_state(table: pa.Table, model: Model) -> None:
    """The snapshot against the model's open groups; for hopping windows only what is there."""
    config = model.config
    keys = list(zip(*(plain(table[f"key({name})"]) for name in config.key), strict=True))
    if config.window.kind == v.HOPPING:
        cells = zip(plain(table["cell_start"]), keys or [()] * len(table), strict=True)
        groups = list(cells)
        assert len(set(groups)) == len(groups)
        windows = {(w, key) for cell, key in groups for w in model.windows(cell)}
        assert {group for group in windows if not model.passed(group[0][1])} == set(model.open)
        return
    starts = plain(table["window_start"])
    groups = [(s, k) for s, k in zip(starts, keys or [()] * len(starts), strict=True)]
    assert len(set(groups)) == len(groups)
    open_groups = {(window[0], key): rows for (window, key), rows in model.open.items()}
    assert set(groups) == set(open_groups)
    for i, group in enumerate(groups):
        check_group(table, i, config, open_groups[group])


def check_group(table: pa.Table, i: int, config: v.Config, rows: list[Any]) -> None:
    """One group of a snapshot against its rows."""
    assert table["rows"][i].as_py() == len(rows)
    for a, aggregate in enumerate(config.aggregates):
        name, operation = aggregate.column, aggregate.operation
        if name is None:
            continue
        values = [row[a] for row in rows if row[a] is not None]
        assert table[f"count({name})"][i].as_py() == len(values)
        if operation in (v.MIN, v.MAX):
            best = min if operation == v.MIN else max
            want = best(values, key=order) if values else None
            assert plain(table[f"{operation}({name})"].slice(i, 1)) == [want]
        elif operation in (v.SUM, v.MEAN) and f"sum({name}).wide" in table.column_names:
            finite = [x[0] for x in values if x != "nan" and not math.isinf(x[0])]
            assert partial(table, name, i) == sum(map(Fraction, finite), Fraction(0))
            flags = (
                ("nan" in values) + 2 * ((math.inf, 1) in values) + 4 * ((-math.inf, -1) in values)
            )
            assert table[f"sum({name}).specials"][i].as_py() == flags
        elif operation in (v.SUM, v.MEAN):
            assert int(table[f"sum({name})"][i].as_py()) == sum(values)


OPERATIONS = (v.COUNT, v.SUM, v.MIN, v.MAX, v.MEAN)
VALUE_COLUMNS: dict[str, tuple[Any, list[Any], tuple[str, ...]]] = {
    "i": (pa.int64(), [*INTEGERS, (1 << 63) - 1, -(1 << 63)], OPERATIONS),
    "h": (pa.int16(), INTEGERS, OPERATIONS),
    "u": (pa.uint64(), [0, 5, (1 << 64) - 1, 1 << 63], OPERATIONS),
    "f": (pa.float64(), VALUES, OPERATIONS),
    "g": (pa.float32(), FLOATS, OPERATIONS),
    "d": (pa.date32(), [0, 5, -5], (v.COUNT, v.MIN, v.MAX)),
    "z": (pa.timestamp("us"), [0, 5, -(1 << 61)], (v.COUNT, v.MIN, v.MAX)),
    "s": (pa.utf8(), TEXTS, (v.COUNT,)),
    "c": (pa.dictionary(pa.int8(), pa.utf8()), TEXTS, (v.COUNT,)),
    "l": (pa.list_(pa.int8()), [[], [1]], (v.COUNT,)),
    "n": (pa.null(), [None], (v.COUNT,)),
}


def draw_window(rng: Any) -> v.WindowSpec:
    if rng.random() < 0.2:
        unit = str(rng.choice(v.UNITS))
        zone = str(rng.choice(["UTC", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia"]))
        offset = int(rng.choice([0, 1, -7_200_000]))
        return v.WindowSpec(0, offset, v.CALENDAR, unit=unit, zone=zone)
    size = int(rng.choice([1, 3, 10, 64, 1000]))
    offset = int(rng.integers(-2 * size, 2 * size + 1))
    if rng.random() < 0.5:
        slide = int(rng.integers(max(1, size // 7), size + 1))
        return v.WindowSpec(size, offset, v.HOPPING, slide_ms=slide)
    return v.WindowSpec(size, offset)


def draw_config(rng: Any, keys: int) -> v.Config:
    aggregates = [v.Aggregate("rows", v.COUNT)]
    for _ in range(int(rng.integers(0, 6))):
        name = str(rng.choice(list(VALUE_COLUMNS)))
        operation = str(rng.choice(VALUE_COLUMNS[name][2]))
        aggregates.append(v.Aggregate(f"{len(aggregates)}_{operation}_{name}", operation, name))
    window = draw_window(rng)
    unit = 3_600_000 if window.kind == v.CALENDAR else 1
    return v.Config(
        "p",
        "t",
        tuple(f"k{c}" for c in range(keys)),
        window,
        tuple(aggregates),
        delay_ms=int(rng.choice([0, 5, 100])) * unit,
        grace_ms=int(rng.choice([0, 0, 7])) * unit,
        late_rule=str(rng.choice([v.ROW_RULE, v.WINDOW_RULE])),
        output=str(rng.choice([v.APPEND, v.UPDATE, v.COMPLETE])),
    )


def draw_batch(rng: Any, config: v.Config, kinds: Any, clock: int, nulls: float) -> Any:
    """Rows of all columns, some of them without a time."""
    n, unit = int(rng.integers(1, 60)), 1
    if config.window.kind == v.CALENDAR:
        unit = 3_600_000
    times = (clock - rng.integers(0, int(rng.choice([1, 30, 300])), n)) * unit
    columns = {"t": pa.array(times, mask=rng.random(n) < float(rng.choice([0, 0.1])))}
    for c, (kind, choices) in enumerate(kinds):
        columns[f"k{c}"] = column(kind, choices, n, nulls, rng)
    for name, (kind, choices, _) in VALUE_COLUMNS.items():
        columns[name] = column(kind, choices, n, nulls, rng)
    return pa.record_batch(columns)


@given(st.integers(0, 2**32))
@settings(max_examples=120, deadline=None)
def test_required_any_stream_is_what_the_model_says(seed: int) -> None:
    """Random windows, keys, values, nulls, late and invalid rows, cuts, and lives."""
    rng = np.random.default_rng(seed)
    kinds = [KEY_TYPES[i] for i in rng.integers(0, len(KEY_TYPES), rng.integers(0, 4))]
    config = draw_config(rng, len(kinds))
    names = ["a", "b", "c"][: int(rng.integers(1, 4))]
    model = Model(config, names)
    clock, nulls = int(rng.integers(-3000, 3000)), float(rng.choice([0, 0.2]))
    schema = draw_batch(rng, config, kinds, 0, 0.0).schema
    core = Core(config, schema, now=lambda: 0)
    for name in names:
        core.add(name)
    for epoch in range(1, int(rng.integers(2, 6))):
        fates: dict[str, list[Any]] = defaultdict(list)
        for _ in range(int(rng.integers(0, 4))):
            clock += int(rng.integers(0, 40))
            batch = draw_batch(rng, config, kinds, clock, nulls if epoch > 1 else 0.0)
            feed(model, core, batch, rng.integers(0, len(names), batch.num_rows), fates)
        if rng.random() < 0.2:
            core.drain()
            model.W = v.END
            model.close()
        done = core.cut(epoch)
        if done is None:
            continue
        compare(shown(done.outbox.rows, done.outbox.unfit, config, epoch), model.emit())
        check_lanes(done, model, fates)
        check_state(done.state[STATE], model)
        if rng.random() < 0.5:
            core = Core(config, schema, now=lambda: 0, restored=done)
        if model.W == v.END:
            assert core.windows.open_groups == 0
            break


def compare(got: dict[Any, list[Any]], want: dict[Any, list[Any]]) -> None:
    assert {(window, tuple(map(key_of, key))) for window, key in got} == set(want)
    assert got == want


def check_lanes(done: Any, model: Model, fates: dict[str, list[Any]]) -> None:
    """What became of each row, the W it saw, and the counters."""
    for lane in ("late", "invalid"):
        table = getattr(done.outbox, lane)
        columns = [table[name].to_pylist() for name in ("partition", "offset", "watermark")]
        assert sorted(zip(*columns, strict=True)) == sorted(fates[lane])
    assert done.watermark == model.W
    for one in done.partitions:
        counts = [one.accepted, one.admitted, one.late, one.invalid, one.late_window_drops]
        assert counts == model.counts[one.partition]
        assert one.max_event_time == model.top.get(one.partition)


def feed(model: Model, core: Core, batch: Any, part: Any, fates: dict[str, list[Any]]) -> None:
    """A batch to both."""
    config, names = model.config, list(model.counts)
    keys = [[key_of(x) for x in plain(batch.column(name))] for name in config.key]
    values = [
        [None] * batch.num_rows
        if a.column is None
        else batch.column(a.column).is_valid().to_pylist()
        if a.operation == v.COUNT
        else plain(batch.column(a.column))
        for a in config.aggregates
    ]
    prev, offset = np.empty(batch.num_rows, np.int64), np.empty(batch.num_rows, np.int64)
    last = [core.position(name) for name in names]
    for i, time in enumerate(batch.column("t").to_pylist()):
        row = [column[i] or None if a.operation == v.COUNT else column[i]
               for a, column in zip(config.aggregates, values, strict=True)]  # fmt: skip
        prev[i], offset[i] = last[part[i]], last[part[i]] + 1
        last[part[i]] = offset[i]
        fate, seen = model.row(names[part[i]], time, tuple(key[i] for key in keys), row)
        fates[fate].append((names[part[i]], offset[i], seen))
    core.deliver(Delivery(batch, tuple(names), part.astype(np.int32), offset, prev))
    core.advance()


def simple(output: str = v.APPEND, **more: Any) -> v.Config:
    aggregates = (v.Aggregate("n", v.COUNT), v.Aggregate("s", v.SUM, "x"))
    return v.Config("p", "t", ("k",), v.WindowSpec(10), aggregates, output=output, **more)


def rows(times: list[int], keys: list[Any], values: list[Any]) -> pa.RecordBatch:
    kinds = [("t", pa.int64()), ("k", pa.utf8()), ("x", pa.float64())]
    return pa.record_batch([times, keys, values], schema=pa.schema(kinds))


def fold(windows: Windows, batch: pa.RecordBatch) -> None:
    offset = np.arange(batch.num_rows, dtype=np.int64)
    part = np.zeros(batch.num_rows, np.int32)
    delivery = Delivery(batch, ("p",), part, offset, offset - 1)
    windows.fold(delivery, batch.column("t").to_numpy(), None)


def test_required_a_snapshot_survives_parquet_and_another_order(tmp_path: Any) -> None:
    """What the store keeps are rows of a table, not their order."""
    import pyarrow.parquet as pq

    batch = rows(
        [1, 12, 3, 25, 14], ["a", "b" * 40, None, "a", "c" * 40], [1e300, 0.1, 2, 1e-300, 5]
    )
    windows = Windows(simple(), batch.schema)
    fold(windows, batch)
    fold(windows, rows([2, 26], ["a", "a"], [1e-300, 1e300]))
    state = windows.snapshot()[STATE]
    assert state["sum(x).wide"].null_count == 3
    pq.write_table(state.take([4, 0, 3, 1, 2]), tmp_path / "state.parquet")
    again = Windows(simple(), batch.schema)
    again.restore({STATE: pq.read_table(tmp_path / "state.parquet")}, v.NEVER)
    for each in (windows, again):
        fold(each, rows([4, 13], ["a", "b" * 40], [-1e300, 0.2]))
        each.close(v.END)
    ours, theirs = (each.emit(2)[0].sort_by("_gar_id") for each in (windows, again))
    assert ours.equals(theirs)
    assert {row["s"] for row in ours.to_pylist() if row["k"] == "a"} == {1e-300, 1e300}


def test_required_complete_mode_keeps_closed_rows_and_their_unfit_values() -> None:
    """The results store goes through a snapshot, and its rows are shown in each epoch."""
    batch = rows([1, 2], ["a", "a"], [1.7e308, 1.7e308])
    windows = Windows(simple(v.COMPLETE), batch.schema)
    fold(windows, batch)
    windows.close(10)
    first, unfit = windows.emit(1)
    assert unfit["value"].to_pylist() == [f"{2 * int(1.7e308)}/1"]
    tables = windows.snapshot()
    assert tables[RESULTS].num_rows == tables[RESULTS_UNFIT].num_rows == 1
    again = Windows(simple(v.COMPLETE), batch.schema)
    again.restore(tables, 10)
    second, unfit_again = again.emit(2)
    assert second.drop(["_epoch"]).equals(first.drop(["_epoch"]))
    assert unfit_again.equals(unfit)


def test_required_a_row_for_a_closed_window_is_a_broken_law() -> None:
    """F2 is guarded where the rows come in."""
    windows = Windows(simple(), rows([1], ["a"], [1]).schema)
    windows.close(20)
    fold(windows, rows([20], ["a"], [1]))
    with pytest.raises(LawBroken, match="closed"):
        fold(windows, rows([19], ["a"], [1]))


def test_required_far_windows_in_one_batch_need_no_room_between_them() -> None:
    """Windows at both ends of the declared range, in one batch."""
    times = [v.MAX_EVENT_TIME, v.MIN_EVENT_TIME, 0, v.MAX_EVENT_TIME]
    windows = Windows(simple(), rows([1], ["a"], [1]).schema)
    fold(windows, rows(times, ["a"] * 4, [1, 2, 4, 8]))
    windows.close(v.END)
    outbox = windows.emit(1)[0]
    got = dict(
        zip(
            outbox["window_start"].cast(pa.int64()).to_pylist(),
            outbox["s"].to_pylist(),
            strict=True,
        )
    )
    assert got == {v.MIN_EVENT_TIME // 10 * 10: 2, 0: 4, v.MAX_EVENT_TIME // 10 * 10: 9}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (simple(operator="o"), ""),
        (v.Config("p", "t", ("q",), v.WindowSpec(10), ()), "no column 'q'"),
        (v.Config("p", "q", ("k",), v.WindowSpec(10), ()), "no column 'q'"),
        (v.Config("p", "t", ("k",), v.WindowSpec(0), ()), "0 ms"),
        (v.Config("p", "t", ("k",), v.WindowSpec(10), (), output="x"), "output mode"),
        (v.Config("p", "t", ("k",), v.WindowSpec(10), (v.Aggregate("k", "count"),)), "two output"),
        (v.Config("p", "t", ("k",), v.WindowSpec(10), (v.Aggregate("a", "sum"),)), "without a col"),
        (v.Config("p", "t", ("k",), v.WindowSpec(10), (v.Aggregate("a", "sum", "k"),)), "string"),
        (v.Config("p", "t", ("k",), v.WindowSpec(5, 0, v.HOPPING, 6), ()), "at each 6 ms"),
        (v.Config("p", "t", ("k",), v.WindowSpec(0, 0, v.CALENDAR, 0, 0, "day", "X"), ()), "zone"),
        (v.Config("p", "t", ("k",), v.WindowSpec(0, 0, v.CALENDAR, 0, 0, "d", "UTC"), ()), "unit"),
        (
            v.Config("p", "t", ("k",), v.WindowSpec(10), (v.Aggregate("a", "sum", "q"),)),
            "no column",
        ),
        (v.Config("p", "t", ("k",), v.WindowSpec(10), (v.Aggregate("a", "x", "k"),)), "operation"),
        (v.Config("p", "t", ("l",), v.WindowSpec(10), ()), "list"),
    ],
)
def test_required_a_wrong_definition_is_one_clear_error(config: v.Config, message: str) -> None:
    """Columns, types, names, sizes and modes are checked before the first row."""
    schema = rows([1], ["a"], [1]).schema.append(pa.field("l", pa.list_(pa.int8())))
    if not message:
        assert set(OWN_COLUMNS) < set(outbox_schema(config, schema).names)
        return
    with pytest.raises(CallerError, match=message):
        Windows(config, schema)


def test_required_a_batch_of_other_types_is_refused() -> None:
    """A source that changes its mind about a type is named."""
    windows = Windows(simple(), rows([1], ["a"], [1]).schema)
    with pytest.raises(InputError, match="int64"):
        fold(windows, pa.record_batch({"t": [1], "k": ["a"], "x": [1]}))
