"""The history's name in SQL, and a run as a row of it."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

from dbt.adapters.mzs3.export.history_table import TABLE, History, RecordedRun
from dbt.adapters.mzs3.spark import run_table
from dbt.adapters.mzs3.spark.sql import qualified_name


@pytest.mark.parametrize(
    ("schema", "table"),
    [
        ("analytics", "`analytics`.`mzs3_copy_history`"),
        ("lake.sales", "`lake`.`sales`.`mzs3_copy_history`"),
        ("odd`name; --", "`odd``name; --`.`mzs3_copy_history`"),
    ],
)
def test_every_name_is_quoted_by_itself(schema: str, table: str) -> None:
    assert qualified_name(schema, TABLE) == table


class Spark:
    """Has the table, and notes the rows that are written, each with its folder."""

    def __init__(self) -> None:
        self.written: list[tuple[str, pa.Table]] = []
        self.statements: list[str] = []
        self.columns = [column.name for column in fields(RecordedRun)]

    def sql(self, statement: str) -> Spark:
        self.statements.append(statement)
        return self

    def collect(self) -> list[tuple[str, str]]:
        names = [
            *self.columns,
            "day",
            "run",
            "# Partition Information",
            "# col_name",
            "day",
            "run",
        ]
        return [*((name, "") for name in names), ("Location", "file:/warehouse")]

    def write_parquet(self, spark: Spark, folder: str, rows: pa.Table) -> None:
        assert spark is self
        self.written.append((folder, rows))


MOMENT = datetime(1970, 1, 1, 0, 0, 0, 2000, timezone.utc)
RUN = RecordedRun(
    model="m",
    location="s3://b/",
    as_of=1,
    started=MOMENT,
    ended=MOMENT + timedelta(microseconds=1999),
    status="rows",
    rows=4,
    bytes=5,
    files=6,
    error="",
    invocation_id="i",
    format="csv",
    on_existing="fail",
)


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Any:
    made = Spark()
    monkeypatch.setattr(run_table, "engine", made)
    return made


def test_a_run_is_a_file_that_becomes_a_partition(spark: Any) -> None:
    History(spark, "analytics").append(RUN)
    [(folder, rows)] = spark.written
    before, run = folder.split("/run=")
    assert before == "file:/warehouse/day=1970-01-01"
    assert spark.statements[1:] == [
        "ALTER TABLE `analytics`.`mzs3_copy_history` "
        f"ADD PARTITION (day = '1970-01-01', run = '{run}')"
    ]
    in_ms = {"started": MOMENT, "ended": MOMENT + timedelta(milliseconds=1)}
    assert rows.to_pylist() == [{**vars(RUN), **in_ms, "error": None}]


def test_a_table_of_an_earlier_version_gets_what_it_lacks(spark: Any) -> None:
    spark.columns.remove("native")
    History(spark, "analytics")
    assert spark.statements[1:] == [
        "ALTER TABLE `analytics`.`mzs3_copy_history` ADD COLUMNS (`native` boolean)"
    ]


def test_an_error_is_recorded_up_to_its_limit(spark: Any) -> None:
    History(spark, "analytics").append(replace(RUN, error="é" * 2001))
    [(_, rows)] = spark.written
    assert rows["error"].to_pylist() == ["é" * 2000]


def test_a_count_that_is_not_known_is_null(spark: Any) -> None:
    History(spark, "analytics").append(replace(RUN, rows=None))
    [(_, rows)] = spark.written
    assert rows["rows"].to_pylist() == [None]
    assert rows.schema.field("rows").type == pa.int64()
