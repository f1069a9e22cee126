"""A catalog of Iceberg's own as the default one, without views: what works there, what is said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from dbt.tests.util import run_dbt
from support.spark.table_formats import in_own_catalog

from dbt.adapters.mzs3.project.sources import TYPE

pytestmark = [pytest.mark.spark, in_own_catalog]

BUCKET = "own-catalog"
MERGED = """
{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }}
select id, amount from {{ source('lake', 'orders') }}
"""
SNAPSHOT = """
{% snapshot merged_then %}
{{ config(unique_key='id', strategy='check', check_cols=['amount']) }}
select * from {{ ref('merged') }}
{% endsnapshot %}
"""
EXPORTED = f"""
{{{{ config(materialized='copy_to_s3', location='s3://{BUCKET}/export') }}}} select 1 as id
"""
SOURCES = f"""
sources:
  - name: lake
    schema: spark_catalog.lake_beside
    tables:
      - name: orders
        external: {{type: {TYPE}, location: 's3://{BUCKET}/orders/', on_overwrite: replace}}
        columns: [{{name: id, data_type: bigint}}, {{name: amount, data_type: int}}]
  - name: wrong
    schema: lake_inside
    tables:
      - name: orders
        external: {{type: {TYPE}, location: 's3://{BUCKET}/orders/'}}
"""


class TestOwnCatalog:
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        of_format = {"+file_format": "iceberg"}
        return {"models": of_format, "seeds": of_format, "snapshots": of_format}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"merged_then.sql": SNAPSHOT}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "sources.yml": SOURCES,
            "merged.sql": MERGED,
            "exported.sql": EXPORTED,
            "misplaced.sql": "select * from {{ source('wrong', 'orders') }}",
        }

    @pytest.fixture(scope="class", autouse=True)
    def emptied(self, project: Any) -> Iterator[None]:
        """dbt drops the schema at the end, and such a catalog does not do so with tables in it."""
        yield
        for name in ("merged", "merged_then"):
            project.run_sql(f"drop table if exists {{schema}}.{name} purge")

    def test_models_and_snapshots_twice(self, project: Any, s3: Any) -> None:
        s3.create_bucket(Bucket=BUCKET)
        s3.put_object(Bucket=BUCKET, Key="orders/1.csv", Body=b"id,amount\n1,10\n2,20\n")
        run_dbt(["build", "--select", "+merged_then"])
        s3.put_object(Bucket=BUCKET, Key="orders/1.csv", Body=b"id,amount\n1,10\n2,21\n")
        run_dbt(["build", "--select", "+merged_then"])
        then = "select id, amount, dbt_valid_to is null from {schema}.merged_then order by 1, 2"
        assert [tuple(row) for row in project.run_sql(then, fetch="all")] == [
            (1, 10, True),
            (2, 20, False),
            (2, 21, True),
        ]
        rows = project.run_sql(
            "select count(*) from spark_catalog.lake_beside.orders", fetch="one"
        )
        assert rows[0] == 2

    def test_what_needs_views_says_so(self, project: Any) -> None:
        [misplaced] = run_dbt(["run", "--select", "misplaced"], expect_pass=False)
        assert (
            "wrong.orders: the schema lake_inside is in the catalog ice, which can't have a "
            "source's views: declare schema: spark_catalog.lake_inside"
        ) in misplaced.message
        [exported] = run_dbt(["run", "--select", "exported"], expect_pass=False)
        assert (
            "this catalog has no views, and a view, an export and a shard are" in exported.message
        )
