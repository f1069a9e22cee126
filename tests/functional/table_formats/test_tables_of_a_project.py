"""A project whose every table is of Delta or Iceberg: what dbt makes, sources, exports, shards."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt
from support.spark.table_formats import FILE_FORMAT, in_session_catalog

from dbt.adapters.mzs3.project.sources import TYPE

pytestmark = [pytest.mark.spark, in_session_catalog]

BUCKET = "table-formats"
MERGED = """
{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }}
select id, amount from {{ source('lake', 'orders') }}
{% if is_incremental() %} where id > 1 {% endif %}
"""
SNAPSHOT = """
{% snapshot merged_then %}
{{ config(unique_key='id', strategy='check', check_cols=['amount']) }}
select * from {{ ref('merged') }}
{% endsnapshot %}
"""
EXPORTED = f"""
{{{{ config(materialized='copy_to_s3', location='s3://{BUCKET}/export') }}}}
select * from {{{{ ref('merged') }}}} union all select id, amount from {{{{ ref('seeded') }}}}
"""
SHARD = f"""
{{{{ config(materialized='persist_shard', location='s3://{BUCKET}/shard') }}}}
select * from {{{{ ref('merged') }}}}
"""
READ_AGAIN = """
{{ config(materialized='table') }} -- depends_on: {{ ref('shard') }}
select * from {{ source('lake', 'shard_now') }}
"""
SOURCES = f"""
sources:
  - name: lake
    schema: lake_of_tables
    tables:
      - name: orders
        external:
          type: {TYPE}
          location: s3://{BUCKET}/orders/
          file_format: {FILE_FORMAT}
          on_overwrite: replace
        columns: [{{name: id, data_type: bigint}}, {{name: amount, data_type: int}}]
      - name: shard_now
        external:
          type: persist_shard
          location: s3://{BUCKET}/shard
          file_format: {FILE_FORMAT}
        columns: [{{name: id}}, {{name: amount}}]
"""


class TestTablesOfAProject:
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        of_format = {"+file_format": FILE_FORMAT}
        return {"models": of_format, "seeds": of_format, "snapshots": of_format}

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"seeded.csv": "id,amount\n100,1\n"}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"merged_then.sql": SNAPSHOT}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "sources.yml": SOURCES,
            "merged.sql": MERGED,
            "exported.sql": EXPORTED,
            "shard.sql": SHARD,
            "read_again.sql": READ_AGAIN,
        }

    def provider(self, project: Any, table: str) -> str:
        rows = project.run_sql(f"describe table extended {table}", fetch="all")
        return next(row[1] for row in rows if row[0] == "Provider")

    def exported(self, s3: Any) -> list[str]:
        found = s3.list_objects_v2(Bucket=BUCKET, Prefix="export/")["Contents"]
        keys = [one["Key"] for one in found if one["Key"].endswith(".csv")]
        texts = (s3.get_object(Bucket=BUCKET, Key=key)["Body"].read().decode() for key in keys)
        return sorted(line for text in texts for line in text.splitlines())

    def test_everything_twice(self, project: Any, s3: Any) -> None:
        s3.create_bucket(Bucket=BUCKET)
        s3.put_object(Bucket=BUCKET, Key="orders/1.csv", Body=b"id,amount\n1,10\n2,20\n")
        run_dbt(["build"])
        assert self.exported(s3) == ["1,10", "100,1", "2,20"]
        for name in ("seeded", "merged", "merged_then", "read_again"):
            assert self.provider(project, f"{project.test_schema}.{name}") == FILE_FORMAT
        s3.put_object(Bucket=BUCKET, Key="orders/1.csv", Body=b"id,amount\n1,10\n2,21\n")
        s3.put_object(Bucket=BUCKET, Key="orders/2.csv", Body=b"id,amount\n3,30\n")
        run_dbt(["build", "--vars", "{again: true}", "--exclude", "exported"])
        merged = project.run_sql("select * from {schema}.merged order by id", fetch="all")
        assert [tuple(row) for row in merged] == [(1, 10), (2, 21), (3, 30)]
        then = "select id, amount, dbt_valid_to is null from {schema}.merged_then order by 1, 2"
        assert [tuple(row) for row in project.run_sql(then, fetch="all")] == [
            (1, 10, True),
            (2, 20, False),
            (2, 21, True),
            (3, 30, True),
        ]
        again = project.run_sql("select * from {schema}.read_again order by id", fetch="all")
        assert [tuple(row) for row in again] == [(1, 10), (2, 21), (3, 30)]
        tables = [row[1] for row in project.run_sql("show tables in lake_of_tables", fetch="all")]
        for start in ("orders__rows_", "orders__ledger_", "shard_now__shard_"):
            found = {
                self.provider(project, f"lake_of_tables.{name}")
                for name in tables
                if name.startswith(start)
            }
            assert found == {FILE_FORMAT}
        history = "select status, rows from {schema}.mzs3_copy_history"
        assert [tuple(row) for row in project.run_sql(history, fetch="all")] == [("rows", 3)]
