"""A user's own monoid: its laws are tested when it is registered, and its groups merge in any way."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import thund
from thund import monoids
from thund.extra_kinds import extra_kind
from thund_contract import vocabulary as v
from thund_contract.errors import CallerError, InputError

EVERY = np.arange(1, 5)
PAIR = pa.list_(pa.int64())


@dataclass(eq=False)
class Peak:
    """The largest product of two columns, and how often it was seen."""

    name: str = "peak"
    version: int = 1
    arity: int = 2
    output_type: Any = PAIR

    def empty(self) -> Any:
        return (0, 0)

    def lift(self, *values: Any) -> Any:
        return (values[0] * values[1], 1)

    def merge(self, left: Any, right: Any) -> Any:
        if 0 in (left[1], right[1]):
            return left if left[1] else right
        best = max(left[0], right[0])
        return (best, sum(n for x, n in (left, right) if x == best))

    def encode(self, state: Any) -> bytes:
        return json.dumps(state).encode()

    def decode(self, data: bytes) -> Any:
        return tuple(json.loads(data))

    def show(self, state: Any) -> Any:
        return ("list", state) if state[1] else None


SAMPLES = [(1, 2), (2, 1), (-1, 3), (0, 0), (5, 5)]


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has a registry of its own."""
    monkeypatch.setattr(monoids, "_REGISTERED", {})


def groups(monoid: Any, columns: list[Any], entries: list[int], *, cuts: int) -> tuple[Any, Any]:
    names = [f"c{i}" for i in range(len(columns))]
    schema = pa.schema([(n, c.type) for n, c in zip(names, columns, strict=True)])
    operation = f"{monoid.name}@{monoid.version}"
    kind = extra_kind(v.Aggregate("a", operation, names[0], tuple(names[1:])), schema)
    assert kind is not None
    extra = kind.new()
    for part in np.array_split(np.arange(len(entries)), cuts):
        piece = [c.take(pa.array(part)) for c in columns]
        other = kind.new()
        other.fold(np.array(entries)[part], piece, None)  # type: ignore[arg-type]
        states = other.states(EVERY)
        assert states.type == kind.state_type
        extra.absorb(EVERY, states)
    return kind, extra.states(EVERY)


@pytest.mark.parametrize("cuts", [1, 2, 7])
def test_required_groups_are_those_of_a_loop(cuts: int) -> None:
    peak = Peak()
    assert thund.register_monoid(peak, SAMPLES) == "peak@1"
    rng = np.random.default_rng(cuts)
    entries = rng.integers(1, 4, 40).tolist()
    rows = [
        [None if x == 5 else int(x) for x in line] for line in rng.integers(-3, 6, (40, 2)).tolist()
    ]
    columns = [pa.array([row[c] for row in rows], pa.int64()) for c in (0, 1)]
    kind, states = groups(peak, columns, entries, cuts=cuts)
    shown, lost = kind.show(states, "peak@1")
    assert lost == {}
    assert shown.type == peak.output_type
    for i, entry in enumerate(EVERY.tolist()):
        found = [
            a * b
            for e, (a, b) in zip(entries, rows, strict=True)
            if e == entry and None not in (a, b)
        ]
        want = [max(found), found.count(max(found))] if found else None
        assert shown[i].as_py() == want
    assert states[3].as_py() == b"[0, 0]"


class Kinds(Peak):
    """Keeps the texts of the values that it is given."""

    def empty(self) -> Any:
        return ()

    def lift(self, *values: Any) -> Any:
        return (repr(values),)

    def merge(self, left: Any, right: Any) -> Any:
        return tuple(sorted(left + right))

    def show(self, state: Any) -> Any:
        return "".join(state)


def test_required_values_come_in_the_contracts_form() -> None:
    kinds = Kinds("kinds", arity=9, output_type=pa.string())
    thund.register_monoid(kinds, [tuple(range(9))])
    columns = [
        pa.array([True]),
        pa.array([200], pa.uint8()),
        pa.array([0.5], pa.float32()),
        pa.array(["ö"]).dictionary_encode().dictionary_decode(),
        pa.array([b"\0"], pa.large_binary()),
        pa.array([7], pa.int32()).view(pa.date32()),
        pa.array([-5], pa.timestamp("us", "UTC")),
        pa.array(["1.25"]).cast(pa.decimal128(10, 2)),
        pa.array([math.nan]),
    ]
    kind, states = groups(kinds, columns, [2], cuts=1)
    assert kind.show(states, "kinds@1")[0][1].as_py() == (
        "(True, 200, 0.5, 'ö', b'\\x00', ('date32[day]', 7), ('timestamp[us, tz=UTC]', -5), "
        "('decimal128(10, 2)', 125), nan)"
    )


class Total(Peak):
    """A sum, which is a monoid over integers."""

    def empty(self) -> Any:
        return 0

    def lift(self, *values: Any) -> Any:
        return values[0]

    def merge(self, left: Any, right: Any) -> Any:
        return left + right

    def decode(self, data: bytes) -> Any:
        return json.loads(data)

    def show(self, state: Any) -> Any:
        return state


def total(**more: Any) -> Total:
    return Total("total", arity=1, **{"output_type": pa.int8(), **more})


def test_required_an_integer_too_large_is_shown_as_null_and_reported() -> None:
    thund.register_monoid(total(), [(1,), (100,)])
    column = pa.array([100, 27, 100, 28, -129], pa.int64())
    kind, states = groups(total(), [column], [1, 1, 2, 2, 3], cuts=2)
    shown, lost = kind.show(states, "total@1")
    assert shown.to_pylist() == [127, None, None, 0]
    assert lost == {1: "128", 2: "-129"}


def test_required_a_float_sum_is_refused_with_its_smallest_counterexample() -> None:
    with pytest.raises(CallerError) as caught:
        thund.register_monoid(
            broken("show", lambda self, x: float(x), output_type=pa.float64()),
            [(0.1,), (0.2,), (0.3,)],
        )
    assert "merge(merge(lift(0.1), lift(0.2)), lift(0.3))" in caught.value.found
    assert "associative" in caught.value.allowed
    assert "broken@1" in caught.value.where


def broken(method: str, function: Any, output_type: Any = None) -> Any:
    """A sum with one method of its own."""
    made = type("Broken", (Total,), {method: function})
    return made("broken", arity=1, output_type=output_type or pa.int64())


def _append(self: Any, left: list[int], right: list[int]) -> list[int]:
    left.extend(right)
    return left


def _lists(merge: Any, encode: Any) -> Any:
    methods = {
        "empty": lambda self: [],
        "lift": lambda self, x: [x],
        "merge": merge,
        "encode": encode,
        "show": lambda self, state: len(state),
    }
    return type("Lists", (Total,), methods)("lists", arity=1, output_type=pa.int64())


COUNT = iter(range(1000))


@pytest.mark.parametrize(
    ("monoid", "law", "said"),
    [
        (broken("empty", lambda self: 1), "empty() adds nothing", "empty()"),
        (broken("merge", lambda self, a, b: a or b), "commutative", "merge(lift(1), lift(2))"),
        (broken("merge", lambda self, a, b: abs(a - b)), "associative", "merge("),
        (broken("decode", lambda self, data: 0), "decode gives", "decode(encode(lift(1)))"),
        (broken("lift", lambda self, x: next(COUNT)), "equal states for equal values", "lift("),
        (broken("encode", lambda self, x: str(x)), "bytes", "encode(lift(1))"),
        (broken("encode", lambda self, x: b"%d %d" % (x, next(COUNT))), "same bytes", "twice"),
        (broken("encode", lambda self, x: b"0"), "show the same", "both are b'0'"),
        (broken("show", lambda self, x: float(x)), "value of int64", "show("),
        (broken("lift", lambda self, x: 1 // (x - 2)), "no exception", "lift(2) raised"),
        (_lists(_append, Total.encode), "leaves both", "changed"),
        (_lists(lambda self, a, b: a + b, Total.encode), "commutative", "[1, 2]"),
    ],
)
def test_required_each_law_is_tested(monoid: Any, law: str, said: str) -> None:
    with pytest.raises(CallerError) as caught:
        thund.register_monoid(monoid, [(1,), (2,), (3,)])
    assert law in caught.value.allowed
    assert said in caught.value.found
    assert monoids.registered() == {}


def test_required_sorted_lists_are_a_monoid() -> None:
    """What is left of a broken one when it is put right, so that the test above means something."""
    good = _lists(lambda self, a, b: sorted(a + b), Total.encode)
    assert thund.register_monoid(good, [(1,), (2,), (3,)]) == "lists@1"


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "no name"},
        {"name": v.SUM},
        {"version": 0},
        {"version": True},
        {"arity": 0},
        {"output_type": pa.float32()},
        {"output_type": pa.struct([("x", pa.int64())])},
        {"output_type": pa.list_(pa.list_(pa.int64()))},
    ],
)
def test_required_a_monoid_is_described_rightly(wrong: dict[str, Any]) -> None:
    with pytest.raises(CallerError):
        thund.register_monoid(Peak(**wrong), SAMPLES)


@pytest.mark.parametrize("samples", [[], [(1,)], [1]])
def test_required_samples_are_rows(samples: Any) -> None:
    with pytest.raises(CallerError):
        thund.register_monoid(Peak(), samples)


def test_required_a_name_and_version_are_registered_once() -> None:
    first = Peak()
    thund.register_monoid(first, SAMPLES)
    assert thund.register_monoid(first, SAMPLES) == "peak@1"
    with pytest.raises(CallerError, match="version 2"):
        thund.register_monoid(Peak(), SAMPLES)
    assert thund.register_monoid(Peak(version=2), SAMPLES) == "peak@2"
    assert set(monoids.registered()) == {"peak@1", "peak@2"}


def test_required_an_unknown_operation_names_those_there_are() -> None:
    thund.register_monoid(Peak(), SAMPLES)
    schema = pa.schema([("x", pa.int64())])
    with pytest.raises(CallerError) as caught:
        extra_kind(v.Aggregate("a", "peek@1", "x", ("x",)), schema)
    assert "peak@1" in caught.value.action
    assert "count_distinct" in caught.value.allowed
    with pytest.raises(CallerError, match="1 columns"):
        extra_kind(v.Aggregate("a", "peak@1", "x"), schema)


def test_required_a_function_that_raises_names_its_monoid() -> None:
    fussy = broken("lift", lambda self, x: 1 // (x - 99))
    thund.register_monoid(fussy, [(1,), (2,)])
    with pytest.raises(InputError) as caught:
        groups(fussy, [pa.array([1, 99])], [1, 1], cuts=1)
    assert "broken@1" in caught.value.where
    assert "99" in caught.value.found
