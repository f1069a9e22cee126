"""Names, literals and bindings reach Spark as what they are."""

import datetime as dt
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.mzs3.spark.sql import bind, quote_identifier, quote_literal

_UNESCAPED = {"n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "\\": "\\", "'": "'"}


def read_back(literal: str) -> str:
    """A literal as Spark's parser reads it."""
    text, out, at = literal[1:-1], [], 0
    while at < len(text):
        if text.startswith("\\u", at):
            out.append(chr(int(text[at + 2 : at + 6], 16)))
            at += 6
        elif text[at] == "\\":
            out.append(_UNESCAPED[text[at + 1]])
            at += 2
        else:
            assert text[at] != "'", "the literal ends too early"
            out.append(text[at])
            at += 1
    return "".join(out)


def test_an_identifier_is_in_backticks():
    assert quote_identifier("a b") == "`a b`"


def test_a_backtick_in_an_identifier_is_doubled():
    assert quote_identifier("a`; drop table b") == "`a``; drop table b`"


@given(st.text())
def test_a_literal_reads_back_as_its_text(text):
    assert read_back(quote_literal(text)) == text


def test_a_text_goes_beside_the_sql_and_not_into_it():
    assert bind("insert into t values (%s)", ["'); drop table t --"]) == (
        "insert into t values (:p0)",
        {"p0": "'); drop table t --"},
    )


def test_values_keep_their_order_and_types():
    values = [None, True, 2**53 + 1, 1.5, Decimal("0.10"), "%s"]

    sql, passed = bind("select %s, %s, %s, %s, %s, %s", values)

    assert sql == "select :p0, :p1, :p2, :p3, :p4, :p5"
    assert [passed[f"p{n}"] for n in range(6)] == values
    assert passed["p1"] is True


def test_an_integer_above_bigint_is_a_decimal():
    assert bind("select %s", [2**63]) == ("select :p0", {"p0": Decimal(2**63)})
    assert bind("select %s", [-(2**63)]) == ("select :p0", {"p0": -(2**63)})


def test_dates_and_times_are_literals_at_their_place():
    values = ["a", dt.date(7, 1, 2), dt.datetime(2020, 1, 2, 3, 4, 5, 6), 1]

    assert bind("select %s, %s, %s, %s", values) == (
        "select :p0, date'0007-01-02', timestamp'2020-01-02 03:04:05.000006', :p1",
        {"p0": "a", "p1": 1},
    )


def test_a_doubled_percent_sign_is_one():
    assert bind("select %s like 'a%%'", ["ab"]) == ("select :p0 like 'a%'", {"p0": "ab"})
