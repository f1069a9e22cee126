"""Two nodes that would write one relation or location are found before anything runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from dbt.artifacts.resources.v1.source_definition import ExternalTable

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.project.overlaps import find_overlaps, require_own
from dbt.adapters.mzs3.store.connection import AwsConnection

HERE = "http://127.0.0.1:9000"
CONNECTIONS = {
    "default": AwsConnection(region="eu-central-1"),
    "reader": AwsConnection("reader", access_key_id="A", secret_access_key="b"),
    "named": AwsConnection("named", endpoint="https://s3.eu-central-1.amazonaws.com"),
    "china": AwsConnection("china", region="cn-north-1"),
    "minio": AwsConnection("minio", endpoint=HERE, access_key_id="A", secret_access_key="b"),
    "slash": AwsConnection("slash", endpoint=f"{HERE}/"),
    "other": AwsConnection("other", endpoint="http://127.0.0.1:9001"),
    "gov": AwsConnection("gov", region="us-gov-west-1"),
    **{
        name: AwsConnection(name, endpoint=endpoint)
        for name, endpoint in {
            "port": "http://minio:80",
            "no_port": "http://minio",
            "tls": "https://minio/",
            "tls_port": "https://minio:443",
            "named_china": "https://s3.cn-north-1.amazonaws.com.cn",
            "named_gov": "https://s3-fips.us-gov-west-1.amazonaws.com",
            "anywhere": "https://s3-accelerate.amazonaws.com",
        }.items()
    },
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
        source("b", identifier="orders", schema="spark_catalog.RAW"),
        model("b", alias="orders"),
        model("b", schema="Spark_Catalog.raw", alias="orders"),
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
        source("b", identifier="orders", schema="ice.raw"),
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
            "(models/whole.sql) owns; choose one outside of it"
        ],
        "whole": [
            "location s3://acme/x/ has inside it that of model.acme.part (models/part.sql); "
            "choose one that has nobody else's inside it"
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
        ("'s3://acme/' || 'x'", "'s3://acme/' || 'y'"),
        ("'s3://acme/' || 'x'", "'s3://acme/' || 'X'"),
        ("'s3://acme/' || 'x y'", "'s3://acme/' || 'xy'"),
        ("s3://", "s3://"),
    ],
)
def test_other_locations_are_not_found(first: str, second: str) -> None:
    assert found(export("a", first), export("b", second)) == {}


@pytest.mark.parametrize(
    "expression",
    [
        "'s3://acme/' || uuid()",
        "'s3://acme/' || now()",
        "concat('s3://acme/', rand())",
        "'s3://acme/' || date_format(current_timestamp(), 'HHmm')",
        "loc",  # a variable of the session, which a pre_hook of each model sets
        "'s3://acme/' || `mz_now`",
        "(select max(place) from places)",
        "'s3://acme/' || -- why\n 'x'",
        "",
    ],
)
def test_what_may_be_another_for_each_model_is_no_others_location(expression: str) -> None:
    assert found(export("a", expression), export("b", expression)) == {}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("concat('s3://acme/', 'x')", "CONCAT ( 's3://acme/','x' )\n"),
        ("'s3://acme/x/' || mz_now()", "'s3://acme/x/' || mz_now()"),
        ("'s3://acme/' || current_date()", "'s3://acme/'||Current_Date( )"),
        ("'s3://acme/' || date_format(timestamp_millis(mz_now()), 'yyyy')",) * 2,
        ("'s3://acme/' || cast(mz_now() as string)",) * 2,
        ("'s3://acme/local_now/uuid/' || 'it''s'",) * 2,
        ("'s3://acme/' || '1\\'x'",) * 2,
        ('"s3://acme/" || mz_now()', "'s3://acme/' || mz_now()"),
        ('"s3://acme/x"', "s3://acme/x/"),
        ("'s3://acme/x'", " 's3://acme/x/' "),
    ],
)
def test_equal_expressions_are_one_location(first: str, second: str) -> None:
    assert set(found(export("a", first), shard("b", second))) == {"a", "b"}


@pytest.mark.parametrize(
    ("expression", "is_inside"),
    [
        ("'s3://acme/x/' || mz_now()", True),
        ("'s3://acme/x/y/z' || uuid()", True),
        ("concat('s3://acme/x/', loc)", True),
        ('Concat( "s3://acme/x/", loc)', True),
        ("'s3://acme/x/it\\'s' || loc", True),
        ("'s3://acme/x' || loc", False),
        ("'s3://acme/' || 'x/' || uuid()", False),
        ("'s3://' || 'acme/x/y'", False),
        ("'s3://ac' || 'me/x/y'", False),
        ("loc || 's3://acme/x/'", False),
        ("replace('s3://acme/x/', 'x', 'y')", False),
    ],
)
def test_an_expression_is_inside_what_its_first_text_is_in(
    expression: str, is_inside: bool
) -> None:
    told = found(export("whole", "s3://acme/x"), export("part", expression))
    assert set(told) == ({"whole", "part"} if is_inside else set())
    assert found(shard("whole", "s3://acme/x"), export("part", expression)) == {}


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
        ("port", "no_port", True),
        ("port", "tls", False),
        ("tls", "tls_port", True),
        ("china", "named_china", True),
        ("default", "named_china", False),
        ("gov", "named_gov", True),
        ("default", "named_gov", False),
        ("default", "anywhere", True),
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
