"""Writes sums of floats from a cluster of this process's own, as an export or as a shard.

The argument is JSON: the `parameters` of Spark, the S3 `endpoint`, the `location`, `what` is
written, and whether rows that Spark computes anew are `compared` with those that were lost. The
last digits of a sum depend on the order in which a shuffle hands out its blocks.
"""

from __future__ import annotations

import json
import sys

from dbt.adapters.mzs3.errors import Mzs3Error
from dbt.adapters.mzs3.events import CopyEvent
from dbt.adapters.mzs3.export.job import copy_to_s3
from dbt.adapters.mzs3.export.monitor import RunContext
from dbt.adapters.mzs3.shard.read.rows import read_shard
from dbt.adapters.mzs3.shard.write.job import persist_shard
from dbt.adapters.mzs3.spark.session import get_or_create
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import parse_location
from dbt.adapters.mzs3.upload import job as upload_job

GROUPS = 3000
PARTS = 12
SUMS = f"""
select k, sum(x) as x
from (
  select id % {GROUPS} as k, hash(id) / 7D * pow(10D, id % 13) as x from range(0, 90000, 1, 8)
)
group by k
"""


def main(
    parameters: dict[str, str], endpoint: str, location: str, what: str, *, compared: bool
) -> None:
    if not compared:
        upload_job._COMPARED.clear()
    spark = get_or_create(
        {
            "spark.master": "local-cluster[2,1,512]",
            "spark.executor.memory": "512m",
            "spark.ui.enabled": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.log.level": "OFF",
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.shuffle.partitions": "8",
            "spark.sql.adaptive.coalescePartitions.enabled": "false",
            # Little is computed; to compile it would take longer.
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            # A block that is gone is told of at once.
            "spark.shuffle.io.maxRetries": "1",
            "spark.shuffle.io.retryWait": "100ms",
            **parameters,
        }
    )
    connection = AwsConnection(
        endpoint=endpoint,
        addressing_style="path",
        access_key_id="testing",
        secret_access_key="testing",
    )

    def tell(event: CopyEvent) -> None:
        if event.level != "debug" or event.name == "mzs3.copy.native":
            print(event.message, flush=True)

    run = {
        "node": "model.test.sums",
        "options": {"location": location, "parts": PARTS},
        "connections": {"default": connection},
        "as_of": 1,
    }
    try:
        if what == "shard":
            result = persist_shard(spark, SUMS, tell=tell, **run)
            rows = read_shard(spark, connection, parse_location(location))
            groups = rows.select("k").distinct().count()
            print(f"{rows.count()} rows of {groups} groups", flush=True)
        else:
            result = copy_to_s3(spark, SUMS, context=RunContext(tell=tell), **run)
    except Mzs3Error as exc:
        raise SystemExit(str(exc)) from exc
    print(f"wrote {result.rows} rows", flush=True)


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
