"""One export in a process of its own, to be killed or interrupted in the middle.

Says `ready` once Spark is up, and begins when it is sent a line. Arguments: the S3 endpoint, the
location, `on_existing`, how many MB to write, and a text that all of its rows hold.
"""

from __future__ import annotations

import sys
from typing import Any

from pyspark.sql import SparkSession

from dbt.adapters.mzs3.errors import Mzs3Error
from dbt.adapters.mzs3.export.export import CopyResult
from dbt.adapters.mzs3.export.job import copy_to_s3
from dbt.adapters.mzs3.spark.session import get_or_create
from dbt.adapters.mzs3.store.connection import AwsConnection

# About 1 kB a row; 5 MB is the smallest upload part there is.
QUERY = "select id, repeat(md5(concat('{text}', id)), 31) as filler from range({rows})"
OPTIONS: dict[str, Any] = {"parts": 3, "part_size": "5MB", "max_file_size": "12MB"}


def export(
    spark: SparkSession, endpoint: str, location: str, on_existing: str, megabytes: int, text: str
) -> CopyResult:
    """What the process does; the same arguments give the same bytes."""
    connection = AwsConnection(
        endpoint=endpoint,
        addressing_style="path",
        access_key_id="testing",
        secret_access_key="testing-testing",
    )
    return copy_to_s3(
        spark,
        QUERY.format(text=text, rows=megabytes * 1000),
        node="model.test.killed",
        options={"location": location, "on_existing": on_existing, **OPTIONS},
        connections={"default": connection},
        as_of=1,
    )


def main(endpoint: str, location: str, on_existing: str, megabytes: str, text: str) -> None:
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
    try:
        result = export(spark, endpoint, location, on_existing, int(megabytes), text)
    except Mzs3Error as exc:
        raise SystemExit(str(exc)) from exc
    print(f"wrote {result.rows} rows", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
