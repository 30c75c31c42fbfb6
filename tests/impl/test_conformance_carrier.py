"""Typed columns for scenarios: each value goes to Arrow and comes back as it was."""

import math

import pyarrow as pa
import pytest

from thund_conformance import compare
from thund_conformance.engines import BUILT_IN, make
from thund_conformance.engines.carrier import Carrier, column_type, from_arrow, to_arrow
from thund_conformance.engines.log_source import LogSource
from thund_conformance.scripts import config, log, scenario, valued
from thund_contract.vocabulary import SUM, Aggregate

COLUMNS = [
    (1, None, -(2**63)),
    (1.5, None, -0.0, math.nan, math.inf),
    ("a", None, ""),
    (b"\x00", None),
    (True, None, False),
    (("date32[day]", -1), None),
    (("timestamp[us, tz=UTC]", 5), None),
    (("time64[us]", 5),),
    (("duration[ms]", -5),),
    (("decimal128(38, 2)", -(10**38) + 1), None, ("decimal128(38, 2)", 0)),
    (("decimal256(76, -3)", 10**76 - 1),),
    (None, None),
]


@pytest.mark.parametrize("values", COLUMNS, ids=repr)
def test_required_values_come_back(values):
    kind = column_type("c", values)
    assert compare.same(tuple(from_arrow(pa.chunked_array([to_arrow(values, kind)]))), values)


def test_required_lists_and_structs_keep_their_nulls():
    lists = pa.chunked_array([[[1, None], None, []], [[2]]], pa.list_(pa.int64()))
    assert from_arrow(lists) == [("list", (1, None)), None, ("list", ()), ("list", (2,))]
    assert from_arrow(lists.slice(2)) == [("list", ()), ("list", (2,))]
    kind = pa.struct([("a", pa.date32()), ("b", pa.string())])
    day = pa.scalar(3, pa.int32()).cast(pa.date32())
    structs = pa.chunked_array([pa.array([{"a": day, "b": None}, None], kind)])
    assert from_arrow(structs) == [{"a": ("date32[day]", 3), "b": None}, None]
    assert from_arrow(structs.slice(1)) == [None]


@pytest.mark.parametrize(
    ("numbers", "kind"),
    [
        ((0, 255), pa.uint8()),
        ((-1, 127), pa.int8()),
        ((-129, 0), pa.int16()),
        ((0, 2**32), pa.uint64()),
        ((-(2**63), 2**63 - 1), pa.int64()),
    ],
)
def test_required_rarer_types_hold_the_same_values(numbers, kind):
    rows = [(1, n) for n in numbers]
    s = scenario(config(aggregates=(Aggregate("a", SUM, "x"),)), [valued("p0", rows, key="text")])
    carrier = Carrier(s, other_types=True)
    columns = carrier.delivery([(row, -1) for row in s.logs[0][1]]).columns
    assert columns.schema.field("x").type == kind
    assert columns.schema.field("et").type == pa.timestamp("ms", "UTC")
    assert columns.column("x").to_pylist() == list(numbers)
    assert columns.column("k").to_pylist() == ["text"] * 2


def test_required_a_column_has_one_type():
    with pytest.raises(ValueError, match="column c"):
        column_type("c", (1, "a"))


def test_required_an_aggregated_column_has_one_value_per_row():
    twice = (Aggregate("a", SUM, "x"), Aggregate("b", SUM, "x"))
    s = scenario(config(aggregates=twice), [valued("p0", [(1, 1, 2)])])
    with pytest.raises(ValueError, match="several values of x"):
        Carrier(s).delivery([(s.logs[0][1][0], -1)])


def test_required_the_log_source_stops_before_a_row_without_credit():
    s = scenario(config(), [log("p0", 1, 2, 3), log("p1", 4, 5)])
    source = LogSource(s, Carrier(s), chunk=2)
    start = {"p0": -1, "p1": -1}
    got = source.read(start, {"p0": 9, "p1": 1}, 100)
    assert list(zip(got.partition.tolist(), got.offset.tolist(), strict=True)) == [
        (0, 0),
        (0, 1),
        (1, 0),
    ]
    assert source.read({"p0": 2, "p1": 1}, {}, 5) is None


def test_required_an_unknown_engine_is_refused():
    s = scenario(config(), [])
    for name in BUILT_IN:
        assert make(name, s).name == name
    assert make("thund_conformance.engines.reference:Reference", s).name == "reference"
    with pytest.raises(ValueError, match="nobody"):
        make("nobody", s)
