import datetime as dt
from decimal import Decimal

from dbt.adapters.mzs3.spark.sql import bind


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
