"""The changes between two multisets of rows, against a comparison of each row by all columns."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import functions as F
from support.spark.native import not_native

from dbt.adapters.mzs3.shard import rows as shard_rows
from dbt.adapters.mzs3.shard.write import diff

pytestmark = [pytest.mark.spark, pytest.mark.light]

# Few values of each column, so that rows repeat, and come and go; a hash may take some for others.
VALUES: dict[str, list[Any]] = {
    "c0 int": [None, 0, 1],
    "c1 string": [None, "", "a", "ab"],
    "c2 string": [None, "", "b", "ab"],
    "c3 double": [None, 0.0, -0.0, float("nan"), float("inf")],
    "c4 float": [0.0, -0.0, 1.5],
    "c5 decimal(12,2)": [None, Decimal("0.00"), Decimal("1.10"), Decimal("-9999999999.99")],
    "c6 decimal(38,10)": [None, Decimal("1.1"), Decimal("1.1000000001")],
    "c7 binary": [None, b"", b"\0", b"\0\0"],
    "c8 boolean": [None, True, False],
    "c9 date": [None, dt.date(1970, 1, 1), dt.date(1969, 12, 31)],
    "c10 smallint": [None, 0, -1],
}
NESTED: dict[str, list[Any]] = {
    "c0 array<int>": [None, [], [None], [1, None], [None, 1]],
    "c1 struct<a: int, b: double>": [None, (None, 0.0), (1, -0.0), (1, 0.0)],
    "c2 decimal(4,1)": [None, Decimal("1.5")],
}


def drawn(chance: random.Random, values: dict[str, list[Any]], count: int) -> list[Any]:
    """Few distinct rows, in any order, some of them many times."""
    distinct = [tuple(map(chance.choice, values.values())) for _ in range(count // 3)]
    return chance.choices(distinct, k=count)


def multiset(changes: Any) -> Counter[str]:
    return Counter({repr(row[:-1]): row[-1] for row in map(tuple, changes.collect())})


@pytest.fixture
def before_and_rows(spark: Any) -> Callable[..., tuple[Any, Any]]:
    """The changes that a shard has, of which some cancel out, and the rows of a model."""

    def make(seed: int, values: dict[str, list[Any]]) -> tuple[Any, Any]:
        chance = random.Random(seed)
        rows = drawn(chance, values, 300)
        stored = [(*row, chance.choice([-1, 1, 1, 2])) for row in chance.choices(rows, k=200)]
        stored += [(*row, 1) for row in rows[:200]]
        stored += [(*row, 1) for row in drawn(chance, values, 30)]
        columns = ", ".join(values)
        before = spark.createDataFrame(stored, f"{columns}, d bigint").repartition(3)
        return before, spark.createDataFrame(rows, columns).repartition(2)

    return make


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("values", [VALUES, NESTED], ids=["plain", "nested"])
def test_a_diff_is_what_a_comparison_by_all_columns_finds(
    before_and_rows: Callable[..., tuple[Any, Any]], values: dict[str, list[Any]], seed: int
) -> None:
    before, rows = before_and_rows(seed, values)
    taken = before.withColumn("d", -F.col("d"))
    exact = shard_rows.consolidate(shard_rows.additions(rows).unionByName(taken), rows.columns)
    expected = multiset(exact)
    assert len(expected) > 20
    assert multiset(diff.changes_between(rows, before)) == expected
    # Numbers of few digits come from files as doubles.
    few = ("decimal(12,2)", "decimal(4,1)")
    doubles = [
        F.col(name).cast("double").alias(name) if kind in few else name
        for name, kind in before.dtypes
    ]
    changes = diff.changes_between(rows, before.select(*doubles))
    assert changes.schema == exact.schema
    assert multiset(changes) == expected


def test_signs_of_zeros_are_kept_in_any_number_of_columns(spark: Any) -> None:
    places = range(70)
    names = [f"c{place}" for place in places]
    expected = [
        ["-0.0" if place == negative else "0.0" for place in places]
        for negative in (0, 62, 63, 69)
    ]
    rows = " union all ".join(
        f"select {', '.join(f'double({row[place]!r}) as c{place}' for place in places)}, 1L as d"
        for row in expected
    )
    summed = shard_rows.consolidate(spark.sql(rows), names).drop("d").collect()
    assert sorted(list(map(str, row)) for row in summed) == sorted(expected)


def test_rows_of_one_first_hash_are_told_apart_by_the_second(
    before_and_rows: Callable[..., tuple[Any, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, rows = before_and_rows(7, VALUES)
    expected = multiset(diff.changes_between(rows, before))
    _, second = diff.HASHES
    first = "pmod(xxhash64(1, {}), 2) AS h1"
    monkeypatch.setattr(diff, "HASHES", (first, second))
    assert multiset(diff.changes_between(rows, before)) == expected


@not_native
def test_only_rows_that_may_have_changed_are_compared_by_all_columns(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    consolidated, compared = diff.consolidate, []

    def counting(changes: Any, names: Any) -> Any:
        compared.append(changes.count())
        return consolidated(changes, names)

    monkeypatch.setattr(diff, "consolidate", counting)
    before = spark.sql("select id as c0, 'a' as c1, 1L as d from range(1000)")
    rows = spark.sql("select id as c0, if(id = 7, 'b', 'a') as c1 from range(1000)")
    assert multiset(diff.changes_between(rows, before)) == {"(7, 'a')": -1, "(7, 'b')": 1}
    assert compared == [2]


@not_native
def test_narrow_columns_are_moved_as_one(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    consolidated, compared = diff.consolidate, []

    def noting(changes: Any, names: Any) -> Any:
        compared.extend(names)
        return consolidated(changes, names)

    monkeypatch.setattr(diff, "consolidate", noting)
    row = "select 7 as c0, 'a' as c1, true as c2, {} as c3"
    before, rows = (spark.sql(row.format(c3)) for c3 in ("cast(null as date)", "date'1970-01-01'"))
    changes = diff.changes_between(rows, before.withColumn("d", F.lit(1).cast("bigint")))
    assert changes.columns == [*rows.columns, "d"]
    kept, gone = (7, "a", True, dt.date(1970, 1, 1)), (7, "a", True, None)
    assert multiset(changes) == {repr(kept): 1, repr(gone): -1}
    assert compared == ["h1", "b0", "c1", "c3"]


def test_numbers_of_few_digits_have_their_default_and_are_widened(
    persist: Callable[..., Any], rows: Callable[..., Any]
) -> None:
    assert persist("select 1 as id, 5 as n", 10).rows == 1
    priced = "select 1 as id, cast(5 as decimal(12, 2)) as n, cast({} as decimal(4, 1)) as price"
    defaults = {"price": "cast(1.5 as decimal(4, 1))"}
    assert persist(priced.format(1.5), 20, column_defaults=defaults).rows == 0
    assert persist(priced.format(-2.5), 30).rows == 2
    assert persist(priced.format(-2.5), 40).rows == 0
    assert rows() == [(1, Decimal("5.00"), Decimal("-2.5"))]
    assert rows(20) == [(1, Decimal("5.00"), Decimal("1.5"))]


@not_native
def test_much_data_is_sorted_by_as_many_tasks_on_each_core(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diff, "default_parallelism", lambda _: 2)
    partitions = []

    def counting(changes: Any, names: Any) -> Any:
        partitions.append(changes.select(F.spark_partition_id()).distinct().count())
        return changes

    monkeypatch.setattr(diff, "consolidate", counting)
    before = spark.sql("select id as c0, 1L as d from range(200)")
    rows = spark.sql("select id as c0 from range(200, 400)")
    for stored in (1 << 20, 7 * diff.BYTES_OF_A_SORT):
        diff.changes_between(rows, before, stored)
    assert partitions == [2, 8]
