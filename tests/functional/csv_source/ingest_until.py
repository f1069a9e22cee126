"""Ingests a source in a process of its own, and kills it, Spark included, at a step if told to.

Its one argument is JSON: `parameters` of Spark, `connection`, `bucket`, and `die_at`, the name of
a step, or null. Prints what two runs took, and the rows that are visible then.
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
definition = parse_definition(
    name="lake.orders",
    schema="raw",
    identifier="orders",
    external={"type": "s3_csv_source", "location": f"s3://{told['bucket']}/"},
    columns=[],
    connections=["default"],
)
reports = [ingest(spark, definition, connection, wait_s=0, on_step=on_step) for _ in range(2)]
rows = spark.table("raw.orders").select("_mz_object", "_mz_record", "id").collect()
print(
    json.dumps(
        {
            "objects": [report.objects for report in reports],
            "rows": sorted([*row] for row in rows),
        }
    )
)
