"""Rows that are there many times."""

from __future__ import annotations

from typing import Any

import pytest

from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.shard.rows import STEP, repeat_rows
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, explain

pytestmark = pytest.mark.spark


def test_a_row_comes_as_often_as_it_is_there(spark: Any) -> None:
    counts = {0: 0, 1: 1, 2: 3, 3: STEP, 4: STEP + 1, 5: 3 * STEP * STEP - 1}
    rows = spark.createDataFrame(list(counts.items()), "id int, d bigint")
    found = repeat_rows(rows)
    assert found.columns == ["id"]
    seen = {row["id"]: row["count"] for row in found.groupBy("id").count().collect()}
    assert seen == {number: count for number, count in counts.items() if count}


def test_more_copies_than_an_array_holds(spark: Any) -> None:
    rows = spark.createDataFrame([(1, 2**33)], "id int, d bigint")
    assert [tuple(row) for row in repeat_rows(rows).limit(3).collect()] == [(1,)] * 3


def test_a_row_that_went_more_often_than_it_came_is_an_error(spark: Any) -> None:
    rows = repeat_rows(spark.createDataFrame([(1, 1), (2, -2)], "id int, d bigint"))
    with pytest.raises(SPARK_FAILURES) as caught:
        rows.collect()
    error = explain(caught.value)
    assert isinstance(error, SparkJobError)
    assert "went more often than it came: its changes come to -2" in str(error)
