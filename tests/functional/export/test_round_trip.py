"""An export that `s3_csv_source` reads again, in one dbt project: the same table."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dbt.tests.util import run_dbt
from support.export.downstream_rows import COLUMNS, ROWS, spark_schema

pytestmark = [pytest.mark.spark, pytest.mark.slow]

EXPORT = """
{{ config(
    materialized='copy_to_s3', location='s3://round-trip/' ~ var('name'), format=var('format'),
    header=(true if var('format') == 'csv' else none), compression=var('compression')
) }}
select * from {{ target.schema }}.everything_{{ var('name') }}
"""
BACK = """
{{ config(materialized='table', alias='back_' ~ var('name')) }}
select * from {{ source('lake', 'back') }}
"""
SOURCE = """
sources:
  - name: lake
    schema: "{schema}"
    tables:
      - name: back
        external:
          type: s3_csv_source
          location: "s3://round-trip/{name}/"
          format: "{{ var('format') }}"
        columns:
{columns}
"""
# What sources have types for.
SOURCED = [
    name for name, c in COLUMNS.items() if not c.spark.startswith(("time ", "array", "interval"))
    and c.spark != "time"
]  # fmt: skip


class TestRoundTripThroughDbt:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        columns = {"id": "bigint", "kind": "string"} | {n: COLUMNS[n].spark for n in SOURCED}
        listed = "\n".join(
            f"          - {{name: {n}, data_type: '{kind}'}}" for n, kind in columns.items()
        )
        source = SOURCE.replace("{columns}", listed)
        source = source.replace("{name}", "{{ var('name') }}")
        return {
            "export.sql": EXPORT,
            "back.sql": BACK,
            "sources.yml": source.replace("{schema}", "{{ target.schema }}_{{ var('name') }}"),
        }

    @pytest.fixture(scope="class", autouse=True)
    def the_bucket(self, s3: Any) -> None:
        s3.create_bucket(Bucket="round-trip")

    @pytest.mark.parametrize(
        ("rows", "form", "compression"),
        [
            ("extremes", "csv", "none"),
            ("seed 1", "csv", "gzip"),
            ("seed 2", "csv", "none"),
            ("extremes", "parquet", "snappy"),
            ("seed 1", "parquet", "zstd"),
        ],
    )
    def test_it_is_the_same_table(
        self, project: Any, spark: Any, rows: str, form: str, compression: str
    ) -> None:
        name = f"{rows}_{form}".replace(" ", "_")
        values = [(r["id"], r["kind"], *(r[n] for n in SOURCED)) for r in ROWS[rows]]
        frame = spark.createDataFrame(values, spark_schema(SOURCED))
        frame.write.saveAsTable(f"{project.test_schema}.everything_{name}")
        arguments = json.dumps({"name": name, "format": form, "compression": compression})
        run_dbt(["run", "--select", "export", "--vars", arguments])
        run_dbt(["run", "--select", "back", "--vars", arguments])
        back = spark.table(f"{project.test_schema}.back_{name}").select("id", "kind", *SOURCED)
        assert back.schema.simpleString() == frame.schema.simpleString()
        assert back.count() == len(values)
        assert back.exceptAll(frame).collect() == frame.exceptAll(back).collect() == []
