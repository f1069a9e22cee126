"""Fetching an epoch's objects into rows that nobody sees yet, and counting them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from dbt.adapters.mzs3.csv_source.executor.columns import PROBLEM_COLUMN
from dbt.adapters.mzs3.csv_source.executor.fetch import FetchSpec, fetch_objects, output_schema
from dbt.adapters.mzs3.csv_source.executor.ranges.survey import unclear_object
from dbt.adapters.mzs3.csv_source.executor.reading import too_many_rejects
from dbt.adapters.mzs3.csv_source.ledger.partitions import write_partition
from dbt.adapters.mzs3.csv_source.ranges import (
    RANGE_BYTES,
    LargeObject,
    large_objects,
    rows_in_ranges,
)
from dbt.adapters.mzs3.csv_source.relations import EPOCH_COLUMN, SourceRelations
from dbt.adapters.mzs3.errors import SourceError, SparkJobError
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, executor_message
from dbt.adapters.mzs3.spark.settings import FEW, default_parallelism, held
from dbt.adapters.mzs3.spark.sql import quote_literal
from dbt.adapters.mzs3.text import counted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


BYTES_PER_TASK = 128 * 1024 * 1024


def fetch_rows(
    spark: SparkSession,
    spec: FetchSpec,
    relations: SourceRelations,
    epoch: str,
    plan: DataFrame,
    count: int,
    size: int,
    require_lock: Callable[[], None],
) -> int:
    """The rows of every object of the plan are in the epoch's partition, each once; how many.

    An object that would keep one core busy for long is read by several tasks, in ranges; unless
    that can't be done, of which a task that reads all of it tells. `count` and `size` are of the
    objects, and their bytes, that were to be planned. What is in the plan may differ, where Spark
    has listed again since: they say how to share it among tasks, and never what is fetched.
    `require_lock` raises if the lock is no longer held: then there is no such partition.

    Raises SourceError, without such a partition, if Spark does not report how many rows it wrote.
    """
    uri_base = f"s3://{spec.bucket}/"
    objects = plan.selectExpr(
        f"substring(object, {len(uri_base) + 1}) AS key", "etag", "size", "last_modified"
    )
    large = _large(spark, spec, objects, size)
    partition = {EPOCH_COLUMN: epoch}
    again = False
    while True:
        try:
            with _rows(spark, spec, objects, count, size, large) as rows:
                return write_partition(
                    spark, rows, relations.rows, partition, require_lock=require_lock
                )
        except SparkJobError as exc:
            raise SourceError(f"{spec.source}: {exc}; nothing of this run is committed") from exc
        except SPARK_FAILURES as exc:
            key = unclear_object(executor_message(exc))
            if key is None:
                raise
            # After a second one, none is cut: each attempt fetches everything anew.
            large = [] if again else [one for one in large if one.key != key]
            again = True


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
    if not large:
        yield _whole(spark, spec, objects, count, size)
        return
    count -= len(large)
    size -= sum(one.size for one in large)
    with rows_in_ranges(spark, spec, large, RANGE_BYTES) as rows:
        others = objects.where(~F.col("key").isin([one.key for one in large]))
        yield rows.unionAll(_whole(spark, spec, others, count, size))


def _whole(
    spark: SparkSession, spec: FetchSpec, objects: DataFrame, count: int, size: int
) -> DataFrame:
    """The objects' rows, each read by one task; the largest first, so that none comes last.

    One task for each object, unless that makes more small ones than the cluster works on.
    """
    parallelism = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    tasks = max(1, min(count, max(parallelism, -(-size // BYTES_PER_TASK))))
    # A plan is one file.
    shared = objects.coalesce(1)
    if tasks > 1:
        by_size = Window.orderBy(F.col("size").desc(), "key")
        position = (F.row_number().over(by_size) - 1).cast("int")
        numbered = shared.withColumn("position", F.pmod(position, F.lit(tasks)))
        shared = numbered.repartitionById(tasks, F.col("position")).drop("position")
    return shared.mapInArrow(fetch_objects(spec), output_schema(spec))


@dataclass(frozen=True)
class Fetched:
    """Objects fetched, their rows and rejected records, and objects skipped."""

    objects: int = 0
    rows: int = 0
    rejected: int = 0
    skipped: int = 0


_COUNTS = (
    "count(*) AS written",
    f"count_if({PROBLEM_COLUMN} IS NULL) AS `rows`",
    f"count_if({PROBLEM_COLUMN}.raw IS NOT NULL) AS rejects",
    "max(_mz_record) AS last",
)
# Grouping with a text takes sorting: where nothing is skipped there is none to look for.
_REASON = (
    f"max(CASE WHEN {PROBLEM_COLUMN} IS NOT NULL AND {PROBLEM_COLUMN}.raw IS NULL "
    f"THEN {PROBLEM_COLUMN}.error END) AS error"
)
_WRONG = """CASE WHEN written != coalesce(last, 1) OR etag IS NULL
    THEN struct(object, written, coalesce(last, 1) AS should) END"""
_TOTALS = (
    "count_if(error IS NULL) AS objects",
    "coalesce(sum(`rows`), 0) AS `rows`",
    "coalesce(sum(rejects), 0) AS rejected",
    "count_if(error IS NOT NULL) AS skipped",
    f"min({_WRONG}) AS wrong",
    "coalesce(sum(written), 0) AS written",
)


@contextmanager
def counted_rows(
    spark: SparkSession,
    spec: FetchSpec,
    relations: SourceRelations,
    epoch: str,
    plan: DataFrame,
    count: int,
    written_rows: int,
) -> Iterator[tuple[DataFrame, Fetched]]:
    """The plan with `rows`, `rejects` and the `error` of each object, counted once; and totals.

    `count` objects were to be planned, which says how best to hold what is counted;
    `written_rows` were written.

    Raises SourceError if there are not as many rows as were written; if so many, yet records of an
    object are there twice, or missing before its last one there: its records, rejected ones too,
    are numbered from 1, so the highest number is their count; an object that was skipped has one
    row, without a number. Raises it for more rejects than the source allows.
    """
    written = spark.table(relations.rows).where(f"{EPOCH_COLUMN} = {quote_literal(epoch)}")
    reason = _REASON if spec.reading.skips else "CAST(NULL AS string) AS error"
    columns = (F.expr(text) for text in (*_COUNTS, reason))
    counts = written.groupBy(F.expr("_mz_object AS object")).agg(*columns)
    with held(spark, plan.join(counts, "object", "full"), few=count <= FEW) as per_object:
        totals = per_object.selectExpr(*_TOTALS).first().asDict()
        wrong = totals.pop("wrong")
        if (found := totals.pop("written")) != written_rows:
            raise SourceError(
                f"{spec.source}: the tasks of this run wrote {counted(written_rows, 'row')}, and "
                f"{found} are there; nothing of it is committed. Something else has changed the "
                "files of the source's tables: find out what, and run again"
            )
        # Of as many rows as were written: what else changes files seldom keeps their number.
        if wrong is not None:
            raise SourceError(
                f"{spec.source}: object {wrong['object']} has {wrong['written']} rows where it "
                f"should have {wrong['should']}; nothing of this run is committed. This is a "
                "defect, please report it"
            )
        _require_few(spec, totals["rejected"], written)
        yield per_object.fillna(0, ["rows", "rejects"]), Fetched(**totals)


def _require_few(spec: FetchSpec, rejected: int, written: DataFrame) -> None:
    """Raise SourceError for more rejects than the limit; it tells of the first."""
    limit = spec.reading.max_rejects
    if limit is None or rejected <= limit:
        return
    rejects = written.where(f"{PROBLEM_COLUMN}.raw IS NOT NULL")
    first = rejects.orderBy("_mz_object", "_mz_record").first()
    problem = first[PROBLEM_COLUMN]
    where = f"object {first['_mz_object']}, line {problem['line']}, byte {problem['byte']}"
    raise SourceError(too_many_rejects(spec.source, limit, f"{where}: {problem['error']}"))
