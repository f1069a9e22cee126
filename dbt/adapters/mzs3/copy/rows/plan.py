"""Where each row goes, and in which order: a function of the row alone."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.mzs3.copy.executor.write import PART_COLUMN
from dbt.adapters.mzs3.copy.rows.columns import normalised, order_keys

_HASH = "_mz_hash"


def in_parts(df: DataFrame, parts: int) -> DataFrame:
    """The rows hashed into `parts` partitions, each totally ordered, duplicates adjacent.

    The part is the first column, the data columns follow. Neither the part nor the order depends
    on the cluster, on a task's attempt, or on how Spark cuts its input: both are computed from
    the row. Sorting by the hash first keeps the sort on integers; the columns break its ties.
    """
    rows = normalised(df)
    names = rows.columns
    hashed = rows.select(F.xxhash64(*names).alias(_HASH), *names)
    part = F.pmod(F.col(_HASH), F.lit(parts)).cast("int").alias(PART_COLUMN)
    return (
        hashed.select(part, _HASH, *names)
        .repartitionById(parts, F.col(PART_COLUMN))
        .sortWithinPartitions(PART_COLUMN, _HASH, *order_keys(rows.schema))
        .select(PART_COLUMN, *names)
    )


def default_parts(spark: SparkSession) -> int:
    """The cluster's default parallelism, asked in a way that works over Spark Connect too."""
    row = spark.range(1 << 20).select(F.spark_partition_id().alias("id")).agg(F.max("id")).first()
    return int(row[0]) + 1 if row is not None else 1


def is_ordered(spark: SparkSession, query: str) -> bool:
    """Whether the query sorts its whole result: an ORDER BY at its top, without a LIMIT."""
    plan = spark.sql(f"EXPLAIN EXTENDED {query}").first()
    if plan is None:
        return False
    parsed = str(plan[0]).split("== Analyzed Logical Plan ==")[0].splitlines()[1:]
    top = [line.lstrip("'") for line in parsed if not line.startswith((" ", ":", "+"))]
    if top and top[0].startswith(("CTE", "UnresolvedWith", "WithCTE")):
        body = [line[3:].lstrip("'") for line in parsed if line.startswith("+- ")]
        top = body or top
    return bool(top) and top[0].startswith("Sort ") and top[0].endswith("true")
