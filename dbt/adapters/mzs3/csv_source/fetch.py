"""Fetching an epoch's objects into rows that nobody sees yet, and counting them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dbt.adapters.mzs3.csv_source.executor.fetch import FetchSpec, fetch_objects, output_schema
from dbt.adapters.mzs3.csv_source.insert import insert_partition
from dbt.adapters.mzs3.csv_source.relations import EPOCH_COLUMN, SourceRelations
from dbt.adapters.mzs3.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from dbt.adapters.mzs3.csv_source.listing import Batch

BYTES_PER_TASK = 128 * 1024 * 1024


def fetch_rows(
    spark: SparkSession,
    spec: FetchSpec,
    relations: SourceRelations,
    epoch: str,
    plan: DataFrame,
    batch: Batch,
) -> None:
    """The rows of every object of the plan are in the epoch's partition, each once."""
    uri_base = f"s3://{spec.bucket}/"
    objects = plan.select(
        F.substring(F.col("object"), F.lit(len(uri_base) + 1), F.length("object")).alias("key"),
        "etag",
        "size",
        "last_modified",
    )
    tasks = _tasks(batch, int(spark.conf.get("spark.sql.shuffle.partitions")))
    rows = objects.repartition(tasks).mapInArrow(fetch_objects(spec), output_schema(spec))
    insert_partition(spark, rows, relations.rows, {EPOCH_COLUMN: epoch})


def _tasks(batch: Batch, parallelism: int) -> int:
    """One task for each object, unless that makes more small files than the cluster works on."""
    return min(batch.objects, max(parallelism, -(-batch.bytes // BYTES_PER_TASK)))


@contextmanager
def counted_rows(
    spark: SparkSession, source: str, relations: SourceRelations, epoch: str, plan: DataFrame
) -> Iterator[DataFrame]:
    """The plan with the rows each object has in the epoch's partition, counted once.

    Raises SourceError if records of an object are missing or there twice: its records are
    numbered from 1, so the highest number is their count.
    """
    counts = (
        spark.table(relations.rows)
        .where(F.col(EPOCH_COLUMN) == epoch)
        .groupBy(F.col("_mz_object").alias("object"))
        .agg(F.count(F.lit(1)).alias("rows"), F.max("_mz_record").alias("last"))
    )
    counted = plan.join(counts, "object", "full").persist()
    try:
        wrong = (F.col("rows") != F.col("last")) | F.col("etag").isNull()
        first = counted.where(wrong).orderBy("object").first()
        if first is not None:
            raise SourceError(
                f"{source}: object {first['object']} has {first['rows']} rows where it should "
                f"have {first['last']}; nothing of this run is committed. This is a defect, "
                "please report it"
            )
        yield counted.withColumn("rows", F.coalesce("rows", F.lit(0)))
    finally:
        counted.unpersist()
