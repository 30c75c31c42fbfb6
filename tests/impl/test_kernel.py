"""The table under load: growth, long texts, layouts that widen, buffers that are used again."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from thund import kernel
from thund.batch import Delivery
from thund.table import NO_ROWS, Layout, Pool, State, Table, concat
from thund.windows import Windows
from thund_contract import vocabulary as v


def count_by(columns: dict[str, Any], *, pieces: int, output: str = v.APPEND) -> Counter[Any]:
    """count(*) by all columns, the rows in some batches of random sizes."""
    n = len(next(iter(columns.values())))
    batch = pa.record_batch({"t": np.zeros(n, np.int64), **columns})
    aggregates = (v.Aggregate("n", v.COUNT),)
    config = v.Config("p", "t", tuple(columns), v.WindowSpec(10), aggregates, output=output)
    windows = Windows(config, batch.schema)
    for part in np.array_split(np.arange(n), pieces):
        m = len(part)
        piece, zeros = batch.slice(part[0], m), np.zeros(m, np.int64)
        windows.fold(Delivery(piece, ("p",), zeros.astype(np.int32), part, part - 1), zeros, None)
    windows.close(v.END)
    outbox = windows.emit(1)[0]
    keys = zip(*(outbox[name].to_pylist() for name in columns), strict=True)
    return Counter(dict(zip(keys, outbox["n"].to_pylist(), strict=True)))


def test_required_many_keys_of_each_kind_survive_growth() -> None:
    """Past several doublings of index, entries and arena, each key has its own count."""
    rng = np.random.default_rng(3)
    n = 30_000
    numbers = rng.integers(-10_000, 10_000, n)
    long = [f"{'#' * int(x % 50)} key number {x}" for x in numbers]
    mixed: list[dict[str, Any]] = [
        {"k": pa.array(numbers)},
        {"k": pa.array(numbers << 40)},
        {"k": pa.array(numbers), "l": pa.array(numbers % 7)},
        {"k": pa.array(long)},
        {"k": pa.array(long), "l": pa.array(numbers % 3, pa.int8()), "m": pa.array(long[::-1])},
        {"k": pa.array(numbers, mask=numbers % 11 == 0), "l": pa.array(long, pa.large_utf8())},
    ]
    for columns in mixed:
        want = Counter(zip(*(column.to_pylist() for column in columns.values()), strict=True))
        assert count_by(columns, pieces=7) == want
        assert count_by(columns, pieces=3, output=v.UPDATE) == want


def test_required_texts_that_differ_in_one_byte_are_two_keys() -> None:
    """Every length around the words' borders, each with its neighbour in each byte."""
    texts = []
    for n in range(40):
        base = bytes(range(65, 65 + n))
        texts += [base, *(base[:i] + b"\x00" + base[i + 1 :] for i in range(n))]
    texts += [b"\x00" * n for n in range(40)]
    want = Counter((text,) for text in texts)
    assert count_by({"k": pa.array(texts, pa.binary())}, pieces=2) == want


def test_required_equal_hashes_do_not_make_equal_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a hash word that is the same for all texts, the bytes decide."""
    from thund import keys

    real = keys.encode_text

    def encode(*arguments: Any) -> int:
        long = real(*arguments)
        arguments[-2][:] = 7
        return int(long)

    monkeypatch.setattr(keys, "encode_text", encode)
    texts = [f"same length and same start {i % 300:04d}" for i in range(3000)]
    assert count_by({"k": pa.array(texts)}, pieces=2) == Counter((text,) for text in texts)


def layouts() -> tuple[Layout, Layout]:
    states = [State(kernel.SUM_INTEGER, 0, ("sum0:x", "sum1:x"), (0, 0))]
    more = [State(kernel.NULLS, 0, ("nulls:x",), (0,)), *states]
    return (
        Layout(1, (), states, key_nulls=False, touch=True),
        Layout(1, (), more, key_nulls=True, touch=True),
    )


def test_required_a_wider_layout_keeps_every_word_and_finds_every_key() -> None:
    """adopt moves entries, the touched list and the index together."""
    from thund.table import Inputs

    old, new = layouts()
    table = Table(old, Pool())
    table.stamp(5)
    keys, values = np.arange(5000), np.arange(5000) * 3
    zero = np.zeros(1, np.uint64)
    data = np.array([values.ctypes.data], np.uint64)

    def inputs(streams: list[Any]) -> Inputs:
        where = np.array([a.ctypes.data for a in streams], np.uint64)
        return Inputs(where, np.ones(len(streams), np.uint64), False, data, zero, zero)

    table.update(inputs([keys]), NO_ROWS, 0, 5000)
    table.adopt(new)
    nulls = np.zeros(5000, np.int64)
    table.update(inputs([keys, nulls]), NO_ROWS, 0, 5000)
    block = table.block(0, touched=True)
    assert block.words.shape == (new.size, 5000)
    assert block.word("key:0").tolist() == keys.tolist()
    assert block.word("sum0:x").tolist() == (values * 2).tolist()
    assert block.word("rows").tolist() == [2] * 5000
    assert not block.word("nulls:x").any()
    table.stamp(6)
    assert table.block(0, touched=True).words.shape[1] == 0
    both = concat(new, [Table(old, Pool()).block(0), block])
    assert both.word("sum0:x").tolist() == block.word("sum0:x").tolist()


def test_required_buffers_are_used_again_and_bounded() -> None:
    """A pool hands out what fits and keeps only a few."""
    pool = Pool()
    first = pool.take(1000)
    pool.give(first)
    assert pool.take(900) is first
    pool.give(first)
    assert pool.take(10) is not first
    for _ in range(50):
        pool.give(np.empty(1000, np.int64))
    assert len(pool._free) <= 8


def test_required_one_compiled_version_serves_every_plan() -> None:
    """No plan and no key type makes numba compile the kernel again."""
    rng = np.random.default_rng(1)
    count_by({"k": rng.integers(0, 9, 100)}, pieces=1)
    count_by({"k": pa.array(["a", None] * 50), "l": rng.random(100)}, pieces=2, output=v.UPDATE)
    assert len(kernel.update.signatures) == 1
