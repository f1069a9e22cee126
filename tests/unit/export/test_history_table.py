"""The history's name in SQL, and a run as a row of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dbt.adapters.mzs3.export.history_table import History, RecordedRun, history_table


@pytest.mark.parametrize(
    ("schema", "table"),
    [
        ("analytics", "`analytics`.`mzs3_copy_history`"),
        ("lake.sales", "`lake`.`sales`.`mzs3_copy_history`"),
        ("odd`name; --", "`odd``name; --`.`mzs3_copy_history`"),
    ],
)
def test_every_name_is_quoted_by_itself(schema: str, table: str) -> None:
    assert history_table(schema) == table


class Spark:
    """Notes the rows that are written, each by a statement and its arguments."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, dict[str, Any]]] = []
        self.write = self

    def sql(self, statement: str, args: dict[str, Any] | None = None) -> Spark:
        if args is not None:
            self.rows.append((statement, args))
        return self

    def collect(self) -> list[tuple[str, str]]:
        names = ["# Partition Information", "# col_name", "day", "run"]
        return [*((name, "") for name in names), ("Location", "file:/warehouse")]

    def parquet(self, folder: str) -> None:
        assert folder.startswith("file:/warehouse/day=1970-01-01/run=")


RUN = RecordedRun(
    model="m",
    location="s3://b/",
    as_of=1,
    started=2,
    ended=3,
    status="rows",
    rows=4,
    bytes=5,
    files=6,
    error="",
    invocation_id="i",
    format="csv",
    on_existing="fail",
)


def appended(run: RecordedRun) -> tuple[str, dict[str, Any]]:
    spark: Any = Spark()
    History(spark, "analytics").append(run)
    [row] = spark.rows
    return row  # type: ignore[no-any-return]


def test_a_run_has_the_columns_of_the_table() -> None:
    statement, values = appended(RUN)
    assert statement == (
        "SELECT CAST(:model AS string) AS `model`, CAST(:location AS string) AS `location`, "
        "CAST(:as_of AS bigint) AS `as_of`, "
        "CAST(timestamp_millis(:started) AS timestamp) AS `started`, "
        "CAST(timestamp_millis(:ended) AS timestamp) AS `ended`, "
        "CAST(:status AS string) AS `status`, CAST(:rows AS bigint) AS `rows`, "
        "CAST(:bytes AS bigint) AS `bytes`, CAST(:files AS bigint) AS `files`, "
        "CAST(:error AS string) AS `error`, "
        "CAST(:invocation_id AS string) AS `invocation_id`, "
        "CAST(:format AS string) AS `format`, CAST(:on_existing AS string) AS `on_existing` "
        "FROM VALUES (0)"
    )
    assert values == {**vars(RUN), "error": None}


def test_an_error_is_recorded_up_to_its_limit() -> None:
    _, values = appended(replace(RUN, error="é" * 2001))
    assert values["error"] == "é" * 2000
