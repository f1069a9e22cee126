"""One run or compaction of a shard in a process of its own, to be killed in the middle.

Says `ready` once Spark is up, and begins when it is sent a line. Arguments: the S3 endpoint, the
location, and what to do: `diff`, `append` or `compact`.
"""

from __future__ import annotations

import sys
from typing import Any

from pyspark.sql import SparkSession

from dbt.adapters.mzs3.shard.compact import compact_shard
from dbt.adapters.mzs3.shard.options import CompactionRequest
from dbt.adapters.mzs3.shard.read.rows import ShardLocation
from dbt.adapters.mzs3.shard.write.job import persist_shard
from dbt.adapters.mzs3.spark.session import get_or_create
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import parse_location

# By what is done: `diff` keeps a part of the rows, takes some away and adds others.
QUERIES = {
    "first": "select id from range(300)",
    "diff": "select id from range(100, 400)",
    "append": "select id from range(50)",
}


def do(spark: SparkSession, endpoint: str, location: str, what: str) -> Any:
    """What the process does."""
    connection = AwsConnection(
        endpoint=endpoint,
        addressing_style="path",
        access_key_id="testing",
        secret_access_key="testing",
    )
    if what == "compact":
        shard = ShardLocation(connection, parse_location(location))
        return compact_shard(spark, shard, CompactionRequest("latest", keep_ms=0, parts=3))
    return persist_shard(
        spark,
        QUERIES[what],
        node="model.test.killed",
        options={
            "location": location,
            "mode": "append" if what == "append" else "diff",
            "parts": 3,
        },
        connections={"default": connection},
        as_of=1,
    )


def main(endpoint: str, location: str, what: str) -> None:
    spark = get_or_create(
        {
            "spark.master": "local[2]",
            "spark.ui.enabled": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.log.level": "OFF",
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.shuffle.partitions": "2",
        }
    )
    print("ready", flush=True)
    sys.stdin.readline()
    do(spark, endpoint, location, what)


if __name__ == "__main__":
    main(*sys.argv[1:])
