"""What dbt 1.12 brings, with exports, sources and shards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file
from dbt.version import __version__
from packaging.version import Version

pytestmark = [pytest.mark.spark, pytest.mark.slow]

BUCKET = "newest-dbt"
of_1_12 = pytest.mark.skipif(Version(__version__) < Version("1.12"), reason="dbt 1.12 brings it")


def export(location: str, query: str = "select 1 as id", **options: Any) -> str:
    config = {"materialized": "copy_to_s3", "location": f"s3://{BUCKET}/{location}", **options}
    given = ", ".join(f"{name}={value!r}" for name, value in config.items())
    return f"{{{{ config({given}) }}}} {query}"


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


SEED = "id,name,amount\n1,one,1.5\n2,two,2.5\n"
VERSIONS = """
models:
  - name: pointed
    latest_version: 2
    versions: [{v: 1}, {v: 2}]
    config: {latest_version_pointer: {enabled: true}}
  - name: kept
    latest_version: 2
    versions: [{v: 1}, {v: 2}]
    config: {latest_version_pointer: {enabled: true}}
"""


@of_1_12
class TestLatestVersionPointer:
    """A view of the latest version of an export or a shard, which is a view of its query."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        again = {"on_existing": "overwrite"}
        return {
            "pointed_v1.sql": export("pointed/1", "select 1 as id", **again),
            "pointed_v2.sql": export("pointed/2", "select 2 as id", **again),
            "kept_v1.sql": shard("kept/1", "select 1 as id"),
            "kept_v2.sql": shard("kept/2", "select 2 as id"),
            "versions.yml": VERSIONS,
        }

    def test_it_is_made_and_made_again_and_its_model_tells_of_its_rows(
        self, project: Any, s3: Any
    ) -> None:
        for rows_of_shard in (1, 0):
            results = run_dbt(["run"])
            found = {result.node.unique_id: str(result.message) for result in results}
            assert found["model.test.pointed.v2"] == "COPY 1"
            assert found["model.test.kept.v2"] == f"COPY {rows_of_shard}"
            for name in ("pointed", "kept"):
                assert project.run_sql(f"select id from {{schema}}.{name}", fetch="all") == [(2,)]
        assert "_manifest.json" in keys(s3, "pointed/2/")


@of_1_12
class TestCommands:
    """`on_error`, `seed --empty`, `run-operation --sql`, `vars.yml`, hooks that fail."""

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"names.csv": SEED}

    @pytest.fixture(scope="class")
    def vars_yml_update(self) -> dict[str, Any]:
        return {"vars": {"folder": "of-vars"}}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"on-run-start": ["{{ 'select no_such_column' if var('broken', false) else '' }}"]}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        fails = "select cast(raise_error('no rows') as int) as id"
        of_vars = export("FOLDER", "select id from {{ ref('names') }}", on_existing="overwrite")
        return {
            "failing.sql": export("failing", fails, on_error="continue"),
            "failing_shard.sql": shard("failing-shard", fails, on_error="continue"),
            "after.sql": "select 1 as id -- {{ ref('failing') }} {{ ref('failing_shard') }}",
            "seeded.sql": of_vars.replace("FOLDER", "' ~ var('folder') ~ '"),
            "kept_seed.sql": shard("kept-seed", "select * from {{ ref('names') }}"),
            "read.sql": "select * from {{ source('lake', 'orders') }}",
            "lake.yml": sources(source("orders", "of-commands")),
        }

    def test_what_reads_an_export_that_failed_runs_with_on_error_continue(
        self, project: Any, s3: Any
    ) -> None:
        results = run_dbt(["run", "-s", "+after"], expect_pass=False)
        ended = {result.node.name: str(result.status) for result in results}
        assert (ended["failing"], ended["failing_shard"]) == ("error", "error")
        assert ended["after"] == "success"
        assert keys(s3, "failing/") == []

    def test_an_empty_seed_exports_nothing_and_then_what_it_has(
        self, project: Any, s3: Any
    ) -> None:
        run_dbt(["seed", "--empty"])
        assert project.run_sql("select * from {schema}.names", fetch="all") == []
        chosen = ["build", "-s", "names", "seeded", "kept_seed"]
        skipped = messages(run_dbt([*chosen, "--empty"]))
        assert skipped["seeded"] == skipped["kept_seed"] == "SKIP COPY (--empty)"
        assert keys(s3, "of-vars/") == []

        done = messages(run_dbt([*chosen, "--full-refresh"]))
        assert done["seeded"] == done["kept_seed"] == "COPY 2"
        assert "_manifest.json" in keys(s3, "of-vars/")

    def test_sql_of_a_run_operation_reads_models_and_ingests_nothing(
        self, project: Any, s3: Any
    ) -> None:
        s3.put_object(Bucket=BUCKET, Key="of-commands/1.csv", Body=b"id\n7\n")
        write = "create or replace view {{ target.schema }}.of_sql as select 5 as n"
        results = run_dbt(["run-operation", "--sql", write])
        assert [str(result.status) for result in results] == ["success"]
        assert project.run_sql("select n from {schema}.of_sql", fetch="all") == [(5,)]

        never = ["run-operation", "--sql", "select * from {{ source('lake', 'orders') }}"]
        results, log = run_dbt_and_capture(never, expect_pass=False)
        assert "never ingested: lake.orders. To do so: dbt run-operation ingest_s3" in log
        run_dbt(["run", "-s", "read"])
        run_dbt(never)

    def test_a_run_whose_first_hook_fails_ingests_and_exports_nothing(
        self, project: Any, s3: Any
    ) -> None:
        broken = ["run", "-s", "read", "seeded", "--vars", "{broken: true, folder: not-made}"]
        results = run_dbt(broken, expect_pass=False)
        assert {str(result.status) for result in results if result.node.name in broken} == {
            "skipped"
        }
        assert keys(s3, "not-made/") == []


class TestStateBetweenTargets:
    """dbt compares options of models as they are written, and `external:` as it is rendered."""

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"flags": {"state_modified_compare_more_unrendered_values": True}}  # before 1.12

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        query, of_target = (
            "select id from {{ source('lake', 'orders') }}",
            "{{ env_var('STAGE') }}",
        )

        def in_stage(text: str) -> str:
            return text.replace("STAGE", "' ~ env_var('STAGE') ~ '")

        return {
            "exported.sql": in_stage(export("exports/STAGE", query)),
            "kept.sql": in_stage(shard("shards/STAGE", query)),
            "lake.yml": sources(source("orders", of_target), source("fixed", "fixed")),
        }

    def test_it_is_sources_alone_that_differ(
        self, project: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("STAGE", "dev")
        run_dbt(["parse"])
        state = Path(project.project_root) / "of_dev"
        state.mkdir()
        (Path(project.project_root) / "target" / "manifest.json").rename(state / "manifest.json")
        monkeypatch.setenv("STAGE", "prod")

        def modified(*chosen: str) -> list[str]:
            return run_dbt(["ls", "-s", *chosen, "--state", str(state), "-q"])

        assert modified("state:modified") == ["source:test.lake.orders"]
        assert modified("state:modified.body+", "state:modified.configs+") == []
