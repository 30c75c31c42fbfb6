"""Golden files: what is printed is parsed back to the same, and a bad line is named."""

import pytest
from hypothesis import given

from thund_conformance import compare, engines, golden, link, strategies
from thund_conformance.words import Words, literal
from thund_contract.scenario import Scenario


@given(strategies.scenarios(strategies.WITH_CRASHES))
def test_required_printing_and_parsing_are_inverse(scenario: Scenario) -> None:
    outcome = link.run(engines.make(engines.REFERENCE, scenario), scenario)
    value = golden.Golden(scenario, golden.expected_of(outcome))
    text = golden.render(value)
    assert compare.same(golden.parse(text), value)
    assert golden.render(golden.parse(text)) == text


@pytest.mark.parametrize("path", golden.paths(), ids=lambda path: path.stem)
def test_required_golden_files_are_in_the_printed_form(path) -> None:
    text = path.read_text(encoding="utf-8")
    assert golden.render(golden.parse(text)) == text


VALUES = [
    None, True, False, 0, -1, 2**63, 0.0, -0.0, 1e300, 5e-324, float("nan"), float("inf"),
    float("-inf"), "", "a b", 'quote " and \\', "null", "1", "new\nline", b"", b"\x00\xff",
    ("date32[day]", -1), ("timestamp[us, tz=UTC]", 5), ("decimal128(5, 2)", "1.20"),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_required_literals_are_inverse(value) -> None:
    words = Words(f"  {literal(value)} end")
    assert compare.same(words.value(), value)
    words.expect("end")
    words.end()


GOOD = golden.render(golden.read(golden.FOLDER / "update.txt"))


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("deliver p0 1", "delver p0 1", "delver"),
        ("deliver p0 1", "deliver p0 one", "deliver p0 one"),
        ("barrier", "barrier now", "now"),
        ("0 at 1", "0 on 1", "0 on 1"),
        ("max=1", "most=1", "most=1"),
        ("\n----\n", "\n", "no line"),
    ],
)
def test_required_a_line_that_cannot_be_read_is_named(old: str, new: str, named: str) -> None:
    assert old in GOOD
    with pytest.raises(ValueError, match=named):
        golden.parse(GOOD.replace(old, new, 1))
