"""Docs after a run in the same process: no temporary view is in the way."""

import pytest
from dbt.tests.util import run_dbt

INCREMENTAL = (
    "{{ config(materialized='incremental') }} select cast(1 as bigint) as id, 's' as name"
)


class TestDocsAfterAnIncrementalRun:
    @pytest.fixture(scope="class")
    def models(self):
        return {"grows.sql": INCREMENTAL}

    def test_the_catalog_has_the_table_alone_with_types_as_sql_has_them(self, project):
        run_dbt(["run"])
        run_dbt(["run"])

        catalog = run_dbt(["docs", "generate"])

        assert catalog.errors is None
        (table,) = catalog.nodes.values()
        assert table.metadata.name == "grows"
        assert {name: column.type for name, column in table.columns.items()} == {
            "id": "bigint",
            "name": "string",
        }
