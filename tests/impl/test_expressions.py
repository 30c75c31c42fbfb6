"""Expressions mean what expressions.py says, row by row, and a wrong one is refused at its place."""

from __future__ import annotations

import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thund.evaluation import evaluate, result_type
from thund.expressions import TYPES, parse
from thund_contract.errors import CallerError

MOST, LEAST = 2**63 - 1, -(2**63)
COLUMNS = {
    "i": pa.array([7, -7, None, MOST, LEAST, 0]),
    "j": pa.array([2, 2, 2, 1, -1, 0]),
    "s": pa.array([1, -2, None, 127, -128, 0], pa.int8()),
    "u": pa.array([1, 2, 2**64 - 1, None, 0, 7], pa.uint64()),
    "f": pa.array([1.5, -2.5, math.nan, math.inf, None, 0.0]),
    "q": pa.array([Decimal("1.50"), Decimal("-2.50"), None, Decimal(3), Decimal(0), None]),
    "b": pa.array([True, False, None, True, False, None]),
    "c": pa.array([True, True, True, None, None, None]),
    "t": pa.array(["a", " B ", None, "12", "", "ä"]),
    "d": pa.array(["x", None, "x", "y", "", ""]).dictionary_encode(),
    "left at": pa.array([1, 2, 3, 4, 5, 6]),
    "m": pa.array([0, -1, None, 10**12, 5, 6]).cast(pa.timestamp("ms")),
    "n": pa.array([0, -1500, None, 10**12, 5, 6]).cast(pa.timestamp("us", "Asia/Tokyo")),
    "y": pa.array([0, -1, None, 1, 31, 6], pa.int32()).cast(pa.date32()),
    "z": pa.nulls(6),
    "l": pa.array([[1]] * 6),
}
SCHEMA = pa.schema([(name, column.type) for name, column in COLUMNS.items()])


def value(text, columns=COLUMNS):
    expression = parse(text, where="filter")
    rows = len(next(iter(columns.values())))
    schema = pa.schema([(name, column.type) for name, column in columns.items()])
    found = evaluate(expression, columns, rows)
    assert found.type == result_type(expression, schema)
    return found


MEANINGS = [
    ("i + j", [9, -5, None, None, None, 0]),
    ("i - j", [5, -9, None, MOST - 1, LEAST + 1, 0]),
    ("i * j", [14, -14, None, MOST, None, 0]),
    ("i / j", [3, -3, None, MOST, None, None]),
    ("i % j", [1, -1, None, 0, 0, None]),
    ("-i", [-7, 7, None, -MOST, None, 0]),
    ("+s", [1, -2, None, 127, -128, 0]),
    ("s + 1", [2, -1, None, 128, -127, 1]),
    ("u + 1", [2, 3, None, None, 1, 8]),
    ("u > i", [False, True, None, None, True, True]),
    ("u == 7", [False, False, False, None, False, True]),
    ("abs(i)", [7, 7, None, MOST, None, 0]),
    ("abs(u) == u", [True, True, True, None, True, True]),
    ("f / f", [1.0, 1.0, math.nan, math.nan, None, None]),
    ("f * 2", [3.0, -5.0, math.nan, math.inf, None, 0.0]),
    ("f % 1", [0.5, -0.5, math.nan, math.nan, None, 0.0]),
    ("f == f", [True, True, False, True, None, True]),
    ("round(f)", [2.0, -3.0, math.nan, math.inf, None, 0.0]),
    ("floor(f)", [1.0, -3.0, math.nan, math.inf, None, 0.0]),
    ("ceil(f)", [2.0, -2.0, math.nan, math.inf, None, 0.0]),
    ("round(s)", [1, -2, None, 127, -128, 0]),
    ("q + 1 == 2.5", [True, False, None, False, False, None]),
    ("q / 0", [None] * 6),
    ("cast(q, 'int64')", [1, -2, None, 3, 0, None]),
    ("b and c", [True, False, None, None, False, None]),
    ("b or c", [True, True, True, True, None, None]),
    ("not b", [False, True, None, False, True, None]),
    ("b and null", [None, False, None, None, False, None]),
    ("z + 1", [None] * 6),
    ("z == 1", [None] * 6),
    ("i in (7, -7)", [True, True, None, False, False, False]),
    ("i not in (7, null)", [False, None, None, None, None, None]),
    ('d in ("x",)', [True, None, True, False, False, False]),
    ("is_null(f)", [False, False, False, False, True, False]),
    ("is_not_null(z)", [False] * 6),
    ("coalesce(z, i, 1)", [7, -7, 1, MOST, LEAST, 0]),
    ("coalesce(s, f)", [1.0, -2.0, math.nan, 127.0, -128.0, 0.0]),
    ("if_else(b, i, f)", [7.0, -2.5, math.nan, float(MOST), None, 0.0]),
    ('if_else(is_null(d), "none", d)', ["x", "none", "x", "y", "", ""]),
    ("lower(t)", ["a", " b ", None, "12", "", "ä"]),
    ("upper(t)", ["A", " B ", None, "12", "", "Ä"]),
    ("trim(t)", ["a", "B", None, "12", "", "ä"]),
    ("length(t)", [1, 3, None, 2, 0, 1]),
    ('starts_with(t, "1")', [False, False, None, True, False, False]),
    ('ends_with(t, "2")', [False, False, None, True, False, False]),
    ('contains(t, "")', [True, True, None, True, True, True]),
    ('t < "b"', [True, True, None, True, True, False]),
    ('cast(t, "int64")', [None, None, None, 12, None, None]),
    ('cast(f, "int8")', [1, -2, None, None, None, 0]),
    ('cast(i, "int8")', [7, -7, None, None, None, 0]),
    ('cast(f, "uint64")', [1, None, None, None, None, 0]),
    ('cast(i, "string")', ["7", "-7", None, str(MOST), str(LEAST), "0"]),
    ('cast(b, "int8")', [1, 0, None, 1, 0, None]),
    ('cast(cast(m, "timestamp[s]"), "int64")', [0, -1, None, 10**9, 0, 0]),
    ('cast(cast(n, "timestamp[ms]"), "int64")', [0, -2, None, 10**9, 0, 0]),
    ("year(m)", [1970, 1969, None, 2001, 1970, 1970]),
    ("month(y)", [1, 12, None, 1, 2, 1]),
    ("day(y)", [1, 31, None, 2, 1, 7]),
    ("hour(n)", [0, 23, None, 13, 0, 0]),
    ("m == n", [True, False, None, False, False, False]),
    ("y <= m", [True, True, None, True, False, False]),
    ('col("left at") >= 5', [False, False, False, False, True, True]),
    ("true or false", [True] * 6),
    ("-7 / 2", [-3] * 6),
    ("1 + 2 * 3 == 7 and not 1 > 2", [True] * 6),
]


@pytest.mark.parametrize(("text", "meaning"), MEANINGS, ids=[m[0] for m in MEANINGS])
def test_required_an_expression_means_what_is_written(text, meaning):
    found = value(text).to_pylist()
    assert [repr(x) for x in found] == [repr(x) for x in meaning]


WRONG = [
    # text, what was found, character, somewhere in allowed and action
    ("", "empty", 1, "write an expression"),
    ("a <", "no expression", None, "correct"),
    ("a = 1", "no expression", 3, "=="),
    ("a < b < c", "one comparison after another", 1, "a < b and b < c"),
    ("1 + ~a", "'~'", 5, "+ - * / %"),
    ("äö + f(1)", "f: no such function", 6, "floor"),
    ("lowr(t)", "lowr: no such function", 1, "did you mean lower?"),
    ("t.upper()", "call of another kind", 1, "name(argument"),
    ("lower(t, x=1)", "call of another kind", 1, "name(argument"),
    ("if_else(a, b)", "if_else of 2 arguments", 1, "condition, a, b"),
    ("coalesce()", "coalesce of 0 arguments", 1, "x, ..."),
    ("round(a, 2)", "round of 2 arguments", 1, "round(number)"),
    ("starts_with(a, b)", "not in quotes", 16, "literal"),
    ('cast(a, "int65")', "no type", 9, '"int64"'),
    ("cast(a, int64)", "no type", 9, "quotes"),
    ("col(a)", "col without a name", 1, "left at"),
    ("a is null", "`is`", 1, "is_null(x)"),
    ("a in b", "`in` without a list", 1, "brackets"),
    ("a in ()", "`in` without a list", 1, "brackets"),
    ("[a]", "'[a]'", 1, "columns"),
    ("a if b else c", "'a if b else c'", 1, "if_else"),
    ("(lambda: 1)", "lambda", 2, "columns"),
    ("b'x'", "b'x'", 1, "columns"),
    ("9223372036854775808", "too large", 1, "64 bits"),
    ("a\n+ b", "no one line", 1, "one line"),
    ("a\0", "no expression", None, "columns"),
    ("+".join("a" * 200), "too many others", 1, "derived columns"),
    ("(" * 4000 + "a" + ")" * 4000, "no expression", None, "columns"),
    # refused by the columns' types
    ("t + 1", "+ of string", 1, "cast"),
    ("not i", "not of int64", 1, "cast"),
    ("upper(i)", "upper of int64", 1, "cast"),
    ("b == 1", "== of bool and int64", 1, "cast"),
    ("1 + hour(y)", "hour of date32[day]", 5, "cast"),
    ("coalesce(i, t)", "coalesce of int64 and string", 1, "cast"),
    ("l == l", "==", 1, "cast"),
    ("q % 2", "% of decimal128(3, 2) and int64", 1, "cast"),
]


@pytest.mark.parametrize(("text", "found", "at", "told"), WRONG, ids=[w[0][:30] for w in WRONG])
def test_required_a_wrong_expression_is_refused_at_its_place(text, found, at, told):
    with pytest.raises(CallerError) as caught:
        result_type(parse(text, where="derive.x"), SCHEMA)
    error = caught.value
    assert found in error.found
    if at is not None:
        assert f"at character {at} of" in error.found
    assert error.where == "derive.x"
    assert told in f"{error.allowed} {error.action}"


def test_required_a_column_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(CallerError, match="no column 'delay'") as caught:
        result_type(parse("delay > 1", where="filter"), SCHEMA)
    assert "left at" in caught.value.allowed
    assert caught.value.where == "filter: delay > 1"
    twice = pa.schema([("a", pa.int64()), ("a", pa.int64())])
    with pytest.raises(CallerError, match="several columns 'a'"):
        result_type(parse("a", where="filter"), twice)


@pytest.mark.parametrize("name", TYPES)
def test_required_each_type_that_can_be_named_can_be_made(name):
    made = value(f'cast(null, "{name}")')
    assert made.null_count == 6
    kind = str(made.type)
    assert kind in (
        name,
        name.replace("UTC", "tz=UTC"),
        {"float32": "float", "float64": "double", "date32": "date32[day]"}.get(name),
    )


def test_required_texts_become_times_without_an_error():
    texts = ["2013-01-01T05:00:00", "2013-01-01", "2013-01-01T05:00:00+02:00", "no time", None]
    found = value('cast(t, "timestamp[ms]")', {"t": pa.array(texts)})
    hour = 3_600_000
    start = 1_356_998_400_000
    assert found.cast(pa.int64()).to_pylist() == [
        start + 5 * hour,
        start,
        start + 3 * hour,
        None,
        None,
    ]
    plain = value('cast(t, "timestamp[s, UTC]")', {"t": pa.array(texts[:2])})
    assert plain.cast(pa.int64()).to_pylist() == [start // 1000 + 5 * 3600, start // 1000]


# ---- any expression, against plain Python ------------------------------------------------------

NUMBERS = st.sampled_from([None, 0, 1, -1, 2, -3, MOST, LEAST, 2**62])
TRUTHS = st.sampled_from([None, True, False])
NUMBER_LEAVES = st.sampled_from(["i", "j", "1", "-2", str(MOST), "null"])
TRUTH_LEAVES = st.sampled_from(["b", "c", "true", "null"])


def numbers(inner):
    return st.builds(lambda op, x, y: f"({x} {op} {y})", st.sampled_from("+-*/%"), inner, inner)


NUMERIC = st.recursive(NUMBER_LEAVES, numbers, max_leaves=4)
TESTS = st.builds(
    lambda op, x, y: f"({x} {op} {y})",
    st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
    NUMERIC,
    NUMERIC,
) | st.builds(lambda x, y, z: f"({x} in ({y}, {z}))", NUMERIC, NUMERIC, NUMERIC)


def truths(inner):
    pairs = st.builds(
        lambda op, x, y: f"({x} {op} {y})", st.sampled_from(["and", "or"]), inner, inner
    )
    return pairs | inner.map(lambda x: f"(not {x})") | inner.map(lambda x: f"is_null({x})")


TRUE = st.recursive(TRUTH_LEAVES | TESTS, truths, max_leaves=5)


def slow(node, row):
    """The same expression over Python's own tree and integers. None is null."""
    import ast

    match node:
        case ast.Name(id=name):
            return {"true": True, "null": None}.get(name, row.get(name))
        case ast.Constant(value=constant):
            return constant
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=constant)):
            return -constant
        case ast.UnaryOp(operand=operand):
            found = slow(operand, row)
            return None if found is None else not found
        case ast.Call(args=[inner]):
            return slow(inner, row) is None
        case ast.BoolOp(op=op, values=parts):
            found = [slow(part, row) for part in parts]
            decides = isinstance(op, ast.Or)
            return decides if decides in found else None if None in found else not decides
        case ast.BinOp(left=left, op=op, right=right):
            return slow_arithmetic(op, slow(left, row), slow(right, row))
        case ast.Compare(left=left, ops=[ast.In()], comparators=[ast.Tuple(elts=parts)]):
            known = [same(slow(left, row), slow(part, row)) for part in parts]
            return True if True in known else None if None in known else False
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            x, y = slow(left, row), slow(right, row)
            order = {"Eq": "__eq__", "NotEq": "__ne__", "Lt": "__lt__", "LtE": "__le__"}
            order |= {"Gt": "__gt__", "GtE": "__ge__"}
            return None if None in (x, y) else getattr(x, order[type(op).__name__])(y)
    raise AssertionError(node)


def same(x, y):
    return None if x is None or y is None else x == y


def slow_arithmetic(op, x, y):
    import ast

    if x is None or y is None or (isinstance(op, ast.Div | ast.Mod) and y == 0):
        return None
    whole = 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    results = {"Add": x + y, "Sub": x - y, "Mult": x * y, "Div": whole, "Mod": x - whole * y}
    found = results[type(op).__name__]
    return found if LEAST <= found <= MOST else None


@given(
    TRUE | NUMERIC, st.lists(st.tuples(NUMBERS, NUMBERS, TRUTHS, TRUTHS), min_size=1, max_size=8)
)
def test_required_any_expression_is_that_of_plain_python(text, rows):
    import ast

    kinds = (pa.int64(), pa.int64(), pa.bool_(), pa.bool_())
    columns = {
        name: pa.array([row[c] for row in rows], kind)
        for c, (name, kind) in enumerate(zip("ijbc", kinds, strict=True))
    }
    tree = ast.parse(text, mode="eval").body
    wanted = [slow(tree, dict(zip("ijbc", row, strict=True))) for row in rows]
    assert value(text, columns).to_pylist() == wanted
