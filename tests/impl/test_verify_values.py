"""TLA+ values: what TLC prints is read, and what is written is read back the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thund_conformance.verify.values import (
    Function,
    ModelValue,
    State,
    Unread,
    Value,
    changes,
    function,
    read_state,
    read_value,
    write_value,
)

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True).filter(
    lambda name: name not in {"TRUE", "FALSE"}
)
LEAVES = st.one_of(
    st.integers(),
    st.booleans(),
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=6),
    NAMES.map(ModelValue),
)


def _nested(inner: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    return st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.frozensets(inner, max_size=3),
        st.dictionaries(inner, inner, max_size=3).map(function),
        st.dictionaries(NAMES, inner, max_size=3).map(
            lambda fields: function(dict[Value, Value](fields.items()))
        ),
    )


VALUES = st.recursive(LEAVES, _nested, max_leaves=12)


@given(VALUES)
def test_required_a_written_value_is_read_back(value: Value) -> None:
    assert read_value(write_value(value)) == value


@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=3))
def test_required_a_written_state_is_read_back(state: dict[str, Value]) -> None:
    text = "\n".join(f"/\\ {name} = {write_value(value)}" for name, value in state.items())
    assert read_state(text) == state


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-3", -3),
        ("TRUE", True),
        ('"a\\"b\\\\c\\n\\td/"', 'a"b\\c\n\td/'),
        ("p1", ModelValue("p1")),
        ("<< >>", ()),
        ("<<>>", ()),
        ("{}", frozenset()),
        ("1..4", frozenset({1, 2, 3, 4})),
        ("-1..1", frozenset({-1, 0, 1})),
        ("4..1", frozenset()),
        ("(0 :> {2, 3} @@ 1 :> 9)", Function({0: frozenset({2, 3}), 1: 9})),
        ("(1 :> 7 @@ 2 :> 8)", (7, 8)),
        ("[a |-> <<0, 1>>, b |-> [c |-> 1]]", Function({"a": (0, 1), "b": Function({"c": 1})})),
        ("(m1 :> -1 @@ m2 :>\n   TRUE)", Function({ModelValue("m1"): -1, ModelValue("m2"): True})),
    ],
)
def test_required_a_printed_value_is_read(text: str, value: Value) -> None:
    assert read_value(text) == value
    assert type(read_value(text)) is type(value)


@pytest.mark.parametrize("text", ["", "<<1", "{1 2}", "[a |-> ]", "[1 |-> 2]", "1 2", "§", "1..x"])
def test_required_what_is_no_value_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_value(text)


def test_required_a_state_of_one_variable_has_no_conjunction() -> None:
    assert read_state("x = <<1,\n  2>>\n") == {"x": (1, 2)}


def test_required_a_state_keeps_what_it_cannot_read() -> None:
    assert read_state("/\\ x = 1\n/\\ y = [Nat -> {1}]\n") == {
        "x": 1,
        "y": Unread("[Nat -> {1}]"),
    }


def test_required_a_function_over_no_more_than_numbers_is_a_sequence_only_from_one() -> None:
    assert function({1: "a"}) == ("a",)
    assert function({0: "a"}) == Function({0: "a"})
    assert function({True: "a"}) == Function({True: "a"})


def test_required_changes_name_the_smallest_place() -> None:
    before: State = {"x": 1, "f": Function({"a": (1, 2), "p q": frozenset({1})}), "g": ()}
    after: State = {
        "x": 1,
        "f": Function({"a": (1, 3), "p q": frozenset({2})}),
        "g": (5,),
        "h": True,
    }
    assert changes(before, after) == [
        ("f.a[2]", "3"),
        ('f["p q"]', "{2}"),
        ("g", "<<5>>"),
        ("h", "TRUE"),
    ]


def test_required_a_boolean_is_not_the_number_it_equals_in_python() -> None:
    assert changes({"x": 0}, {"x": False}) == [("x", "FALSE")]
