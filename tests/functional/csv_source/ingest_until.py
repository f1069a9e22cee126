"""Ingests sources in a process of its own, and kills it, Spark included, at a step if told to.

Its one argument is JSON: `parameters` of Spark, `connection`, `sources` as pairs of schema and
bucket, and `die_at`, the name of a step, or null. Prints, by schema, the rows it found visible.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.csv_source.definition import parse_definition
from dbt.adapters.mzs3.csv_source.ingest import ingest
from dbt.adapters.mzs3.spark.session import isolated_session

told = json.loads(sys.argv[1])


def on_step(name):
    if name == told["die_at"]:
        os.killpg(0, signal.SIGKILL)


spark = isolated_session(told["parameters"])
connection = AwsConnection(**told["connection"])
found = {}
for schema, bucket in told["sources"]:
    definition = parse_definition(
        name="lake.orders",
        schema=schema,
        identifier="orders",
        external={"type": "s3_csv_source", "location": f"s3://{bucket}/"},
        columns=[],
        connections=["default"],
    )
    reports = [ingest(spark, definition, connection, wait_s=0, on_step=on_step) for _ in range(2)]
    rows = spark.table(f"{schema}.orders").select("_mz_object", "_mz_record", "id").collect()
    found[schema] = {
        "rows": sorted([*row] for row in rows),
        "objects": [report.objects for report in reports],
    }
print(json.dumps(found))
