"""Ingests a source in a process of its own, and kills it, Spark included, at a step if told to.

Its one argument is JSON: `parameters` of Spark, `connection`, `bucket`, and the schemas of the
`sources` over it. Each is ingested twice; then a line says what the two runs took, and the rows
that are visible. At the step `die_at` the process dies; at `hold_at` it says so, and waits for a
line. Where it `waits`, it does that before the last source.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from dbt.adapters.mzs3.source.ingest import ingest
from dbt.adapters.mzs3.source.options import parse_definition
from dbt.adapters.mzs3.spark.session import isolated_session
from dbt.adapters.mzs3.store.connection import AwsConnection

told = json.loads(sys.argv[1])


def wait(why):
    print(why, flush=True)
    sys.stdin.readline()


def on_step(line):
    name = line[1].partition(": ")[2]
    if name == told.get("die_at"):
        os.killpg(0, signal.SIGKILL)
    if name == told.get("hold_at"):
        wait(name)


spark = isolated_session(told["parameters"])
connection = AwsConnection(**told["connection"])
for schema in told["sources"]:
    if told.get("waits") and schema == told["sources"][-1]:
        wait("ready")
    definition = parse_definition(
        name="lake.orders",
        schema=schema,
        identifier="orders",
        external={"type": "s3_csv_source", "location": f"s3://{told['bucket']}/"},
        columns=[],
        connections=["default"],
    )
    reports = [ingest(spark, definition, connection, wait_s=0, tell=on_step) for _ in range(2)]
    rows = spark.table(f"{schema}.orders").select("_mz_object", "_mz_record", "id").collect()
    found = {
        "objects": [report.objects for report in reports],
        "seconds": [report.seconds for report in reports],
        "rows": sorted([*row] for row in rows),
    }
    print(json.dumps(found), flush=True)
