"""Fetching an epoch's objects into rows that nobody sees yet, and counting them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from dbt.adapters.mzs3.csv_source.executor.columns import PROBLEM_COLUMN
from dbt.adapters.mzs3.csv_source.executor.fetch import FetchSpec, fetch_objects, output_schema
from dbt.adapters.mzs3.csv_source.executor.ranges.unclear import unclear_object
from dbt.adapters.mzs3.csv_source.executor.reading import too_many_rejects
from dbt.adapters.mzs3.csv_source.insert import insert_partition
from dbt.adapters.mzs3.csv_source.ranges import (
    RANGE_BYTES,
    LargeObject,
    large_objects,
    rows_in_ranges,
)
from dbt.adapters.mzs3.csv_source.relations import EPOCH_COLUMN, SourceRelations
from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, executor_message
from dbt.adapters.mzs3.spark.parallelism import default_parallelism

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


BYTES_PER_TASK = 128 * 1024 * 1024


def fetch_rows(
    spark: SparkSession,
    spec: FetchSpec,
    relations: SourceRelations,
    epoch: str,
    plan: DataFrame,
) -> None:
    """The rows of every object of the plan are in the epoch's partition, each once.

    An object that would keep one core busy for long is read by several tasks, in ranges; unless
    that can't be done, of which a task that reads all of it tells.
    """
    uri_base = f"s3://{spec.bucket}/"
    objects = plan.select(
        F.substring(F.col("object"), F.lit(len(uri_base) + 1), F.length("object")).alias("key"),
        "etag",
        "size",
        "last_modified",
    )
    # Of the plan as it is written: the listing that it came of may have been made again since.
    count, size = objects.agg(F.count(F.lit(1)), F.coalesce(F.sum("size"), F.lit(0))).first()
    large = _large(spark, spec, objects, size)
    partition = {EPOCH_COLUMN: epoch}
    again = False
    while True:
        try:
            with _rows(spark, spec, objects, count, size, large) as rows:
                insert_partition(spark, rows, relations.rows, partition, overwrite=again)
        except SPARK_FAILURES as exc:
            key = unclear_object(executor_message(exc))
            if key is None:
                raise
            # After a second one, none is cut: each attempt fetches everything anew.
            large = [] if again else [one for one in large if one.key != key]
            again = True
        else:
            return


def _large(
    spark: SparkSession, spec: FetchSpec, objects: DataFrame, size: int
) -> list[LargeObject]:
    if size < 2 * RANGE_BYTES:
        return []
    return large_objects(spec, objects, size, default_parallelism(spark), RANGE_BYTES)


@contextmanager
def _rows(
    spark: SparkSession,
    spec: FetchSpec,
    objects: DataFrame,
    count: int,
    size: int,
    large: list[LargeObject],
) -> Iterator[DataFrame]:
    """The rows of so many objects: the large ones' in ranges, the others' each by one task."""
    count -= len(large)
    size -= sum(one.size for one in large)
    if not large:
        yield _whole(spark, spec, objects, count, size)
        return
    with rows_in_ranges(spark, spec, large, RANGE_BYTES) as rows:
        if count:
            others = objects.where(~F.col("key").isin([one.key for one in large]))
            rows = rows.unionAll(_whole(spark, spec, others, count, size))
        yield rows


def _whole(
    spark: SparkSession, spec: FetchSpec, objects: DataFrame, count: int, size: int
) -> DataFrame:
    """The objects' rows, each read by one task; the largest first, so that none comes last.

    One task for each object, unless that makes more small ones than the cluster works on.
    """
    parallelism = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    # Never none: where Spark listed again, all may have been gone, and the plan is empty.
    tasks = max(1, min(count, max(parallelism, -(-size // BYTES_PER_TASK))))
    by_size = Window.orderBy(F.col("size").desc(), "key")
    position = (F.row_number().over(by_size) - 1).cast("int")
    return (
        objects.withColumn("position", F.pmod(position, F.lit(tasks)))
        .repartitionById(tasks, F.col("position"))
        .drop("position")
        .mapInArrow(fetch_objects(spec), output_schema(spec))
    )


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
