"""Two nodes that would write one relation or location are found before anything runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from dbt.artifacts.resources.v1.source_definition import ExternalTable

from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.project.overlaps import find_overlaps, require_own

HERE = "http://127.0.0.1:9000"
CONNECTIONS = {
    "default": AwsConnection(region="eu-central-1"),
    "reader": AwsConnection("reader", access_key_id="A", secret_access_key="b"),
    "named": AwsConnection("named", endpoint="https://s3.eu-central-1.amazonaws.com"),
    "china": AwsConnection("china", region="cn-north-1"),
    "minio": AwsConnection("minio", endpoint=HERE, access_key_id="A", secret_access_key="b"),
    "slash": AwsConnection("slash", endpoint=f"{HERE}/"),
    "other": AwsConnection("other", endpoint="http://127.0.0.1:9001"),
}


def model(name: str, kind: str = "table", **given: Any) -> Any:
    return SimpleNamespace(
        unique_id=f"model.acme.{name}",
        original_file_path=f"models/{name}.sql",
        resource_type="model",
        schema=given.pop("schema", "raw"),
        alias=given.pop("alias", name),
        config=SimpleNamespace(materialized=kind, extra=given),
    )


def source(name: str, kind: str | None = "s3_csv_source", **given: Any) -> Any:
    return SimpleNamespace(
        unique_id=f"source.acme.lake.{name}",
        original_file_path="models/lake.yml",
        resource_type="source",
        source_name="lake",
        name=name,
        schema=given.get("schema", "raw"),
        identifier=given.get("identifier", name),
        external=kind and ExternalTable.from_dict({"type": kind, "location": "s3://a/b"}),
    )


def export(name: str, location: str, connection: Any = None, **given: Any) -> Any:
    return model(name, "copy_to_s3", location=location, aws_connection=connection, **given)


def shard(name: str, location: str) -> Any:
    return model(name, "persist_shard", location=location)


def found(*nodes: Any) -> dict[str, list[str]]:
    manifest = SimpleNamespace(
        nodes={one.unique_id: one for one in nodes if one.resource_type != "source"},
        sources={one.unique_id: one for one in nodes if one.resource_type == "source"},
    )
    return {
        name.removeprefix("model.acme.").removeprefix("source.acme.lake."): list(problems)
        for name, problems in find_overlaps(manifest, CONNECTIONS).items()
    }


def test_two_sources_of_one_relation_each_name_the_other() -> None:
    assert found(source("a", identifier="Orders"), source("b", identifier="ORDERS")) == {
        "a": [
            "raw.Orders is a relation of source lake.b (models/lake.yml) too; give each relations "
            "of its own, by its schema, identifier or alias, or remove one"
        ],
        "b": [
            "raw.Orders is a relation of source lake.a (models/lake.yml) too; give each relations "
            "of its own, by its schema, identifier or alias, or remove one"
        ],
    }


@pytest.mark.parametrize(
    "other",
    [
        source("b", "persist_shard", identifier="orders"),
        source("b", identifier="orders__objects"),
        source("b", "persist_shard", identifier="orders__lock"),
        model("b", alias="orders"),
        model("b", "view", alias="ORDERS__rows"),
        model("b", "snapshot", alias="orders__ledger"),
        export("b", "s3://a/c", alias="orders__rejects"),
    ],
)
def test_whatever_else_has_a_relation_of_a_source_is_found(other: Any) -> None:
    assert set(found(source("orders"), other)) == {"orders", "b"}


@pytest.mark.parametrize(
    "other",
    [
        source("orders_2"),
        source("b", identifier="orders", schema="other"),
        source("b", None, identifier="orders"),  # which reads it
        source("b", None, identifier="orders__rejects"),
        source("b", "parquet", identifier="orders"),
        model("orders__copy"),
        model("b", "ephemeral", alias="orders"),
    ],
)
def test_other_relations_and_who_only_reads_are_not(other: Any) -> None:
    assert found(source("orders"), other) == {}


@pytest.mark.parametrize("kinds", [(export, export), (shard, shard), (shard, export)])
def test_a_location_is_one_models(kinds: Any) -> None:
    first, second = (kind(name, at) for kind, name, at in zip(kinds, "ab", AT, strict=True))
    assert found(first, second) == {
        "a": [
            "location s3://acme/x/ is that of model.acme.b (models/b.sql) too; give each a "
            "location of its own"
        ],
        "b": [
            "location s3://acme/x/ is that of model.acme.a (models/a.sql) too; give each a "
            "location of its own"
        ],
    }


AT = ("s3://acme/x", "s3://acme/x/")


def test_of_many_some_are_named() -> None:
    problems = found(*(export(name, "s3://acme/x") for name in "abcdef"))
    assert len(problems) == 6
    [problem] = problems["b"]
    assert (
        "that of model.acme.a (models/a.sql), model.acme.c (models/c.sql), model.acme.d "
        "(models/d.sql) and 2 more too" in problem
    )


def test_nothing_is_inside_an_export() -> None:
    assert found(export("whole", "s3://acme/x"), shard("part", "s3://acme/x/y/z")) == {
        "part": [
            "location s3://acme/x/y/z/ is inside s3://acme/x/, which model.acme.whole "
            "(models/whole.sql) has for itself; choose another one"
        ],
        "whole": [
            "location s3://acme/x/ has inside it that of model.acme.part (models/part.sql); "
            "choose another one"
        ],
    }
    assert set(found(export("a", "s3://acme"), export("b", "s3://acme/x"))) == {"a", "b"}


def test_of_a_shard_only_its_batches_are_its_own() -> None:
    assert found(shard("a", "s3://acme/x"), export("b", "s3://acme/x/y")) == {}
    assert found(shard("a", "s3://acme/x"), shard("b", "s3://acme/x/y")) == {}
    assert set(found(shard("a", "s3://acme/x"), export("b", "s3://acme/x/batches"))) == {"a", "b"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("s3://acme/x", "s3://acme/x2"),
        ("s3://acme/x", "s3://acme/X"),
        ("s3://acme/x", "s3://other/x"),
        ("'s3://acme/' || mz_now()", "'s3://acme/' || mz_now()"),
        ("'s3://acme/' || uuid()", "'s3://acme/' || uuid()"),
        ("'s3://acme/' || 'x'", "'s3://acme/' || 'y'"),
        ("s3://", "s3://"),
    ],
)
def test_other_locations_and_those_that_a_run_makes_are_not_found(first: str, second: str) -> None:
    assert found(export("a", first), export("b", second)) == {}


def test_equal_expressions_are_one_location() -> None:
    expression = "concat('s3://acme/', 'x')"
    assert set(found(export("a", expression), shard("b", f"{expression} "))) == {"a", "b"}
    assert set(found(export("a", "'s3://acme/x'"), export("b", "s3://acme/x/y"))) == {"a", "b"}


@pytest.mark.parametrize(
    ("first", "second", "is_one"),
    [
        (None, "default", True),
        ("default", "reader", True),
        ("default", "named", True),
        ("default", "china", False),
        ("default", "minio", False),
        ("minio", "slash", True),
        ("minio", "other", False),
        ("minio", "unknown", False),
        ("minio", ["minio"], False),
    ],
)
def test_a_bucket_is_another_one_in_another_store(first: Any, second: Any, is_one: bool) -> None:
    for at in ("s3://acme/x", "concat('s3://acme/', 'x')"):
        assert bool(found(export("a", at, first), export("b", at, second))) is is_one
    assert bool(found(export("a", AT[0], first), export("b", "s3://acme/x/y", second))) is is_one


def test_who_shares_does_not_run() -> None:
    adapter = SimpleNamespace(overlaps={"source.acme.lake.orders": ["it is another's too"]})
    require_own(adapter, source("items"))
    with pytest.raises(ConfigError, match=r"source lake\.orders has 1 problem .*\n.*another's"):
        require_own(adapter, source("orders"))
