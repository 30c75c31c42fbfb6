"""The comparison: what is the same, what is not, and that every difference has its line."""

import math
from dataclasses import fields, replace

import pytest

from thund_conformance import compare, engines, golden, link
from thund_contract.engine import Capabilities
from thund_contract.vocabulary import EpochRecord

DIFFERENT = [
    None,
    True,
    1,
    1.0,
    "1",
    b"1",
    (1,),
    0,
    0.0,
    -0.0,
    False,
    "",
    math.nan,
    math.inf,
    ("a", 1),
]


@pytest.mark.parametrize("left", DIFFERENT, ids=repr)
def test_required_values_of_other_kinds_or_bits_differ(left):
    assert [compare.same(left, right) for right in DIFFERENT].count(True) == 1


def test_required_there_is_one_nan():
    assert compare.same((math.nan, 1), (-math.nan, 1))


def test_required_what_has_no_normal_form_is_an_error():
    with pytest.raises(TypeError):
        compare.normal(object())


@pytest.fixture
def outcome():
    s = golden.read(golden.FOLDER / "exact-sums.txt").scenario
    return link.run(engines.make(engines.REFERENCE, s), s)


def test_required_an_outcome_equals_itself_in_any_order(outcome):
    turned = replace(
        outcome,
        table=outcome.table[::-1],
        epochs=tuple(replace(e, unfit=e.unfit[::-1], state=e.state[::-1]) for e in outcome.epochs),
    )
    assert compare.differences(outcome, turned) == []


@pytest.mark.parametrize("field", ["table", "steps", "credits", "duplicates", "fault", "epochs"])
def test_required_each_field_of_an_outcome_is_compared(outcome, field):
    other = {"duplicates": 9, "fault": "x"}.get(
        field, getattr(outcome, field)[1:] if field not in ("duplicates", "fault") else None
    )
    assert compare.differences(outcome, replace(outcome, **{field: other}))


@pytest.mark.parametrize("field", [f.name for f in fields(EpochRecord)])
def test_required_each_field_of_an_epoch_is_compared(outcome, field):
    epoch = outcome.epochs[-1]
    value = getattr(epoch, field)
    other = (
        value[1:]
        if isinstance(value, tuple) and value
        else value + 1
        if isinstance(value, int) and not isinstance(value, bool)
        else (not value if isinstance(value, bool) else ("extra",))
    )
    changed = replace(outcome, epochs=(*outcome.epochs[:-1], replace(epoch, **{field: other})))
    lines = compare.differences(outcome, changed)
    assert any(line.startswith(f"epoch {epoch.epoch} {field}") for line in lines), lines


def test_required_only_what_an_engine_cannot_show_is_left_out(outcome):
    other = replace(outcome, steps=(), credits=(), duplicates=7)
    assert len(compare.differences(outcome, other)) > 3
    cannot = Capabilities(crashes=False, credits=False)
    assert compare.differences(outcome, other, can=[cannot]) == []
    assert compare.differences(outcome, replace(other, table=()), can=[cannot])


def test_required_a_doubled_row_is_a_difference(outcome):
    doubled = replace(outcome, table=(*outcome.table, outcome.table[0]))
    lines = compare.differences(outcome, doubled, names=("one", "two"))
    assert lines[0] == "table:"
    assert "only two" in lines[1]
