"""Identity against an encoding written out by hand."""

from __future__ import annotations

import hashlib
import math
import struct
from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from thund.ids import gar_ids
from thund_contract import vocabulary as v

CONFIG = v.Config("pïpe", "t", ("k",), v.WindowSpec(10), (), operator="op")


def identity(*values: bytes, start: int) -> bytes:
    """blake2b over the parts, as the law has it."""
    head = b"\x05\x00\x00\x00p\xc3\xafpe\x02\x00\x00\x00op" + struct.pack("<I", len(values))
    data = head + b"".join(values) + struct.pack("<q", start)
    return hashlib.blake2b(data, digest_size=16).digest()


def test_required_every_type_has_its_own_encoding() -> None:
    """One column at a time: what its values become."""
    cases = [
        (pa.array([None, 5, -(1 << 63)]), [b"\0", b"\2" + (5).to_bytes(16, "little"), b"\2" + (-(1 << 63)).to_bytes(16, "little", signed=True)]),
        (pa.array([(1 << 64) - 1], pa.uint64()), [b"\2" + ((1 << 64) - 1).to_bytes(16, "little")]),
        (pa.array([True, False, None]), [b"\1\1", b"\1\0", b"\0"]),
        (pa.array([1.5, -0.0, -math.nan], pa.float32()), [b"\3" + struct.pack("<d", 1.5), b"\3" + bytes(8), b"\3" + struct.pack("<Q", 0x7FF8 << 48)]),
        (pa.array(["", "ä", None]), [b"\4" + bytes(4), b"\4\2\0\0\0\xc3\xa4", b"\0"]),
        (pa.array(["ä"]).dictionary_encode(), [b"\4\2\0\0\0\xc3\xa4"]),
        (pa.array([b"ab"], pa.binary(2)), [b"\5\2\0\0\0ab"]),
        (pa.array([date(1970, 1, 3), None]), [b"\6\x0b\0\0\0date32[day]\1\0\0\0002", b"\0"]),
        (pa.array([Decimal("1.50")], pa.decimal128(5, 2)), [b"\6\x10\0\0\0decimal128(5, 2)\4\0\0\0001.50"]),
        (pa.array([-7], pa.timestamp("us", "UTC")), [b"\6\x15\0\0\0timestamp[us, tz=UTC]\2\0\0\0-7"]),
        (pa.nulls(1), [b"\0"]),
    ]  # fmt: skip
    for column, want in cases:
        starts = np.arange(len(column)) * 10 - 10
        got = gar_ids(CONFIG, [column], starts)
        assert got.type == pa.binary(16)
        assert got.to_pylist() == [
            identity(x, start=int(s)) for x, s in zip(want, starts, strict=True)
        ]


def test_required_columns_follow_each_other_and_no_column_is_a_key_too() -> None:
    """Two columns, in order; none at all."""
    both = gar_ids(CONFIG, [pa.array(["a"]), pa.array([None], pa.int8())], np.array([-3]))
    assert both.to_pylist() == [identity(b"\4\1\0\0\0a", b"\0", start=-3)]
    assert gar_ids(CONFIG, [], np.array([20])).to_pylist() == [identity(start=20)]
    assert gar_ids(CONFIG, [pa.array([], pa.int64())], np.array([], np.int64)).to_pylist() == []


@given(st.lists(st.tuples(st.none() | st.text(), st.none() | st.binary(max_size=300)), min_size=1))
@settings(max_examples=60, deadline=None)
def test_required_messages_of_any_length_are_hashed_right(
    rows: list[tuple[str | None, bytes | None]],
) -> None:
    """Across the borders of the hash's blocks, in slices, with nulls."""

    def part(tag: bytes, data: bytes | None) -> bytes:
        return b"\0" if data is None else tag + struct.pack("<I", len(data)) + data

    names = pa.array(["before", *(name for name, _ in rows)], pa.utf8()).slice(1)
    blobs = pa.array([b"before", *(blob for _, blob in rows)], pa.large_binary()).slice(1)
    got = gar_ids(CONFIG, [names, blobs], np.full(len(rows), 7))
    want = [
        identity(part(b"\4", None if name is None else name.encode()), part(b"\5", blob), start=7)
        for name, blob in rows
    ]
    assert got.to_pylist() == want
