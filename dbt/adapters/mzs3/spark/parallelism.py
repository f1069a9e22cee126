"""How many tasks the cluster runs at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def default_parallelism(spark: SparkSession) -> int:
    """The cluster's default parallelism, asked in a way that works over Spark Connect too."""
    # The one row of a range is always in its last partition.
    [row] = spark.range(1).select(F.spark_partition_id()).collect()
    return int(row[0]) + 1
