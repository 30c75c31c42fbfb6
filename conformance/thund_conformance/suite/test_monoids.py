"""A monoid of a user's own: its laws are tried when it is registered, and both engines run it."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thund.monoids import register_monoid
from thund_conformance import judge
from thund_conformance.scripts import config, drained, hopping, scenario, session, valued
from thund_contract.errors import CallerError
from thund_contract.scenario import Barrier, Deliver, DrainAll, Restart, Step
from thund_contract.vocabulary import UPDATE, Aggregate
from thund_reference import accumulators

MODULUS = 101


class Product:
    """The product of integers modulo 101."""

    name = "product"
    version = 1
    arity = 1
    output_type = pa.int64()

    def empty(self) -> object:
        return 1

    def lift(self, *values: object) -> object:
        (value,) = values
        assert isinstance(value, int)
        return value % MODULUS

    def merge(self, left: object, right: object) -> object:
        assert isinstance(left, int)
        assert isinstance(right, int)
        return left * right % MODULUS

    def encode(self, state: object) -> bytes:
        assert isinstance(state, int)
        return bytes([state])

    def decode(self, data: bytes) -> object:
        return data[0]

    def show(self, state: object) -> object:
        return state


class Newest(Product):
    """Not commutative: the right one wins."""

    name = "newest"

    def empty(self) -> object:
        return 0

    def merge(self, left: object, right: object) -> object:
        return right or left


SAMPLES = [(2,), (3,), (100,), (-7,)]
PRODUCT = Product()


@pytest.fixture(autouse=True)
def product() -> Iterator[None]:
    """Registered once in the implementation; the reference is handed the same object."""
    register_monoid(PRODUCT, SAMPLES)
    accumulators.USER["product@1"] = PRODUCT
    yield
    del accumulators.USER["product@1"]


P = (Aggregate("p", "product@1", "x"),)


@pytest.mark.law("G4")
@pytest.mark.parametrize("window", [hopping(10, 4), session(6), config().window])
def test_required_both_engines_run_a_users_monoid(engine_name: str, window: object) -> None:
    """Over panes of hopping windows, merging sessions, a null, and a restart."""
    rows = [(1, 2), (8, 3), (4, 5), (30, None), (31, 100)]
    s = scenario(
        config(window=window, aggregates=P, output=UPDATE, delay_ms=50), [valued("p0", rows)],
        Deliver("p0", 2), Barrier(), Restart(), Deliver("p0", 3), DrainAll(),
    )  # fmt: skip
    table = {(p.start_ms, p.end_ms): p.values[0] for p in judge.run_on(engine_name, s).table}
    expected = {
        "hopping": {(-8, 2): 2, (-4, 6): 10, (0, 10): 30, (4, 14): 15, (8, 18): 3},
        "session": {(1, 14): 30},
        "tumbling": {(0, 10): 30},
    }[window.kind]  # type: ignore[attr-defined]
    late = {span: value for span, value in table.items() if span[0] >= 20}
    assert {span: value for span, value in table.items() if span[0] < 20} == expected
    assert set(late.values()) == {100}


@pytest.mark.law("G4")
@given(values=st.lists(st.integers(-300, 300) | st.none(), max_size=8), data=st.data())
def test_required_no_order_and_no_cut_shows_in_it(
    slow_engine_name: str, values: list[int | None], data: st.DataObject
) -> None:
    order = data.draw(st.permutations(values))
    cuts = data.draw(st.sets(st.integers(0, len(values))))
    steps: list[Step] = []
    for place in range(len(order)):
        steps += [Barrier()] * (place in cuts) + [Deliver("p0", 1)]
    whole = drained(config(aggregates=P), valued("p0", [(1, v) for v in values]))
    cut = scenario(
        config(aggregates=P), [valued("p0", [(1, v) for v in order])], *steps, DrainAll()
    )
    found = [[p.values for p in judge.run_on(slow_engine_name, s).table] for s in (whole, cut)]
    assert found[0] == found[1]


@pytest.mark.law("G4")
def test_required_what_is_no_commutative_monoid_is_refused() -> None:
    with pytest.raises(CallerError, match="commut"):
        register_monoid(Newest(), SAMPLES)
