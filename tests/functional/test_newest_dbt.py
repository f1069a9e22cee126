"""What dbt 1.12 brings, with exports, sources and shards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file
from dbt.version import __version__
from packaging.version import Version

pytestmark = pytest.mark.spark

BUCKET = "newest-dbt"
of_1_12 = pytest.mark.skipif(Version(__version__) < Version("1.12"), reason="dbt 1.12 brings it")


def export(location: str, query: str = "select 1 as id", **options: Any) -> str:
    config = {"materialized": "copy_to_s3", "location": f"s3://{BUCKET}/{location}", **options}
    return f"{{{{ config(**{config}) }}}} {query}"


def shard(location: str, query: str = "select 1 as id", **options: Any) -> str:
    return export(location, query, materialized="persist_shard", **options)


def source(name: str, location: str, **external: Any) -> dict[str, Any]:
    declared = {"type": "s3_csv_source", "location": f"s3://{BUCKET}/{location}/", **external}
    return {"name": name, "external": declared}


def sources(*tables: dict[str, Any]) -> str:
    lake = {"name": "lake", "schema": "newest_raw", "tables": [*tables]}
    return yaml.safe_dump({"sources": [lake]})


@pytest.fixture(scope="module", autouse=True)
def bucket(s3: Any) -> None:
    s3.create_bucket(Bucket=BUCKET)


def keys(s3: Any, prefix: str) -> list[str]:
    listed = s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", [])
    return [each["Key"].removeprefix(prefix) for each in listed]


def messages(results: Any) -> dict[str, str]:
    return {result.node.name: str(result.message) for result in results}


class TestWarningsAsErrors:
    """Each warning fails what it is of, and only once that has ended."""

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"flags": {"require_all_warnings_handled_by_warn_error": True}}  # before 1.12

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        moved = {"after_commit": {"move": f"s3://{BUCKET}-none/there/"}}
        narrow = {"partition_by": ["_day"], "on_existing": "overwrite"}
        return {
            "exported.sql": export("exported", "select 1 as id, 2 as _day", **narrow),
            "read.sql": "select id from {{ source('lake', 'moved') }}",
            "lake.yml": sources(source("moved", "moved", **moved)),
        }

    def test_of_an_export(self, project: Any, s3: Any) -> None:
        results = run_dbt(["--warn-error", "run", "-s", "exported"], expect_pass=False)

        lines = messages(results)["exported"].splitlines()
        assert "partition_by has _day: pyarrow passes over folders" in lines[-2]
        assert lines[-1] == (
            "  model.test.exported: a warning is an error here, by --warn-error or "
            "warn_error_options, after the commit: the export is complete and stays (COPY 1, "
            f"s3://{BUCKET}/exported/_manifest.json). A new run of the model exports once more"
        )
        assert "_manifest.json" in keys(s3, "exported/")
        assert "Uploads" not in s3.list_multipart_uploads(Bucket=BUCKET)
        recorded = f"select status, rows from {project.test_schema}.mzs3_copy_history"
        assert [tuple(row) for row in project.run_sql(recorded, fetch="all")] == [("rows", 1)]

    def test_of_a_source(self, project: Any, s3: Any) -> None:
        s3.put_object(Bucket=BUCKET, Key="moved/1.csv", Body=b"id\n7\n")
        options = '{"error": ["AdapterEventWarning"]}'
        chosen = ["--warn-error-options", options, "run", "-s", "read"]

        failed = messages(run_dbt(chosen, expect_pass=False))["read"]

        assert "lake.moved: after_commit: move failed for 1 object, whose rows are com" in failed
        assert "lake.moved: a warning is an error here, by --warn-error" in failed
        assert "This is a defect" not in failed
        # Nothing is locked, half done or ingested twice.
        run_dbt(["run", "-s", "read"])
        assert project.run_sql("select id from newest_raw.moved", fetch="all") == [("7",)]

    def test_silenced(self, project: Any) -> None:
        for options, count in (("{}", 1), ('{"silence": ["AdapterEventWarning"]}', 0)):
            chosen = ["--warn-error-options", options, "run", "-s", "exported"]
            _, log = run_dbt_and_capture(chosen)
            assert log.count("partition_by has _day") == count

    def test_of_a_declaration(self, project: Any) -> None:
        wrong = {name: export(name, locaton=name) for name in ("wrong_a", "wrong_b")}
        for name, text in wrong.items():
            write_file(text, project.project_root, "models", f"{name}.sql")
        try:
            run_dbt(["run", "-s", "exported"])
            with pytest.raises(Exception, match="locaton is not an option") as caught:
                run_dbt(["--warn-error", "run", "-s", "exported"])
        finally:
            for name in wrong:
                (Path(project.project_root) / "models" / f"{name}.sql").unlink()
        assert all(f"model.test.{name}" in str(caught.value) for name in wrong)
