"""Names of relations in catalogs of Spark, which are dbt's databases."""

from types import SimpleNamespace

import pytest
from jinja2 import Undefined

from dbt.adapters.mzs3.catalogs import CatalogAdapter, Mzs3Relation


def create(database, schema):
    return Mzs3Relation.create(database=database, schema=schema, identifier="orders")


@pytest.mark.parametrize(
    ("database", "schema", "name"),
    [
        (None, "raw", "raw.orders"),
        ("raw", "raw", "raw.orders"),
        ("lake", "raw", "lake.raw.orders"),
        ("lake", "lake.raw", "lake.raw.orders"),
        (None, "lake.raw", "lake.raw.orders"),
    ],
)
def test_a_database_is_the_first_of_three_names(database, schema, name):
    relation = create(database, schema)

    assert relation.render() == name
    assert relation.incorporate(path={"identifier": "rates"}).render() == name.replace(
        "orders", "rates"
    )


def test_a_relation_is_the_same_however_its_catalog_is_given():
    assert create("lake", "raw") == create(None, "lake.raw")
    assert create("lake", "raw").matches(schema="lake.raw", identifier="orders")


@pytest.mark.parametrize(
    ("default", "name"), [("spark_catalog", "raw.orders"), ("ice", "spark_catalog.raw.orders")]
)
def test_where_spark_looks_anyway_a_name_has_two_parts(default, name):
    credentials = SimpleNamespace(default_catalog=default)
    node = SimpleNamespace(
        database="spark_catalog",
        schema="raw",
        identifier="orders",
        quoting_dict={},
        catalog_name=None,
    )
    config = SimpleNamespace(quoting={}, credentials=credentials)

    assert Mzs3Relation.create_from(config, node).render() == name

    adapter = CatalogAdapter.__new__(CatalogAdapter)
    adapter.config = config
    assert f"{adapter.schema_in('spark_catalog', 'raw')}.orders" == name
    assert adapter.schema_in(Undefined(), "raw") == "raw"
