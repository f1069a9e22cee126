"""copy_to_s3 as its users meet it: models, the log, run_results.json, errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

pytestmark = pytest.mark.spark

ORDERS = "select id, concat('order ', id) as name from range(1234)"

LITERAL = """
{{ config(materialized='copy_to_s3', location='s3://copy-model/orders/') }}
select * from {{ ref('orders') }}
"""
EXPRESSION = """
{{ config(
    materialized='copy_to_s3', location="'s3://copy-model/' || mz_now()", header=true, parts=2
) }}
select * from {{ ref('orders') }} where id < 10
"""
WRONG = """
{{ config(materialized='copy_to_s3', locaton='s3://copy-model/', max_file_size='1 mb') }}
select 1 as a
"""
TIMED = """
{{ config(event_time='at') }}
select id, timestamp '2020-01-01' as at from range(7)
"""
OF_TIMED = """
{{ config(materialized='copy_to_s3', location='s3://copy-model/timed', on_existing='overwrite') }}
select id from {{ ref('timed') }}
"""
DOWNSTREAM = "select count(*) as n from {{ ref('orders_export') }}"


PYTHON = """
def model(dbt, session):
    dbt.config(materialized='copy_to_s3', location='s3://copy-model/scored/', parts=1)
    dbt.config(persist_docs={'columns': True})
    return dbt.ref('orders').where('id < 3').selectExpr('id', 'rand() as score')
"""

DOCUMENTED = """
{{ config(
    materialized='KIND', location='s3://copy-model/KIND/documented',
    persist_docs={'relation': true, 'columns': true}
) }}
select 1 as id
"""
COLUMNS = """
models:
  - name: scored
    columns: [{name: score, description: "it's the score"}]
  - name: documented_export
    description: one row
    columns: [{name: id, description: "it's the id"}]
  - name: documented_shard
    columns: [{name: id, description: "it's the id"}]
"""
HOOKED = """
{{ config(
    materialized='KIND', location='s3://copy-model/KIND/hooked', post_hook='select no_such_column'
) }}
select 1 as id
"""
SHARED = "{{ config(materialized='KIND', location='s3://copy-model/shared') }} select 1 as id"
GRANTED = """
{{ config(
    materialized='KIND', location='s3://copy-model/KIND/granted', grants={'select': ['nobody']}
) }}
select 1 as id
"""


def of_both(name: str, sql: str) -> dict[str, str]:
    """A model as an export, and as a shard."""
    return {
        f"{name}_export.sql": sql.replace("KIND", "copy_to_s3"),
        f"{name}_shard.sql": sql.replace("KIND", "persist_shard"),
    }


def keys(s3: Any) -> list[str]:
    return [entry["Key"] for entry in s3.list_objects_v2(Bucket="copy-model").get("Contents", [])]


class TestCopyModel:
    @pytest.fixture(scope="class", autouse=True)
    def the_bucket(self, s3: Any) -> None:
        s3.create_bucket(Bucket="copy-model")

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "orders.sql": ORDERS,
            "scored.py": PYTHON,
            "orders_export.sql": LITERAL,
            "by_time.sql": EXPRESSION,
            "wrong.sql": WRONG,
            "downstream.sql": DOWNSTREAM,
            "timed.sql": TIMED,
            "timed_export.sql": OF_TIMED,
            "columns.yml": COLUMNS,
            **of_both("documented", DOCUMENTED),
            **of_both("hooked", HOOKED),
            **of_both("granted", GRANTED),
            **of_both("shared", SHARED),
        }

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        of_tables = {"+file_format": "delta"}  # as a project sets it for a folder of tables
        documented = ("scored", "documented_export", "documented_shard")
        return {"models": {"test": dict.fromkeys(documented, of_tables)}}

    def test_empty_creates_the_view_and_exports_nothing(self, project: Any, s3: Any) -> None:
        run_dbt(["run", "--empty", "--select", "orders", "orders_export"])
        assert keys(s3) == []
        assert project.run_sql("select * from {schema}.orders_export", fetch="all") == []

    def test_the_log_and_the_artifact_have_the_row_count(self, project: Any, s3: Any) -> None:
        _, log = run_dbt_and_capture(
            ["--no-use-colors", "run", "--select", "orders", "orders_export+"]
        )
        assert "OK created sql copy_to_s3 model" in log
        assert "[COPY 1234 in " in log
        results = json.loads(Path(project.project_root, "target/run_results.json").read_text())
        [response] = [
            result["adapter_response"]
            for result in results["results"]
            if result["unique_id"] == "model.test.orders_export"
        ]
        files = [key for key in keys(s3) if key.endswith(".csv")]
        as_of = response.pop("as_of")
        assert response == {
            "_message": "COPY 1234",
            "code": "COPY",
            "rows_affected": 1234,
            "location": "s3://copy-model/orders/",
            "manifest": "s3://copy-model/orders/_manifest.json",
            "files_written": len(files),
            "bytes_written": sum(
                s3.head_object(Bucket="copy-model", Key=key)["ContentLength"] for key in files
            ),
        }
        manifest = s3.get_object(Bucket="copy-model", Key="orders/_manifest.json")["Body"].read()
        assert json.loads(manifest)["as_of"] == as_of

    def test_the_model_is_a_view_that_ref_reads(self, project: Any) -> None:
        [row] = project.run_sql("select n from {schema}.downstream", fetch="all")
        assert row[0] == 1234

    def test_the_compiled_job_is_readable_and_has_no_secret(
        self, project: Any, aws_connection: Any
    ) -> None:
        [job] = Path(project.project_root, "target/run").rglob("orders_export.*")
        text = job.read_text()
        assert "from dbt.adapters.mzs3.api import RunContext, copy_to_s3" in text
        assert "'location': 's3://copy-model/orders/'" in text
        for name in ("access_key_id", "secret_access_key", "session_token"):
            assert name not in text
            assert aws_connection[name] not in text

    def test_a_python_model_is_a_table_whose_rows_are_exported(
        self, project: Any, s3: Any
    ) -> None:
        project.run_sql("create or replace view {schema}.scored as select 1 as it_was_sql")
        _, log = run_dbt_and_capture(["--no-use-colors", "run", "--select", "orders", "scored"])
        assert "OK created python copy_to_s3 model" in log
        assert "[COPY 3 in " in log
        # The very rows: what the model returned has been computed once.
        [key] = [name for name in keys(s3) if name.startswith("scored/part-")]
        exported = s3.get_object(Bucket="copy-model", Key=key)["Body"].read().decode()
        kept = project.run_sql("select id, score from {schema}.scored", fetch="all")
        assert {tuple(map(float, line.split(","))) for line in exported.split()} == {
            tuple(row) for row in kept
        }

    def test_a_second_run_is_refused_and_changes_nothing(self, project: Any, s3: Any) -> None:
        before = keys(s3)
        [result] = run_dbt(["run", "--select", "orders_export"], expect_pass=False)
        assert "s3://copy-model/orders/ is not empty" in result.message
        assert "Traceback" not in result.message
        assert keys(s3) == before

    def test_a_location_with_mz_now_takes_every_run(self, project: Any, s3: Any) -> None:
        locations = set()
        for _ in range(2):
            [result] = run_dbt(["run", "--select", "by_time"])
            response = result.adapter_response
            assert response["location"] == f"s3://copy-model/{response['as_of']}/"
            locations.add(response["location"])
        assert len(locations) == 2

    def test_every_wrong_option_is_named_and_nothing_is_created(
        self, project: Any, s3: Any
    ) -> None:
        before = keys(s3)
        [result] = run_dbt(["run", "--select", "wrong"], expect_pass=False)
        for problem in (
            "model.test.wrong has 3 problems in its configuration",
            "locaton is not an option of copy_to_s3; did you mean location?",
            "max_file_size has the unknown unit 'mb'",
            "location is required",
        ):
            assert problem in result.message
        assert keys(s3) == before
        tables = [row[1] for row in project.run_sql("show tables in {schema}", fetch="all")]
        assert "wrong" not in tables

    @pytest.mark.parametrize("narrowed", [["--sample", "1 day"], ["--empty"]])
    def test_an_export_is_not_replaced_by_a_part_of_its_rows(
        self, project: Any, s3: Any, narrowed: list[str]
    ) -> None:
        select = ["--select", "timed", "timed_export"]
        run_dbt(["run", *select])
        before = keys(s3)
        _, result = run_dbt(["run", *narrowed, *select])
        assert result.message == f"SKIP COPY ({narrowed[0]})"
        assert keys(s3) == before
        assert project.run_sql("select * from {schema}.timed_export", fetch="all") == []

    def test_docs_of_columns_are_the_views_before_anything_is_exported(self, project: Any) -> None:
        run_dbt(["run", "--select", "documented_export", "documented_shard"])
        for model in ("documented_export", "documented_shard"):
            described = project.run_sql(f"describe {{schema}}.{model}", fetch="all")
            assert [tuple(row) for row in described] == [("id", "int", "it's the id")]
        [score] = project.run_sql("describe {schema}.scored score", fetch="all")[2:]
        assert tuple(score) == ("comment", "it's the score")

    def test_what_fails_after_a_commit_says_what_is_there(self, project: Any, s3: Any) -> None:
        results = run_dbt(["run", "--select", "hooked*", "granted*"], expect_pass=False)
        said = {result.node.name: result.message for result in results}
        for model, kind, manifest in (
            ("hooked_export", "copy_to_s3", "_manifest.json"),
            ("hooked_shard", "persist_shard", "_shard.json"),
        ):
            assert "no_such_column" in said[model]
            assert f"{model}: its post-hook failed or was cut off, after the commit" in said[model]
            assert f"s3://copy-model/{kind}/hooked/{manifest}" in said[model]
            assert f"{kind}/hooked/{manifest}" in keys(s3)
            assert "Traceback" not in said[model]
        # Grants are of the view, which is there before.
        assert [key for key in keys(s3) if "granted" in key] == []
        assert "committed" not in said["granted_export"] + said["granted_shard"]

    def test_models_of_one_location_do_not_run(self, project: Any, s3: Any) -> None:
        results = run_dbt(["run", "--select", "shared*"], expect_pass=False)
        said = {result.node.name: result.message for result in results}
        for model, other in (("shared_export", "shared_shard"), ("shared_shard", "shared_export")):
            assert (
                f"location s3://copy-model/shared/ is that of model.test.{other} "
                f"(models/{other}.sql) too"
            ) in said[model]
        assert [key for key in keys(s3) if "shared" in key] == []
