"""Docs after a run in the same process: no temporary view is in the way."""

import pytest
from dbt.tests.util import run_dbt

INCREMENTAL = (
    "{{ config(materialized='incremental') }} select cast(1 as bigint) as id, 's' as name"
)


TABLE = "{{ config(materialized='table') }} select id from range(5)"


@pytest.mark.slow  # of a table that Hive keeps
class TestDocsAfterAnIncrementalRun:
    @pytest.fixture(scope="class")
    def models(self):
        return {"grows.sql": INCREMENTAL, "five.sql": TABLE}

    def test_the_catalog_has_the_table_alone_with_types_as_sql_has_them(self, project):
        run_dbt(["run"])
        run_dbt(["run"])

        catalog = run_dbt(["docs", "generate"])

        assert catalog.errors is None
        table = catalog.nodes["model.test.grows"]
        assert table.metadata.name == "grows"
        assert {name: column.type for name, column in table.columns.items()} == {
            "id": "bigint",
            "name": "string",
        }

    def test_a_number_of_rows_is_told_where_spark_knows_it(self, project):
        five = "model.test.five"
        run_dbt(["run", "--select", "five"])
        stats = run_dbt(["docs", "generate"]).nodes[five].stats
        assert stats["bytes"].value > 0
        assert "rows" not in stats

        project.run_sql("analyze table {schema}.five compute statistics")
        assert run_dbt(["docs", "generate"]).nodes[five].stats["rows"].value == 5
