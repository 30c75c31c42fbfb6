"""first, last, any, all, count_distinct and the extremes of every type, against plain Python."""

from __future__ import annotations

import math
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from thund.batch import Delivery
from thund.extra_extreme import extreme_kind
from thund.extra_values import Values
from thund.windows import STATE, Windows
from thund_contract import vocabulary as v
from thund_contract.errors import CallerError

NAMES = ("p9", "p10", "p1")
"""Their order as names is not that of their numbers."""

TEXTS = [
    "",
    "a",
    "ab",
    "é",
    "\U0001f600",
    "\uffff",
    "a text of more than twelve bytes",
    "a text of more than 12",
]
DECIMALS = [Decimal(x) for x in ("-99.99", "0.00", "0.01", "12.30", "99.99")]
DRAWN: dict[Any, list[Any]] = {
    pa.int8(): [-128, 0, 5, 127],
    pa.uint64(): [0, 5, 2**64 - 1],
    pa.float64(): [1.5, -2.0, math.inf, math.nan],
    pa.bool_(): [True, False],
    pa.date32(): [0, 5, 19000],
    pa.timestamp("us", "UTC"): [-5, 0, 10**15],
    pa.string(): TEXTS,
    pa.large_string(): TEXTS,
    pa.string_view(): TEXTS,
    pa.dictionary(pa.int8(), pa.string()): TEXTS,
    pa.binary(): [text.encode() for text in TEXTS],
    pa.binary_view(): [text.encode() for text in TEXTS],
    pa.binary(2): [b"\x00\x00", b"\x00\xff", b"zz"],
    pa.decimal32(4, 2): DECIMALS,
    pa.decimal128(10, 2): DECIMALS,
    pa.decimal256(40, 2): DECIMALS,
    pa.null(): [None],
}


def operations(kind: Any) -> list[str]:
    found = [v.FIRST, v.LAST, v.COUNT_DISTINCT]
    if pa.types.is_boolean(kind):
        return [*found, v.ANY, v.ALL]
    return found if pa.types.is_null(kind) else [*found, v.MIN, v.MAX]


def expected(operation: str, rows: list[tuple[Any, Any]]) -> Any:
    """Of (place, value), nulls among them. NaN is the largest float."""
    rows = [(place, value) for place, value in rows if value is not None]
    values = [value for _, value in rows]
    if operation == v.COUNT_DISTINCT:
        return len({repr(value) for value in values})
    if not rows:
        return None
    if operation in (v.FIRST, v.LAST):
        return (min if operation == v.FIRST else max)(rows, key=lambda row: row[0])[1]
    if operation in (v.ANY, v.ALL):
        return any(values) if operation == v.ANY else all(values)
    return (min if operation == v.MIN else max)(values, key=_rank)


def _rank(value: Any) -> Any:
    if isinstance(value, float):
        return (math.isnan(value), 0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


def same(left: Any, right: Any) -> bool:
    nans = isinstance(left, float) and isinstance(right, float) and math.isnan(left)
    return bool(nans and math.isnan(right)) or (left == right and type(left) is type(right))


def deliveries(rng: np.random.Generator, kind: Any) -> list[Delivery]:
    """Batches of some keys, each of rows of several partitions, event times often equal."""
    out = []
    for piece in range(4):
        n = int(rng.integers(1, 120))
        values = [DRAWN[kind][i] for i in rng.integers(0, len(DRAWN[kind]), n)]
        values = [None if rng.random() < 0.2 else value for value in values]
        batch = pa.record_batch(
            {
                "t": rng.integers(0, 4, n),
                "k": rng.integers(0, 12, n),
                "x": pa.array(values, kind),
            }
        )
        offsets = rng.permutation(n) + 1000 * piece
        partition = rng.integers(0, 3, n).astype(np.int32)
        out.append(Delivery(batch, NAMES, partition, offsets, offsets - 1))
    return out


@pytest.mark.parametrize("kind", DRAWN, ids=str)
def test_required_every_type_over_any_cut_and_restart(kind: Any, tmp_path: Path) -> None:
    """What is shown, and its type, however the rows come, with the state read back from parquet."""
    rng = np.random.default_rng(5)
    aggregates = tuple(v.Aggregate(operation, operation, "x") for operation in operations(kind))
    config = v.Config("p", "t", ("k",), v.WindowSpec(10), aggregates)
    found = deliveries(rng, kind)
    rows = defaultdict(list)
    for d in found:
        lines = zip(d.columns.to_pylist(), d.partition.tolist(), d.offset.tolist(), strict=True)
        for line, p, o in lines:
            rows[line["k"]].append(((line["t"], d.partitions[p], o), line["x"]))
    for order in (range(4), rng.permutation(4).tolist()):
        windows = Windows(config, found[0].columns.schema)
        for i in order:
            windows.fold(found[i], found[i].columns["t"].to_numpy(), None)
            pq.write_table(windows.snapshot()[STATE], tmp_path / "state.parquet")
            windows = Windows(config, found[0].columns.schema)
            windows.restore({STATE: pq.read_table(tmp_path / "state.parquet")}, v.NEVER)
        windows.close(v.END)
        shown = windows.emit(1)[0]
        assert shown.num_rows == len(rows)
        for operation in operations(kind):
            plain = kind.value_type if pa.types.is_dictionary(kind) else kind
            own = pa.int64() if operation == v.COUNT_DISTINCT else plain
            assert shown.schema.field(operation).type == own
        for line in shown.to_pylist():
            for operation in operations(kind):
                want = expected(operation, rows[line["k"]])
                assert same(line[operation], want), (operation, line, rows[line["k"]])


def test_required_zeros_and_nans_are_counted_once() -> None:
    """-0.0 is 0.0 and NaN is one value, whatever its bits."""
    nans = np.array([0x7FF8 << 48, 0x7FF8 << 48 | 5, -1], np.int64).view(np.float64)
    values = np.concatenate([nans, [0.0, -0.0, 1.0]])
    batch = pa.record_batch({"t": np.zeros(6, np.int64), "x": values})
    config = v.Config("p", "t", (), v.WindowSpec(10), (v.Aggregate("n", v.COUNT_DISTINCT, "x"),))
    windows = Windows(config, batch.schema)
    numbers = np.arange(6)
    delivery = Delivery(batch, ("p",), np.zeros(6, np.int32), numbers, numbers - 1)
    windows.fold(delivery, np.zeros(6, np.int64), None)
    windows.close(v.END)
    assert windows.emit(1)[0]["n"].to_pylist() == [3]


def test_required_update_mode_shows_the_touched_groups_whole() -> None:
    """An extra of a group that has a new row shows all its rows; other groups are not shown."""
    aggregates = (v.Aggregate("n", v.COUNT_DISTINCT, "x"), v.Aggregate("x", v.MAX, "x"))
    config = v.Config("p", "t", ("k",), v.WindowSpec(10), aggregates, output=v.UPDATE)
    schema = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("x", pa.string())])
    windows = Windows(config, schema)
    shown = []
    for epoch, (keys, texts) in enumerate([([1, 2, 3], "abc"), ([2, 2], "za"), ([3], "c")], 1):
        n = len(keys)
        batch = pa.record_batch([[0] * n, keys, list(texts)], schema=schema)
        offsets = np.arange(n)
        delivery = Delivery(batch, ("p",), np.zeros(n, np.int32), offsets, offsets - 1)
        windows.fold(delivery, np.zeros(n, np.int64), None)
        rows = windows.emit(epoch)[0].to_pylist()
        shown.append(sorted((row["k"], row["n"], row["x"]) for row in rows))
    assert shown == [[(1, 1, "a"), (2, 1, "b"), (3, 1, "c")], [(2, 3, "z")], [(3, 1, "c")]]


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        (v.MIN, pa.bool_()),
        (v.ANY, pa.int64()),
        (v.ALL, pa.string()),
        (v.SUM, pa.string()),
        (v.MEAN, pa.date32()),
        (v.FIRST, pa.list_(pa.int64())),
        (v.LAST, pa.struct([("a", pa.int64())])),
        (v.COUNT_DISTINCT, pa.list_(pa.int64())),
    ],
    ids=str,
)
def test_required_an_operation_says_which_types_it_has(operation: str, kind: Any) -> None:
    config = v.Config("p", "t", (), v.WindowSpec(10), (v.Aggregate("a", operation, "x"),))
    with pytest.raises(CallerError, match=f"{operation} of column 'x' of type"):
        Windows(config, pa.schema([("t", pa.int64()), ("x", kind)]))


def test_required_replaced_values_do_not_pile_up() -> None:
    """A value that is replaced for ever is kept once, and the newest is what shows."""
    values, entries = Values(pa.string()), np.arange(1, 101)
    for round_ in range(300):
        chosen = entries[round_ % 2 :: 2]
        values.put(chosen, pa.array([f"{e} {round_}" for e in chosen.tolist()]))
        assert sum(len(piece) for piece in values._pieces) <= 5000
    want = [f"{e} {299 if e % 2 == 0 else 298}" for e in entries.tolist()]
    assert values.show(entries).to_pylist() == want
    assert values.show(np.array([5000, 1])).to_pylist() == [None, want[0]]


@pytest.mark.parametrize("operation", [v.MIN, v.MAX])
def test_required_replaced_texts_do_not_pile_up(operation: str) -> None:
    """Where each row beats the one before it, the arena stays as small as what it shows."""
    schema = pa.schema([("x", pa.string())])
    kind = extreme_kind(v.Aggregate("a", operation, "x"), schema)
    assert kind is not None
    extra, sign = kind.new(), -1 if operation == v.MIN else 1
    entries = np.arange(1, 11)
    for i in range(3000):
        texts = [f"{'x' * 40} {e} {5000 + sign * i}" for e in entries.tolist()]
        extra.absorb(entries, pa.array(texts))
        assert extra._used < 1 << 18  # type: ignore[attr-defined]
    assert extra.states(np.array([11, 3])).to_pylist() == [None, texts[2]]


def test_required_empty_texts_are_values() -> None:
    schema = pa.schema([("x", pa.string())])
    kind = extreme_kind(v.Aggregate("a", v.MAX, "x"), schema)
    assert kind is not None
    extra = kind.new()
    extra.absorb(np.array([1, 1]), pa.array(["", ""]))
    assert extra.states(np.array([1, 2])).to_pylist() == ["", None]
