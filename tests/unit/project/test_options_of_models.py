"""A key that is no option is an error of the model that has it itself, and none of a folder."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from dbt.contracts.files import FileHash, FilePath, SchemaSourceFile

from dbt.adapters.mzs3.project.declarations import export_options, shard_options

HERE = {"location": "s3://a/b"}
OF_BOTH = pytest.mark.parametrize("options", [export_options, shard_options])


def model(
    given: dict[str, Any], called: tuple[str, ...] = (), version: int | None = None, **known: Any
) -> Any:
    """A model whose config is this, of which it has the keys `called` in its own call."""
    return SimpleNamespace(
        name="orders",
        version=version,
        config=SimpleNamespace(extra={**HERE, **given}, **{"column_types": {}, **known}),
        unrendered_config=known,
        config_call_dict={key: given[key] for key in called},
        patch_path="acme://models/schema.yml",
    )


def manifest(config: dict[str, Any], *versions: dict[str, Any]) -> Any:
    """A project whose properties file has this config of the model, and these of its versions."""
    path = FilePath("models", "schema.yml", 0.0, "/acme")
    file = SchemaSourceFile(path=path, checksum=FileHash.empty(), project_name="acme")
    numbered = [{"v": number, "config": each} for number, each in enumerate(versions, start=1)]
    others = [{"name": "others", "config": {"unlogged": True}}, {"name": "bare"}]
    file.dfy = {"models": [*others, {"name": "orders", "config": config, "versions": numbered}]}
    return SimpleNamespace(files={file.file_id: file})


NO_FILE = SimpleNamespace(files={})


@OF_BOTH
def test_keys_of_other_tools_that_folders_have_are_left_out(options: Any) -> None:
    folder = {"bind": False, "dbt-osmosis": "_{model}.yml", "partitioned_by": ["id"]}
    assert options(model(folder), NO_FILE) == HERE
    assert options(model(folder), manifest({"tags": ["nightly"]})) == HERE


@OF_BOTH
def test_those_that_models_have_themselves_are_kept(options: Any) -> None:
    given = {"bind": False, "query_tag": "nightly", "transient": True, "unlogged": True}
    ours = {**HERE, "bind": False}
    assert options(model(given, called=("bind",)), NO_FILE) == ours
    of_file = manifest({"query_tag": "{{ var('tag') }}"})
    assert options(model(given, called=("bind",)), of_file) == {**ours, "query_tag": "nightly"}


@OF_BOTH
def test_a_version_has_its_own_and_those_of_all_versions(options: Any) -> None:
    given = {"bind": False, "transient": True, "unlogged": True}
    project = manifest({"bind": False}, {"transient": True}, {"unlogged": True})
    assert options(model(given, version=1), project) == {**HERE, "bind": False, "transient": True}


@OF_BOTH
@pytest.mark.parametrize("near", ["locaton", "loaction", "Location", "part-size", "aws_conection"])
def test_what_is_nearly_an_option_is_kept_wherever_it_stands(options: Any, near: str) -> None:
    assert options(model({near: "x"}), NO_FILE) == {**HERE, near: "x"}


@OF_BOTH
@pytest.mark.parametrize(
    "other",
    [
        *("partition_by_init", "partition_type", "partition_key", "partitions", "partitioned_by"),
        *("connection", "mv_on_schema_change", "tags", "sort", "dist", "node"),
    ],
)
def test_what_is_less_near_is_not(options: Any, other: str) -> None:
    assert options(model({other: "x"}), NO_FILE) == HERE


def test_a_shard_has_what_is_dbts_too_if_it_is_given() -> None:
    of_dbt = {"column_types": {"id": "uuid"}, "on_schema_change": "fail"}
    assert shard_options(model({}, **of_dbt), NO_FILE) == {**HERE, **of_dbt}
