"""Which sources a node needs, from a manifest as dbt hands it over."""

from types import SimpleNamespace

import pytest
from dbt.artifacts.resources.v1.source_definition import ExternalTable
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.project.sources import (
    needed_sources,
    selected_sources,
    source_definition,
    sources_read_as,
)
from dbt.adapters.mzs3.source.options import TYPE
from dbt.adapters.mzs3.store.connection import AwsConnection


def source(table, name="lake", **external):
    declared = {"type": "s3_csv_source", "location": f"s3://lake/{table}", **external}
    return SimpleNamespace(
        unique_id=f"source.acme.{name}.{table}",
        source_name=name,
        name=table,
        schema="raw",
        identifier=table,
        external=ExternalTable.from_dict(declared),
        columns={"id": SimpleNamespace(name="id", data_type="bigint")},
    )


def model(*parents, ephemeral=False):
    return SimpleNamespace(
        resource_type="model",
        depends_on=SimpleNamespace(nodes=list(parents)),
        is_ephemeral_model=ephemeral,
    )


@pytest.fixture
def manifest():
    foreign = source("foreign", type="parquet")
    plain = source("plain")
    plain.external = None
    sources = [source("orders"), source("items"), source("rates", "bank"), foreign, plain]
    return SimpleNamespace(
        sources={node.unique_id: node for node in sources},
        nodes={
            "model.acme.stg": model("source.acme.lake.orders", ephemeral=True),
            "model.acme.inner": model("model.acme.stg", ephemeral=True),
            "model.acme.table": model("source.acme.lake.items"),
        },
    )


def names(nodes):
    return [f"{node.source_name}.{node.name}" for node in nodes]


def test_sources_are_found_directly_and_behind_ephemeral_models_each_once(manifest):
    node = model("model.acme.inner", "model.acme.stg", "source.acme.bank.rates")
    assert sorted(names(needed_sources(manifest, node, TYPE))) == [
        "bank.rates",
        "lake.orders",
    ]


def test_sources_are_found_behind_functions_of_which_dbt_tells_their_names_alone(manifest):
    inner = model()
    inner.resource_type, inner.sources = "function", [["lake", "orders"]]
    outer = model("function.acme.inner")
    outer.resource_type, outer.sources = "function", []
    manifest.functions = {"function.acme.inner": inner, "function.acme.outer": outer}

    read = needed_sources(manifest, model("function.acme.outer"), TYPE)

    assert names(read) == ["lake.orders"]
    assert names(needed_sources(manifest, inner, TYPE)) == ["lake.orders"]


def test_a_source_behind_another_model_is_that_models_business(manifest):
    assert needed_sources(manifest, model("model.acme.table"), TYPE) == []


def test_sources_of_other_kinds_are_not_ours(manifest):
    node = model("source.acme.lake.foreign", "source.acme.lake.plain", "macro.acme.x")
    assert needed_sources(manifest, node, TYPE) == []


@pytest.mark.parametrize("plain", ["orders", "ORDERS__rejects"])
def test_rows_and_rejects_that_are_declared_once_more_are_those_of_the_source(manifest, plain):
    beside = manifest.sources["source.acme.lake.beside"] = source("beside")
    beside.external, beside.identifier = None, plain
    orders = manifest.sources["source.acme.lake.orders"]
    node = model("source.acme.lake.beside", "source.acme.lake.items")
    assert names(needed_sources(manifest, node, TYPE)) == ["lake.items", "lake.orders"]
    assert needed_sources(manifest, node, "persist_shard") == []
    # Who looks at its state wants it as it is, and gets it from one that can't be ingested.
    beside.identifier = "orders__objects"
    assert orders not in needed_sources(manifest, node, TYPE)


@pytest.mark.parametrize("kind", ["s3_csv_sources", "S3_CSV_SOURCE", "s3-csv-source"])
def test_a_type_that_is_nearly_ours_is_an_error_to_who_needs_it(manifest, kind):
    near = manifest.sources["source.acme.lake.orders"] = source("orders", type=kind)
    assert needed_sources(manifest, model("source.acme.lake.orders"), TYPE) == [near]
    with pytest.raises(ConfigError, match=r"external\.type .*did you mean s3_csv_source\?"):
        source_definition(near, {"default": AwsConnection()})


def test_other_types_and_other_places_stay_others_business(manifest):
    others = [
        source("orders", type="s3_parquet_source"),
        source("orders", type="csv"),
        source("orders", type="s3_csv_sources", location="gs://lake/orders"),
    ]
    for other in others:
        manifest.sources["source.acme.lake.orders"] = other
        assert needed_sources(manifest, model("source.acme.lake.orders"), TYPE) == []


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        (None, ["lake.orders", "lake.items", "bank.rates"]),
        (["lake.orders"], ["lake.orders"]),
        (["lake"], ["lake.orders", "lake.items"]),
        (["bank", "bank.rates"], ["bank.rates"]),
    ],
)
def test_sources_are_selected_by_table_or_by_source(manifest, select, expected):
    assert names(selected_sources(manifest, select)) == expected


def test_a_name_that_is_no_source_is_an_error_with_a_hint(manifest):
    with pytest.raises(DbtRuntimeError, match=r"lake\.order is not .*did you mean lake\.orders\?"):
        selected_sources(manifest, ["lake.orders", "lake.order"])


def test_all_names_that_are_no_source_are_told(manifest):
    with pytest.raises(DbtRuntimeError) as raised:
        selected_sources(manifest, ["lake.order", "lake", "bnk"])
    assert [line.split()[0] for line in str(raised.value.msg).splitlines()] == [
        "lake.order",
        "bnk",
    ]


def test_a_relation_is_found_by_its_place(manifest):
    relation = SimpleNamespace(schema="raw", identifier="items")
    assert names(sources_read_as(manifest, [relation], TYPE)) == ["lake.items"]
    foreign = SimpleNamespace(schema="raw", identifier="foreign")
    assert sources_read_as(manifest, [foreign], TYPE) == []
    assert sources_read_as(None, [relation], TYPE) == []


@pytest.mark.parametrize(
    ("schema", "identifier", "catalog", "is_one"),
    [
        ("RAW", "Items", "spark_catalog", True),
        ("spark_catalog.raw", "items", "spark_catalog", True),
        ("Spark_Catalog.raw", "items__rejects", "spark_catalog", True),
        ("ice.raw", "items", "spark_catalog", False),
        ("ice.raw", "items", "ice", True),
        ("spark_catalog.raw", "items", "ice", False),
        ("raw", "items__objects", "spark_catalog", False),
    ],
)
def test_a_relation_is_the_one_that_spark_finds_by_its_name(
    manifest, schema, identifier, catalog, is_one
):
    relation = SimpleNamespace(schema=schema, identifier=identifier)
    found = names(sources_read_as(manifest, [relation], TYPE, catalog=catalog))
    assert found == ["lake.items"] * is_one
    plain = manifest.sources["source.acme.lake.plain"]
    plain.schema, plain.identifier = schema, identifier
    node = model("source.acme.lake.plain")
    assert names(needed_sources(manifest, node, TYPE, catalog=catalog)) == found
    rows_alone = sources_read_as(manifest, [relation], TYPE, catalog=catalog, rejects=False)
    assert names(rows_alone) == ([] if identifier.endswith("rejects") else found)


def test_what_a_node_declares_becomes_its_definition():
    node = source("orders", delimiter=";", aws_connection="eu")
    definition = source_definition(node, {"eu": AwsConnection(name="eu")})
    assert (definition.name, definition.schema, definition.identifier) == (
        "lake.orders",
        "raw",
        "orders",
    )
    assert definition.location.uri == "s3://lake/orders/"
    assert definition.dialect.delimiter == ";"
    assert [(c.name, c.data_type) for c in definition.columns] == [("id", "bigint")]


def test_a_key_that_is_not_known_is_an_error_that_names_the_source():
    with pytest.raises(ConfigError, match=r"source lake\.orders .*\n.*delimitr"):
        source_definition(source("orders", delimitr=";"), {"default": AwsConnection()})
