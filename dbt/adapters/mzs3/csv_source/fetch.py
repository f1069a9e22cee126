"""Fetching an epoch's objects into rows that nobody sees yet, and counting them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dbt.adapters.mzs3.csv_source.executor.columns import PROBLEM_COLUMN
from dbt.adapters.mzs3.csv_source.executor.fetch import FetchSpec, fetch_objects, output_schema
from dbt.adapters.mzs3.csv_source.executor.reading import too_many_rejects
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


def _require_few(source: str, counted: DataFrame, rejected: DataFrame, limit: int) -> None:
    """Raise SourceError for more rejects than the limit; it tells of the first."""
    total = counted.agg(F.sum("rejects")).first()[0] or 0
    if total <= limit:
        return
    first = rejected.orderBy("_mz_object", "_mz_record").first()
    problem = first[PROBLEM_COLUMN]
    where = f"object {first['_mz_object']}, line {problem['line']}, byte {problem['byte']}"
    raise SourceError(too_many_rejects(source, limit, f"{where}: {problem['error']}"))


@contextmanager
def counted_rows(
    spark: SparkSession,
    source: str,
    relations: SourceRelations,
    epoch: str,
    plan: DataFrame,
    max_rejects: int | None,
) -> Iterator[DataFrame]:
    """The plan with `rows`, `rejects` and the `error` of each object, counted once.

    Raises SourceError if records of an object are missing or there twice: its records, rejected
    ones too, are numbered from 1, so the highest number is their count; an object that was
    skipped has one row, without a number. Raises it also for more rejects than `max_rejects`.
    """
    written = spark.table(relations.rows).where(F.col(EPOCH_COLUMN) == epoch)
    is_good = F.col(PROBLEM_COLUMN).isNull()
    is_reject = F.col(f"{PROBLEM_COLUMN}.raw").isNotNull()
    counts = written.groupBy(F.col("_mz_object").alias("object")).agg(
        F.count(F.lit(1)).alias("all"),
        F.count_if(is_good).alias("rows"),
        F.count_if(is_reject).alias("rejects"),
        F.max("_mz_record").alias("last"),
        F.max(F.when(~is_good & ~is_reject, F.col(f"{PROBLEM_COLUMN}.error"))).alias("error"),
    )
    counted = plan.join(counts, "object", "full").persist()
    try:
        should = F.coalesce("last", F.lit(1))
        wrong = (F.col("all") != should) | F.col("etag").isNull()
        first = counted.where(wrong).withColumn("should", should).orderBy("object").first()
        if first is not None:
            raise SourceError(
                f"{source}: object {first['object']} has {first['all']} rows where it should "
                f"have {first['should']}; nothing of this run is committed. This is a defect, "
                "please report it"
            )
        if max_rejects is not None:
            _require_few(source, counted, written.where(is_reject), max_rejects)
        yield counted.fillna(0, ["rows", "rejects"])
    finally:
        counted.unpersist()
