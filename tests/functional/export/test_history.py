"""Every run is a row of mzs3_copy_history, which is an ordinary table of the model's schema."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

from dbt.adapters.mzs3.errors import CopyError
from dbt.adapters.mzs3.export.history_table import History, RecordedRun
from dbt.adapters.mzs3.export.job import copy_to_s3
from dbt.adapters.mzs3.export.monitor import RunContext
from dbt.adapters.mzs3.export.report.read import read_runs
from dbt.adapters.mzs3.spark.session import isolated_session
from dbt.adapters.mzs3.store.connection import AwsConnection

pytestmark = pytest.mark.spark

CONFIG = "{{ config(materialized='copy_to_s3', location='s3://copy-history/%s/', parts=1) }}"
GOOD = CONFIG % "good" + "select id from range(12)"
ELSEWHERE = CONFIG % "elsewhere" + "select 1 as id"
BROKEN = CONFIG % "broken" + "select raise_error(repeat('x', 3000)) as id"
WRONG = "{{ config(materialized='copy_to_s3', locaton='s3://copy-history/') }} select 1 as id"

HISTORY = """
select model, status, rows, files, error, location, format, on_existing, bytes, as_of,
  invocation_id, started <= ended and ended <= current_timestamp() as in_order, day
from {schema}.mzs3_copy_history order by started
"""


class TestCopyHistory:
    @pytest.fixture(scope="class", autouse=True)
    def the_bucket(self, s3: Any) -> None:
        s3.create_bucket(Bucket="copy-history")

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "good.sql": GOOD,
            "broken.sql": BROKEN,
            "wrong.sql": WRONG,
            "elsewhere.sql": ELSEWHERE,
        }

    def test_before_any_run_the_report_says_what_to_do(self, project: Any) -> None:
        path = Path(project.project_root) / "early.html"
        run_dbt(["run-operation", "copy_report", "--args", f"{{path: '{path}'}}"])
        assert "copy_to_s3" in path.read_text()

    def test_all_models_of_a_run_are_recorded(self, project: Any) -> None:
        results = run_dbt(["run", "--full-refresh", "--exclude", "elsewhere"], expect_pass=False)
        response = {r.node.name: r.adapter_response for r in results}["good"]
        message = {r.node.name: r.message for r in results}["broken"]
        rows = {row[0]: row for row in project.run_sql(HISTORY, fetch="all")}
        assert sorted(rows) == ["model.test.broken", "model.test.good"]
        assert tuple(rows["model.test.good"][1:10]) == (
            "rows",
            12,
            1,
            None,
            "s3://copy-history/good/",
            "csv",
            "fail",
            response["bytes_written"],
            response["as_of"],
        )
        assert len({row[10] for row in rows.values()}) == 1
        broken = rows["model.test.broken"]
        assert tuple(broken[1:4]) == ("error", None, None)
        assert broken[4].startswith("model.test.broken: the export to s3://copy-history/broken/")
        assert len(broken[4]) == 2000
        assert broken[4][:200] in message
        assert all(row[11] for row in rows.values())

    def test_the_compiled_job_has_dbts_full_refresh(self, project: Any) -> None:
        [job] = Path(project.project_root, "target/run").rglob("good.*")
        assert "    full_refresh=True,\n" in job.read_text()

    def test_dbt_takes_it_for_any_table(self, project: Any) -> None:
        [result] = run_dbt(["run", "--select", "good"], expect_pass=False)
        assert "is not empty" in result.message
        rows = project.run_sql(HISTORY, fetch="all")
        assert [row[1] for row in rows if row[0] == "model.test.good"] == ["rows", "error"]
        catalog = run_dbt(["docs", "generate"])
        assert catalog.errors is None
        assert "model.test.good" in catalog.nodes

    def test_a_cancelled_run(self, project: Any, spark: Any, aws_connection: Any) -> None:
        cancelled = threading.Event()
        cancelled.set()
        with pytest.raises(CopyError):
            copy_to_s3(
                spark,
                "select 1 as a",
                node="model.test.cancelled",
                options={"location": "s3://copy-history/cancelled"},
                connections={"default": AwsConnection(**aws_connection)},
                as_of=1,
                cancelled=cancelled,
                context=RunContext(project.test_schema, "cancelled"),
            )
        [row] = [r for r in project.run_sql(HISTORY, fetch="all") if "cancelled" in r[0]]
        assert tuple(row[1:4]) == ("cancelled", None, None)

    def test_the_report_is_of_these_runs(self, project: Any) -> None:
        path = Path(project.project_root) / "report.html"
        schema = f"spark_catalog.{project.test_schema}"
        arguments = f"{{path: '{path}', schema: '{schema}', days: 2}}"
        run_dbt(["run-operation", "copy_report", "--args", arguments])
        page = path.read_text()
        assert "s3://copy-history/good/" in page
        assert "is not empty" in page
        wrong = ["run-operation", "copy_report", "--args", "{days: 0}"]
        _, log = run_dbt_and_capture(["--no-use-colors", *wrong], expect_pass=False)
        assert "days must be a whole number from 1 to 3660, not 0" in log

    def test_a_history_that_cannot_be_written_stops_no_export(self, project: Any, s3: Any) -> None:
        project.run_sql("drop table {schema}.mzs3_copy_history")
        project.run_sql("create view {schema}.mzs3_copy_history as select 1 as a")
        _, log = run_dbt_and_capture(["--no-use-colors", "run", "--select", "elsewhere"])
        assert "[COPY 1 in " in log
        assert "elsewhere: this run can't be recorded in " in log
        assert "is not the table that dbt-mzs3 makes under this name" in log
        assert s3.head_object(Bucket="copy-history", Key="elsewhere/_manifest.json")
        project.run_sql("drop view {schema}.mzs3_copy_history")


MOMENT = datetime(1970, 1, 1, microsecond=2000, tzinfo=timezone.utc)


def append_to(history: History, model: str, *, native: bool | None = None) -> None:
    run = RecordedRun(
        model=model,
        location="s3://b/",
        as_of=1,
        started=MOMENT,
        ended=MOMENT,
        status="rows",
        rows=1,
        bytes=1,
        files=1,
        error="",
        invocation_id="i",
        format="csv",
        on_existing="fail",
        native=native,
    )
    history.append(run)


def test_a_table_of_an_earlier_version_gets_the_new_column(spark: Any) -> None:
    schema = "history_of_old"
    spark.sql(f"create schema {schema}")
    try:
        append_to(History(spark, schema), "old")
        columns = "using parquet partitioned by (day, run) as select * except (native) from"
        spark.sql(f"create table {schema}.older {columns} {schema}.mzs3_copy_history")
        spark.sql(f"drop table {schema}.mzs3_copy_history")
        columns = columns.replace(" except (native)", "")
        spark.sql(f"create table {schema}.mzs3_copy_history {columns} {schema}.older")
        assert [run.native for run in read_runs(spark, schema, since=MOMENT)] == [None]
        append_to(History(spark, schema), "new", native=True)
        runs = read_runs(spark, schema, since=MOMENT)
        assert {run.model: run.native for run in runs} == {"old": None, "new": True}
    finally:
        spark.sql(f"drop schema {schema} cascade")


@pytest.mark.slow  # of a table that Hive keeps
def test_runs_that_append_at_once_lose_no_row(
    spark: Any, spark_parameters: dict[str, str]
) -> None:
    threads = 4
    spark.sql("create schema history_at_once")
    barrier = threading.Barrier(threads)

    def append(number: int) -> None:
        session = isolated_session(spark_parameters)
        barrier.wait()
        for time in range(2):
            append_to(History(session, "history_at_once"), f"model.{number}.{time}")

    try:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(append, range(threads)))
        models = spark.table("history_at_once.mzs3_copy_history").select("model").collect()
        assert sorted(row.model for row in models) == [
            f"model.{number}.{time}" for number in range(threads) for time in range(2)
        ]
        # As the docs say that it is pruned: by the day.
        history = "history_at_once.mzs3_copy_history"
        spark.sql(f"alter table {history} drop partition (day = '1970-01-01')")
        assert spark.table(history).count() == 0
        append_to(History(spark, "history_at_once"), "model.after")
        assert spark.table(history).count() == 1
    finally:
        spark.sql("drop schema history_at_once cascade")


@pytest.mark.in_process
def test_a_run_is_recorded_without_a_job(spark: Any) -> None:
    spark.sql("create schema history_no_job")
    scala = spark.sparkContext._jsc.sc()

    def jobs() -> int:
        scala.listenerBus().waitUntilEmpty()
        return int(scala.statusStore().jobsList(None).size())

    try:
        history = History(spark, "history_no_job")
        before = jobs()
        append_to(history, "model.one")
        assert jobs() == before
        [row] = spark.sql(
            "select model, rows, error, unix_millis(started) as started, day "
            "from history_no_job.mzs3_copy_history"
        ).collect()
        assert tuple(row) == ("model.one", 1, None, 2, "1970-01-01")
    finally:
        spark.sql("drop schema history_no_job cascade")
