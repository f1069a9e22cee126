"""Fetches an epoch's objects into rows that are not visible yet, and counts the rows.

All objects are compared with the header of the first one. If that object does not belong to the
source, such as a README, all others seem wrong. So errors name it, and a first run that would skip
nearly all objects does not pin its header.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from dbt.adapters.mzs3.errors import SourceError, SparkJobError
from dbt.adapters.mzs3.formats.read.columns import PROBLEM_COLUMN
from dbt.adapters.mzs3.formats.read.format import JSONL, too_many_rejects
from dbt.adapters.mzs3.formats.read.object_error import UNCLEAR
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.ledger.relations import EPOCH_COLUMN
from dbt.adapters.mzs3.ledger.rows_table import RowsTable, rows_table
from dbt.adapters.mzs3.source.executor.fetch import FetchSpec, fetch_objects, format_of
from dbt.adapters.mzs3.source.executor.ranges import LargeObject
from dbt.adapters.mzs3.source.large_objects import large_objects, rows_in_ranges
from dbt.adapters.mzs3.source.report import IngestReport, objects_hint, reset_hint
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, executor_error
from dbt.adapters.mzs3.spark.frames import (
    FEW,
    default_parallelism,
    first_row,
    reusable_rows,
    totals,
)
from dbt.adapters.mzs3.spark.sql import quote_literal
from dbt.adapters.mzs3.text import count_noun

BYTES_PER_TASK = 128 * 1024 * 1024
# A task, which writes a file, pays off for this many bytes, or this many objects.
LEAST_BYTES = 4 * 1024 * 1024
LEAST_OBJECTS = 2048
# Or for this many objects, if a core would be idle otherwise.
LEAST_OBJECTS_OF_A_CORE = 256

FIRST_OBJECTS = 3
"""The fewest objects of a first run: if only two differ, nobody can tell which one is wrong."""

_COUNTS = (
    "count(*) AS written",
    f"count_if({PROBLEM_COLUMN} IS NULL) AS `rows`",
    f"count_if({PROBLEM_COLUMN}.raw IS NOT NULL) AS rejects",
    "max(_mz_record) AS last",
)
# Used only if objects may be skipped, as Spark has to sort to aggregate texts.
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
    "count_if(error IS NULL AND last IS NOT NULL) AS read",
    f"min({_WRONG}) AS wrong",
    "coalesce(sum(written), 0) AS written",
)


def task_count(objects: int, size: int, parallelism: int, cores: int) -> int:
    """How many tasks read these objects, of `size` bytes in all; each object is read by one task.

    One task per object, but no more small tasks than `parallelism`, and none with hardly anything
    to do. How little that is depends on the number of `cores`.
    """
    of_cores = min(cores, -(-objects // LEAST_OBJECTS_OF_A_CORE))
    worthwhile = -(-size // LEAST_BYTES) + max(of_cores, -(-objects // LEAST_OBJECTS))
    return max(1, min(objects, max(min(parallelism, worthwhile), -(-size // BYTES_PER_TASK))))


@dataclass(frozen=True)
class EpochRows:
    """The rows of the objects that an epoch has planned; invisible until it is committed.

    `objects` and `size`, the number of planned objects and their bytes, only serve to share the
    work among tasks: Spark may have listed again since.
    """

    ledger: Ledger
    spec: FetchSpec
    epoch: str
    plan: DataFrame
    objects: int
    size: int

    @property
    def are_few(self) -> bool:
        """Whether the objects are few enough for the driver to hold a row for each."""
        return self.objects <= FEW

    def write(self) -> int:
        """Fetches every object of the plan once, into the epoch's rows. Returns the number of
        rows.

        Large objects are read in ranges by several tasks, if possible. Raises SourceError if the
        lock is lost, and if Spark does not report how many rows it wrote.
        """
        start = len(self.spec.location.uri_of("")) + 1
        plan = self.plan.selectExpr(
            f"substring(object, {start}) AS key", "etag", "size", "last_modified"
        )
        large = large_objects(self.spec, plan, self.size)
        table = rows_table(self.ledger.spark, self.ledger.relations)
        again = False
        while True:
            try:
                with self._fetched(table, plan, large) as rows:
                    return table.write(rows, self.epoch, require_lock=self.ledger.require_lock)
            except SparkJobError as exc:
                raise SourceError(
                    f"{self.spec.source}: {exc}; nothing of this run is committed"
                ) from exc
            except SPARK_FAILURES as exc:
                error = executor_error(exc)
                if error is None or error.cause != UNCLEAR:
                    raise
                # After a second such error, cuts no object: each attempt fetches all anew.
                uri_of, unclear = self.spec.location.uri_of, error.s3_object
                large = [each for each in large if uri_of(each.key) != unclear]
                large = [] if again else large
                again = True

    @contextmanager
    def _fetched(
        self, table: RowsTable, plan: DataFrame, large: list[LargeObject]
    ) -> Iterator[DataFrame]:
        """The objects' rows: large objects are read in ranges, each other object by one task."""
        if not large:
            yield self._whole(table, plan, self.objects, self.size)
            return
        objects, size = self.objects - len(large), self.size - sum(each.size for each in large)
        with rows_in_ranges(plan.sparkSession, self.spec, large, table) as rows:
            others = plan.where(~F.col("key").isin([each.key for each in large]))
            yield rows.unionAll(self._whole(table, others, objects, size))

    def _whole(self, table: RowsTable, plan: DataFrame, objects: int, size: int) -> DataFrame:
        """The objects' rows, each object read by one task; large objects come first."""
        spark = plan.sparkSession
        parallelism = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
        # For few objects, the cores make no difference, and a Spark server needs a query for them.
        cores = default_parallelism(spark) if objects > LEAST_OBJECTS_OF_A_CORE else 1
        tasks = task_count(objects, size, parallelism, cores)
        # One task is enough to read the plan, which is one file.
        shared = plan.coalesce(1)
        if tasks > 1:
            by_size = Window.orderBy(F.col("size").desc(), "key")
            position = (F.row_number().over(by_size) - 1).cast("int")
            numbered = shared.withColumn("position", F.pmod(position, F.lit(tasks)))
            shared = numbered.repartitionById(tasks, F.col("position")).drop("position")
        return table.rows_from(shared, self.spec, fetch_objects, format_of(self.spec))

    @contextmanager
    def counted(self, written_rows: int) -> Iterator[tuple[DataFrame, IngestReport]]:
        """The plan with `rows`, `rejects` and the `error` of each object, and the report.

        Raises SourceError if there are not as many rows as were written; if an object's records
        are doubled, or missing before its last one; or if there are too many rejects. Records,
        rejected ones too, are numbered from 1, so the highest number is their count; an object
        that was skipped has one row without a number.
        """
        table = self.ledger.spark.table(self.ledger.relations.rows)
        stored = table.where(f"{EPOCH_COLUMN} = {quote_literal(self.epoch)}")
        reason = _REASON if self.spec.reading.skips else "CAST(NULL AS string) AS error"
        columns = (F.expr(text) for text in (*_COUNTS, reason))
        counts = stored.groupBy(F.expr("_mz_object AS object")).agg(*columns)
        joined = self.plan.join(counts, "object", "full")
        with reusable_rows(joined, few=self.are_few) as (per_object, on_driver):
            sums = totals(per_object, _TOTALS, few=on_driver)
            wrong = sums.pop("wrong")
            if (present := sums.pop("written")) != written_rows:
                raise SourceError(
                    f"{self.spec.source}: the tasks of this run wrote "
                    f"{count_noun(written_rows, 'row')}, and {present} are there; nothing of it "
                    "is committed. Something else has changed the files of the source's tables: "
                    "find out what, and run again"
                )
            # A defect of ours: other changes of the files would hardly keep the number of rows.
            if wrong is not None:
                raise SourceError(
                    f"{self.spec.source}: object {wrong['object']} has {wrong['written']} rows "
                    f"where it should have {wrong['should']}; nothing of this run is committed. "
                    "This is a defect, please report it",
                    wrong["object"],
                )
            limit = self.spec.reading.max_rejects
            if limit is not None and sums["rejected"] > limit:
                name, first = _first_reject(stored)
                raise SourceError(too_many_rejects(self.spec.source, limit, first), name)
            if (why := refusal(self.spec, **sums)) is not None:
                of_first = _first_skipped if sums["skipped"] else _first_reject
                raise SourceError(f"{why}. The first: {of_first(stored)[1]}")
            del sums["read"]
            report = IngestReport(self.spec.source, **sums)
            yield per_object.fillna(0, ["rows", "rejects"]), report


def _first_skipped(stored: DataFrame) -> tuple[str, str]:
    """The first object that was skipped, and what is wrong with it."""
    skipped = stored.where(f"{PROBLEM_COLUMN} IS NOT NULL AND {PROBLEM_COLUMN}.raw IS NULL")
    first = first_row(skipped.orderBy("_mz_object"))
    name = first["_mz_object"]
    return name, f"object {name}, {first[PROBLEM_COLUMN]['error']}"


def _first_reject(stored: DataFrame) -> tuple[str, str]:
    """The object of the first record that was rejected, and what is wrong with it."""
    rejects = stored.where(f"{PROBLEM_COLUMN}.raw IS NOT NULL")
    first = first_row(rejects.orderBy("_mz_object", "_mz_record"))
    problem, name = first[PROBLEM_COLUMN], first["_mz_object"]
    where = f"object {name}, line {problem['line']}, byte {problem['byte']}"
    return name, f"{where}: {problem['error']}"


def header_hint(spec: FetchSpec, wrong: str | None = None) -> str:
    """The end of an error about the object `wrong`: the origin of the header that it was compared
    with, and how to get another header."""
    where = spec.header_from
    if not where.is_found:
        return ""  # it was declared
    if where.is_first and where.origin == wrong and wrong is not None:
        # JSON lines: a record was compared with the first record of its own object.
        return ". The header that it was compared with is that of the object's first record"
    if where.is_first and where.origin is not None:
        hint = objects_hint("skip_s3_objects", spec.source, [where.origin])
        return (
            f". The header that it was compared with is that of {where.origin}, and is not pinned "
            f"before something is committed: if that object is wrong, leave it out with: {hint}"
        )
    origin = f" is that of {where.origin}" if where.origin else " was found in an earlier object"
    return (
        f". The pinned header{origin}: to pin another one, start with: {reset_hint(spec.source)}"
    )


def least_objects(spec: FetchSpec) -> int:
    """The fewest objects that a run takes, so that `refusal` can judge the header."""
    where = spec.header_from
    return FIRST_OBJECTS if where.is_first and where.is_found and spec.reading.skips else 1


def refusal(
    spec: FetchSpec, *, objects: int, read: int, skipped: int, rows: int, rejected: int
) -> str | None:
    """Why a first run with these counts must not be committed; None if it may be.

    It must not be if one object's header makes all others skipped, or if all records are rejected.
    `read` is the number of those `objects` that have any record.
    """
    where, source = spec.header_from, spec.source
    if not where.is_first:
        return None
    if skipped and (read <= 1 if where.is_found else objects == 0):
        text = (
            f"{source}: this first run would skip {count_noun(skipped, 'object')}, and take "
            f"{read or 'none'} with any record; nothing of it is committed, and nothing pinned. "
        )
        if where.origin is None:
            return text + (
                "No object has the header that is declared. Correct `header`, or the objects, "
                "then run again"
            )
        hint = objects_hint("skip_s3_objects", source, [where.origin])
        return text + (
            f"The header that they were compared with is that of {where.origin}. If that object "
            f"is wrong, leave it out with: {hint}. Or list the names as `header: [name, ...]`, "
            "or narrow `pattern`, then run again"
        )
    # JSON lines: all records are compared with the first one.
    by_one = where.is_found and spec.format == JSONL and rows == 1 and rejected > 1
    if rejected and (rows == 0 or by_one):
        return (
            f"{source}: this first run would reject {count_noun(rejected, 'record')}, and take "
            f"{rows or 'none'}; nothing of it is committed, and nothing pinned"
        )
    return None
