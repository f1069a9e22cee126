"""What is told of a condition without Spark; what is not surely understood is left alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from dbt.adapters.mzs3.shard.condition import Conjunct, columns_in, condition, conjuncts
from dbt.adapters.mzs3.shard.types import Column, Type


def column(tag: int, name: str) -> Column:
    return Column(tag, name, Type("integer"), "int")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("a = 1", [("a", ("1", "1"))]),
        ("a=1", [("a", ("1", "1"))]),
        ("a == -1.50", [("a", ("- 1.50", "- 1.50"))]),
        ("a < 1", [("a", (None, "1"))]),
        ("a <= 1 and b > 2", [("a", (None, "1")), ("b", ("2", None))]),
        ("1 <= a AND 'x' > b", [("a", ("1", None)), ("b", (None, "'x'"))]),
        ("`a ``b` >= 'it is; (x'", [("a `b", ("'it is; (x'", None))]),
        ("day between date '2026-01' and 'x'", [("day", ("date '2026-01'", "'x'"))]),
        ("(a = 1 and ((b = 2)))", [("a", ("1", "1")), ("b", ("2", "2"))]),
        ("a in (1, -2)", [("a", ("1", "1"), ("- 2", "- 2"))]),
        ("b in ('x, y', 'z')", [("b", ("'x, y'", "'x, y'"), ("'z'", "'z'"))]),
        ("a between 1 and 2 and f(b) and c = 3", [("a", ("1", "2")), ("c", ("3", "3"))]),
        ("b between x and y and c = 3", [("c", ("3", "3"))]),
        ("(a = 1 or b = 2) and c = 3", [("c", ("3", "3"))]),
        ("not a = 1 and c = 3", [("c", ("3", "3"))]),
        ("m[x and y] = 1 and c = 3", [("c", ("3", "3"))]),
        ("filter(l, x -> x > 1 and x < 5)[0] = 1 and c = 3", [("c", ("3", "3"))]),
        ("a is null and b is not null", [("a", None), ("b", (None, None))]),
        ("date = date'2026-01-01'", [("date", ("date '2026-01-01'", "date '2026-01-01'"))]),
    ],
)  # fmt: skip
def test_simple_parts_are_found(sql: str, expected: list[tuple[Any, ...]]) -> None:
    assert [replace(part, sql="") for part in conjuncts(sql)] == [
        Conjunct("", name, () if ranges == (None,) else ranges, ranges == (None,))
        for name, *found in expected
        for ranges in [tuple(found)]
    ]


def test_parts_have_sql_of_their_own() -> None:
    found = conjuncts("(a=-1 and b in ('x y',`c`)) and d>='(' and f(e)")
    assert [part.sql for part in found] == ["a = - 1", "d >= '('"]


@pytest.mark.parametrize(
    "sql",
    [
        "a = 1 or b = 2",
        "a = 1 and b = 2 or c = 3",
        "case when a = 1 and b = 2 then true end",
        "case a when 1 then b end = 1 and c = 2",
        "a <> 1",
        "a != 1",
        "a <=> 1",
        "a + 1 = 2",
        "a = 1 + 1",
        "a = 1 = true",
        "a = 1e3",
        "a = 5L",
        "a = b",
        "s.a = 1",
        "a not in (1)",
        "a not between 1 and 2",
        "a not between 1 and 2 and 3",
        "a in (1, b)",
        "a in ()",
        "a = 'x' 'y'",
        "a = 'x''y'",
        "a = r'x'",
        "a = x'1f'",
        "a = interval '1' day",
        "a = 'x' collate utf8_lcase",
        "a = 'it\\'s' and b = 1",
        'a = "x" and b = 1',
        "a = 1 -- and b = 2",
        "a = 1 /* and b = 2 */",
        "current_date = '2026-01-01'",
        "not (a = 1 and b = 2)",
        "a is true",
        "a like 'x'",
        "(a) = 1",
        "1 = 1",
        "1 < a < 3",
    ],
)
def test_what_is_not_surely_understood_is_left_to_spark(sql: str) -> None:
    assert conjuncts(sql) == []


def test_columns_are_found_whatever_case_and_quotes_they_have() -> None:
    columns = [column(n, name) for n, name in enumerate(["Id", "a b", "x`y", "day", "i", "Ünit"])]
    sql = "id > 1 and `a b` = 'DAY' and `x``y` is null and ünit = idx"
    assert [one.name for one in columns_in(sql, columns)] == ["Id", "a b", "x`y", "day", "Ünit"]


@pytest.mark.parametrize(
    "value",
    [
        *(" ", 5, True, ["a = 1"]),
        "exists (select 1)",
        "a in ( SELECT b from c)",
        "a = (from c |> select b)",
        "a in (values (1))",
        "a in (/**/ select 1)",
        "a in (-- \n select 1)",
        "a in (/* ' */ select 1) and b = 'x'",
        r"a = 'x\'' and b in (select 1) and c = '\''",
        r"a = r'\' and b in (select 1) and c = ''",
        "a in (select -1)",
        "a in (values (1)) and (values > 3)",
        "a in (table b)",
    ],
)
def test_what_is_no_condition_on_columns_alone_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^must be a "):
        condition(value)


def test_a_column_that_looks_like_a_query_can_be_quoted() -> None:
    with pytest.raises(ValueError, match="a column of such a name goes in backticks"):
        condition("(select - 1) > 3")
    assert condition("(`select` - 1) > 3")


@pytest.mark.parametrize(
    "sql",
    [
        *("a = '(select 1)'", 'a = "(select 1)"', r"a = '\'(select 1)'", "`(select` = 1"),
        *("extract(year from day) = 2026", "(selected)", "a = 1 /* (select 1) */"),
        *("(values > 3)", "n in (1) and (from = 2)", "(table is null)", "(select in (1, 2))"),
        *("(with)", "((values) <=> 1)", "(from between 1 and 2)", "coalesce(values, 1) = 1"),
    ],
)
def test_other_conditions_are_taken(sql: str) -> None:
    assert condition(sql) == sql


COLUMNS = {"a": st.integers(-3, 3), "b": st.integers(-3, 3), "`or`": st.sampled_from("xy")}
_LITERALS = {"a": st.integers(-4, 4).map(str), "`or`": st.sampled_from(["'x'", "'y'", "'and'"])}


@st.composite
def simple(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(list(COLUMNS)))
    literal = _LITERALS.get(name, _LITERALS["a"])
    one, other = draw(literal), draw(literal)
    sign = draw(st.sampled_from(["=", "==", "<", "<=", ">", ">="]))
    forms = [
        f"{name} {sign} {one}",
        f"{one}{sign}{name}",
        f"{name} between {one} and {other}",
        f"{name} in ({one}, {other})",
        f"{name} is null",
        f"{name} is not null",
    ]
    return draw(st.sampled_from(forms))


OTHERS = [
    "({} or {} and {})",
    "not {}",
    "not ({} and {} and {})",
    "case when {} and {} and {} then {} else true end",
    "a not in (1, 2)",
    "a not between -1 and 1",
    "a <> 2",
    "coalesce(a, 1) = 1",
]


@st.composite
def conditions(draw: st.DrawFn) -> str:
    """Some parts with few brackets between them, so that it counts what binds more closely."""
    form = "{}"
    for _ in range(draw(st.integers(1, 3))):
        form += draw(st.sampled_from([" and ", " AND ", " or "]))
        form += draw(st.sampled_from(["{}"] * len(OTHERS) + OTHERS))
    return form.format(*(draw(simple()) for _ in range(form.count("{}"))))


ROWS = st.tuples(*(st.none() | values for values in COLUMNS.values()))


@examples(1000)
@given(conditions(), st.lists(ROWS, min_size=8, max_size=16))
def test_each_part_holds_wherever_the_condition_is_true(sql: str, rows: list[Any]) -> None:
    """By DuckDB, whose grammar is the same here but for the quotes of names."""
    values = ", ".join(
        f"({a if a is not None else 'null'}, {b if b is not None else 'null'}, "
        + ("null)" if s is None else f"'{s}')")
        for a, b, s in rows
    )
    table = f'(values {values}) as t(a, b, "or")'
    kept = duckdb.sql(f"select * from {table} where {sql.replace('`', chr(34))}").fetchall()
    for part in conjuncts(sql):
        place = ["a", "b", "or"].index(part.column)
        assert all(_is_in(row[place], part) for row in kept), part


def _is_in(value: Any, part: Conjunct) -> bool:
    if value is None:
        return part.is_null
    ends = [tuple(map(_plain, ends)) for ends in part.ranges]
    return any(
        (low is None or low <= value) and (high is None or value <= high) for low, high in ends
    )


def _plain(literal: str | None) -> Any:
    if literal is None:
        return None
    return literal[1:-1] if literal.startswith("'") else int(literal.replace(" ", ""))
