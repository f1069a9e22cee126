"""Folders have keys of other adapters and tools, and exports and shards in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.tests.util import run_dbt
from dbt_common.exceptions import CompilationError

pytestmark = pytest.mark.spark

# Of dbt-bigquery, -snowflake, -redshift, -postgres, -databricks, -athena, -trino, -clickhouse and
# -spark; of dbt-osmosis, Elementary, re_data, Dagster, Cosmos and dbt-score.
FOREIGN: dict[str, Any] = {
    "labels": {"team": "lake"},
    "hours_to_expiration": 24,
    "require_partition_filter": True,
    "partitions": ["current_date"],
    "transient": True,
    "query_tag": "nightly",
    "copy_grants": True,
    "snowflake_warehouse": "small",
    "bind": False,
    "dist": "even",
    "sort": ["id"],
    "indexes": [{"columns": ["id"]}],
    "unlogged": True,
    "liquid_clustered_by": ["id"],
    "databricks_tags": {"team": "lake"},
    "databricks_compute": "small",
    "tblproperties": {"team": "lake"},
    "table_type": "iceberg",
    "s3_data_dir": "s3://acme-athena",
    "partitioned_by": ["id"],
    "properties": {"format": "'ORC'"},
    "engine": "MergeTree()",
    "order_by": ["id"],
    "partition_by_init": ["id"],
    "connection": "athena",
    "file_format": "delta",
    "location_root": "/tables",
    "dbt-osmosis": "_{model}.yml",
    "elementary": {"timestamp_column": "at"},
    "re_data_monitored": True,
    "dagster_freshness_policy": {"maximum_lag_minutes": 60},
    "cosmos": {"retries": 2},
    "dbt-score": {"severity": "low"},
}
FOR_FOLDERS = {f"+{key}": value for key, value in FOREIGN.items()}

EXPORT = """
{{ config(materialized='copy_to_s3', location='s3://foreign-keys/PLACE') }}
select 1 as id
"""
SHARD = EXPORT.replace("copy_to_s3", "persist_shard")
OWN = EXPORT.replace("config(", "config(bind=false, file_format='parquet', ")
PYTHON = """
def model(dbt, session):
    dbt.config(materialized="copy_to_s3", location="s3://foreign-keys/python", bind=False)
    dbt.config(submission_method="session")
    dbt.config.get("alias")
    return session.sql("select 1 as id")
"""
PROPERTIES = """
models:
  - name: in_yaml
    config: {query_tag: nightly, location_root: /tables}
  - name: in_versions
    config: {transient: true}
    latest_version: 1
    versions: [{v: 1, config: {unlogged: true}}]
"""


def of_package(name: str) -> dict[str, str]:
    """The files of a package that sets such keys for its own models."""
    return {
        "dbt_project.yml": yaml.safe_dump(
            {"name": name, "version": "1.0", "models": {name: FOR_FOLDERS}}
        ),
        f"models/{name}_export.sql": EXPORT.replace("PLACE", f"{name}_export"),
    }


class TestForeignKeys:
    @pytest.fixture(scope="class", autouse=True)
    def the_bucket(self, s3: Any) -> None:
        s3.create_bucket(Bucket="foreign-keys")

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {
            "sound": {
                "exported.sql": EXPORT.replace("PLACE", "exported"),
                "kept.sql": SHARD.replace("PLACE", "kept"),
            },
            "wrong": {
                "in_call.sql": OWN.replace("PLACE", "in_call"),
                "in_python.py": PYTHON,
                "in_yaml.sql": SHARD.replace("PLACE", "in_yaml"),
                "in_versions_v1.sql": EXPORT.replace("PLACE", "in_versions"),
                "properties.yml": PROPERTIES,
            },
            "near": {"nearly.sql": "{{ config(materialized='copy_to_s3') }} select 1 as id"},
        }

    @pytest.fixture(scope="class")
    def packages(self) -> dict[str, Any]:
        return {"packages": [{"local": "./of_others"}]}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        near = {"+enabled": "{{ var('with_near', false) }}", "+locaton": "s3://foreign-keys/near"}
        return {
            "models": {
                **FOR_FOLDERS,
                "test": {"near": near, "wrong": {"+enabled": "{{ var('with_wrong', false) }}"}},
                "of_others": {"+backup": False},
            }
        }

    @pytest.fixture(scope="class", autouse=True)
    def the_package(self, project: Any) -> None:
        for path, text in of_package("of_others").items():
            file = Path(project.project_root, "of_others", path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        run_dbt(["deps"])

    def test_exports_and_shards_run_whatever_their_folders_have(self, project: Any) -> None:
        results = run_dbt(["run"])
        assert {result.node.name: result.adapter_response["code"] for result in results} == {
            "exported": "COPY",
            "kept": "COPY",
            "of_others_export": "COPY",
        }

    @pytest.mark.parametrize("parsing", ["--no-partial-parse", "--partial-parse"])
    def test_keys_that_models_set_themselves_are_errors(self, project: Any, parsing: str) -> None:
        with pytest.raises(CompilationError) as caught:
            run_dbt([parsing, "parse", "--vars", "{with_wrong: true}"], expect_pass=False)
        _, *models = str(caught.value).split("model.test.")
        told = {
            text.split()[0]: {line.split()[1] for line in text.splitlines()[1:] if " - " in line}
            for text in models
        }
        assert told == {
            "in_call": {"bind", "file_format"},
            "in_python": {"bind"},
            "in_yaml": {"query_tag", "location_root"},
            "in_versions.v1": {"transient", "unlogged"},
        }

    def test_a_key_of_a_version_is_seen_when_its_file_has_changed(self, project: Any) -> None:
        variables = ["--vars", "{with_wrong: true}"]
        with pytest.raises(CompilationError):
            run_dbt(["--no-partial-parse", "parse", *variables], expect_pass=False)
        file = Path(project.project_root, "models", "wrong", "properties.yml")
        file.write_text(PROPERTIES.replace("unlogged", "backup"))
        with pytest.raises(CompilationError) as caught:
            run_dbt(["parse", *variables], expect_pass=False)
        file.write_text(PROPERTIES)
        assert "backup is not an option" in str(caught.value)
        assert "unlogged" not in str(caught.value)

    def test_a_folder_key_that_is_nearly_ours_is_an_error(self, project: Any) -> None:
        with pytest.raises(CompilationError) as caught:
            run_dbt(["parse", "--vars", "{with_near: true}"], expect_pass=False)
        said = str(caught.value)
        assert "has 2 problems" in said
        assert "locaton is not an option of copy_to_s3; did you mean location?" in said
