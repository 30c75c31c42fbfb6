"""Groups merged from table to table, against the same rows folded one by one in Python."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from thund import kernel_first, kernel_merge, sums
from thund.batch import Delivery
from thund.coding import Coding
from thund.kernel_sum import SPECIAL_SHIFT, UNIT
from thund.table import NO_ROWS, Block, Pool, Table, concat
from thund_contract import vocabulary as v

A = v.Aggregate
AGGREGATES = (
    A("n", v.COUNT),
    *(A(f"{operation} i", operation, "i") for operation in (v.SUM, v.MIN, v.MAX)),
    *(A(f"{operation} u", operation, "u") for operation in (v.SUM, v.MIN)),
    *(A(f"{operation} x", operation, "x") for operation in (v.MEAN, v.MIN, v.MAX)),
    A("any", v.ANY, "b"),
    A("first", v.FIRST, "s"),
    A("least", v.MIN, "s"),
    A("kinds", v.COUNT_DISTINCT, "s"),
)
SCHEMA = pa.schema(
    [
        ("t", pa.int64()),
        ("k", pa.string()),
        ("l", pa.int32()),
        ("i", pa.int64()),
        ("u", pa.uint64()),
        ("x", pa.float64()),
        ("b", pa.bool_()),
        ("s", pa.string()),
    ]
)
SPECIALS = [0.0, -0.0, 5e-324, 1.7e308, -1.7e308, 1e16, -1e-30]
Row = dict[str, Any]


def coding(keys: tuple[str, ...] = ("k", "l")) -> Coding:
    config = v.Config("p", "t", keys, v.WindowSpec(10), AGGREGATES, output=v.UPDATE)
    return Coding(config, SCHEMA)


def draw(rng: np.random.Generator, n: int, *, nulls: bool, specials: bool) -> pa.RecordBatch:
    """Rows of few keys whose floats lie far apart."""

    def column(name: str, values: list[Any]) -> pa.Array:
        mask = rng.random(n) < 0.2 if nulls and name != "t" else np.zeros(n, np.bool_)
        none = [None if m else x for x, m in zip(values, mask.tolist(), strict=True)]
        return pa.array(none, SCHEMA.field(name).type)

    floats = np.ldexp(rng.normal(size=n), rng.integers(-1000, 1000, n)).tolist()
    floats = [
        SPECIALS[int(c)] if c < len(SPECIALS) else x
        for c, x in zip(rng.integers(0, 20, n), floats, strict=True)
    ]
    if specials:
        odd = [math.nan, math.inf, -math.inf]
        floats = [
            odd[int(c)] if c < 3 else x for c, x in zip(rng.integers(0, 90, n), floats, strict=True)
        ]
    texts = [f"{'long ' * int(c)}key {c}" for c in rng.integers(0, 9, n)]
    columns = {
        "t": rng.integers(0, 5, n).tolist(),
        "k": texts,
        "l": rng.integers(0, 3, n).tolist(),
        "i": rng.integers(-(2**63), 2**63 - 1, n).tolist(),
        "u": rng.integers(0, 2**64 - 1, n, np.uint64).tolist(),
        "x": floats,
        "b": (rng.random(n) < 0.3).tolist(),
        "s": [f"{'s' * int(c)}{c}" for c in rng.integers(0, 30, n)],
    }
    return pa.record_batch([column(name, columns[name]) for name in SCHEMA.names], schema=SCHEMA)


def deliver(batch: pa.RecordBatch, first: int, partition: int) -> Delivery:
    n = batch.num_rows
    offsets = np.arange(first, first + n)
    return Delivery(batch, ("p10", "p9"), np.full(n, partition, np.int32), offsets, offsets - 1)


def fold(own: Coding, table: Table, delivery: Delivery) -> None:
    inputs = own.inputs(delivery, delivery.columns["t"].to_numpy())
    if table.layout is not own.layout:
        table.adopt(own.layout)
    table.update(inputs, NO_ROWS, 0, delivery.num_rows)


def rows_of(deliveries: list[Delivery]) -> dict[tuple[Any, ...], list[Row]]:
    """The rows of each key, with their places."""
    found = defaultdict(list)
    for d in deliveries:
        for row, p, o in zip(
            d.columns.to_pylist(), d.partition.tolist(), d.offset.tolist(), strict=True
        ):
            found[row["k"], row["l"]].append({**row, "place": (row["t"], d.partitions[p], o)})
    return found


def expected(rows: list[Row]) -> Row:
    """What a group must hold, from its rows."""

    def values(name: str) -> list[Any]:
        return [row[name] for row in rows if row[name] is not None]

    xs = values("x")
    whole = [Fraction(x) for x in xs if math.isfinite(x)]
    texts = [row for row in rows if row["s"] is not None]
    return {
        "rows": len(rows),
        "sum(i)": sum(values("i")),
        "min(i)": min(values("i"), default=None),
        "max(i)": max(values("i"), default=None),
        "sum(u)": sum(values("u")),
        "min(u)": min(values("u"), default=None),
        "count(x)": len(xs),
        "sum(x)": sum(whole, Fraction(0)),
        "specials": (any(map(math.isnan, xs)), math.inf in xs, -math.inf in xs),
        "any(b)": any(values("b")) if values("b") else None,
        "first(s)": min(texts, key=lambda row: row["place"])["s"] if texts else None,
        "min(s)": min(values("s"), default=None),
        "count_distinct(s)": sorted(set(values("s"))),
    }


def found(own: Coding, block: Block) -> dict[tuple[Any, ...], Row]:
    """What the groups of a block hold."""
    state = pa.table(own.state(concat(own.layout, [block]))).to_pylist()
    out = {}
    for i, line in enumerate(state):
        specials = int(block.word("sum0:x")[i]) >> SPECIAL_SHIFT
        out[line["key(k)"], line["key(l)"]] = {
            **{name: line[name] for name in ("rows", "min(i)", "max(i)", "min(u)", "count(x)")},
            **{name: int(line[name]) for name in ("sum(i)", "sum(u)")},
            "sum(x)": sums.float_sum(block, "x", i) * Fraction(2) ** UNIT,
            "specials": (bool(specials & 1), bool(specials & 2), bool(specials & 4)),
            "any(b)": line["any(b)"],
            "first(s)": (line["first(s)"] or {}).get("value"),
            "min(s)": line["min(s)"],
            "count_distinct(s)": sorted(line["count_distinct(s)"] or []),
        }
    return out


@pytest.mark.parametrize("seed", range(12))
def test_required_merged_tables_hold_what_their_rows_hold(seed: int) -> None:
    """Some tables of rows, with and without nulls and specials, merged into one in random order."""
    rng = np.random.default_rng(seed)
    own, pool, tables, deliveries = coding(), Pool(), [], []
    for piece in range(int(rng.integers(1, 6))):
        table = Table(own.layout, pool)
        for part in range(2):
            n = int(rng.integers(1, 300))
            batch = draw(rng, n, nulls=bool(rng.random() < 0.4), specials=bool(rng.random() < 0.4))
            deliveries.append(deliver(batch, piece * 1000 + part * 500, int(rng.integers(0, 2))))
            fold(own, table, deliveries[-1])
        tables.append(table)
    whole = Table(own.layout, pool)
    for i in rng.permutation(len(tables)).tolist():
        block = tables[i].block(0)
        whole.merge(block, block.inputs(own.layout))
    want = {key: expected(rows) for key, rows in rows_of(deliveries).items()}
    assert found(own, whole.block(0)) == want


@pytest.mark.parametrize("seed", range(4))
def test_required_groups_of_one_key_in_one_block_merge(seed: int) -> None:
    """A block may name a key several times, as merging sessions do."""
    rng = np.random.default_rng(seed)
    own, pool, blocks, deliveries = coding(), Pool(), [], []
    for piece in range(4):
        table = Table(own.layout, pool)
        deliveries.append(
            deliver(draw(rng, 200, nulls=piece > 1, specials=piece > 2), 1000 * piece, 0)
        )
        fold(own, table, deliveries[-1])
        blocks.append(table.block(0).own())
        table.free()
    together = concat(own.layout, blocks)
    whole = Table(own.layout, pool)
    whole.merge(together, together.inputs(own.layout))
    want = {key: expected(rows) for key, rows in rows_of(deliveries).items()}
    assert found(own, whole.block(0)) == want


def test_required_many_wide_sums_find_room() -> None:
    """Each of many groups needs a wide sum when it merges, none before."""
    own, n = coding(("i",)), 3000
    columns = {name: pa.nulls(n, SCHEMA.field(name).type) for name in SCHEMA.names}
    columns["i"] = pa.array(np.arange(n))
    whole = Table(own.layout, Pool())
    for x in (1e200, 1e-200, 3.0, -1e200):
        columns["x"] = pa.array(np.full(n, x))
        batch = pa.record_batch(columns, schema=SCHEMA)
        table = Table(own.layout, Pool())
        inputs = own.inputs(deliver(batch, 0, 0), np.zeros(n, np.int64))
        table.adopt(own.layout)
        table.update(inputs, NO_ROWS, 0, n)
        whole.adopt(own.layout)
        block = table.block(0)
        assert len(block.wide) == 0
        whole.merge(block, block.inputs(own.layout))
    block = whole.block(0)
    want = Fraction(1e-200) + 3
    assert {sums.float_sum(block, "x", i) * Fraction(2) ** UNIT for i in range(n)} == {want}
    assert whole.groups == n


def test_required_touch_is_the_later_stamp() -> None:
    """Of two tables the groups of the newest epoch are touched, each named once."""
    own, pool = coding(("i",)), Pool()

    def table(epoch: int, keys: list[int]) -> Table:
        columns = {name: pa.nulls(len(keys), SCHEMA.field(name).type) for name in SCHEMA.names}
        columns["i"] = pa.array(keys)
        made = Table(own.layout, pool)
        made.stamp(epoch)
        inputs = own.inputs(
            deliver(pa.record_batch(columns, schema=SCHEMA), 0, 0), np.zeros(len(keys), np.int64)
        )
        made.adopt(own.layout)
        made.update(inputs, NO_ROWS, 0, len(keys))
        return made

    old, new, newer = table(1, [1, 2, 3]), table(2, [3, 4]), table(2, [3, 5])
    whole = Table(own.layout, pool)
    whole.stamp(2)
    for piece in (new, old, newer):
        block = piece.block(0)
        whole.merge(block, block.inputs(own.layout))
    touched = whole.block(0, touched=True)
    assert sorted(touched.word("key:0").tolist()) == [3, 4, 5]
    assert sorted(whole.block(0).word("key:0").tolist()) == [1, 2, 3, 4, 5]
    by_key = dict(zip(touched.word("key:0").tolist(), touched.word("rows").tolist(), strict=True))
    assert by_key == {3: 3, 4: 1, 5: 1}


def test_required_locate_numbers_entries_from_one() -> None:
    """Old keys keep their number over growth and a wider layout, new ones get the next."""
    own = coding(("i",))
    n = 5000
    columns = {name: pa.nulls(n, SCHEMA.field(name).type) for name in SCHEMA.names}
    columns["i"] = pa.array(np.arange(n) % 1700)
    batch = pa.record_batch(columns, schema=SCHEMA)
    inputs = own.inputs(deliver(batch, 0, 0), np.zeros(n, np.int64))
    table = Table(own.layout, Pool())
    first = table.locate(inputs, NO_ROWS, 0, n)
    assert first.tolist() == (np.arange(n) % 1700 + 1).tolist()
    rows = np.array([1699, 3, 3, 0], np.uint32)
    assert table.locate(inputs, rows, 1, 4).tolist() == [4, 4, 1]
    assert table.groups == 1700
    assert not table.block(0).word("rows").any()


def test_required_one_compiled_version_serves_every_merge() -> None:
    """Views of tables, blocks of their own and other layouts are one signature to the compiler."""
    rng = np.random.default_rng(9)
    own, pool = coding(), Pool()
    table = Table(own.layout, pool)
    fold(own, table, deliver(draw(rng, 50, nulls=False, specials=True), 0, 0))
    before = table.block(0).own()
    fold(own, table, deliver(draw(rng, 50, nulls=True, specials=True), 50, 1))
    for block in (before, table.block(0), concat(own.layout, [before, before])):
        Table(own.layout, pool).merge(block, block.inputs(own.layout))
    assert len(kernel_merge.merge.signatures) == 1
    assert len(kernel_first.earlier.signatures) == 1
