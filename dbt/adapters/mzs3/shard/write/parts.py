"""The parts of a batch, each of which becomes a file or more."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.mzs3.aws.failures import AwsFailure, describe
from dbt.adapters.mzs3.errors import ShardError
from dbt.adapters.mzs3.formats.format import PART_COLUMN, ExportedColumn
from dbt.adapters.mzs3.objects.concurrently import abort_all, map_concurrently
from dbt.adapters.mzs3.objects.prefix import Prefix
from dbt.adapters.mzs3.rows.columns import order_keys
from dbt.adapters.mzs3.rows.plan import in_parts
from dbt.adapters.mzs3.shard.executor.batch.task import BatchSpec
from dbt.adapters.mzs3.shard.executor.batch.write import BatchLayout, Encoding, TaggedColumn
from dbt.adapters.mzs3.shard.read.rows import ShardLocation
from dbt.adapters.mzs3.shard.rows.changes import DIFF, sorted_inside
from dbt.adapters.mzs3.shard.state.schema import Column
from dbt.adapters.mzs3.shard.state.state import BatchFile, ShardBatch
from dbt.adapters.mzs3.shard.write.clean_up import left_by_tasks
from dbt.adapters.mzs3.spark.job import ship_executor_code
from dbt.adapters.mzs3.spark.settings import default_parallelism
from dbt.adapters.mzs3.spark.status import observed
from dbt.adapters.mzs3.upload.parts import COMPUTED_TWICE, check_count, reported
from dbt.adapters.mzs3.upload.pending import PendingFile, complete
from dbt.adapters.mzs3.upload.spec import WriteSpec

# A task writes as much in seconds; smaller files cost readers more than they gain them.
ROWS_OF_A_PART = 100_000
BYTES_OF_A_PART = 32 << 20  # in files

BATCHES = "batches/"


def part_count(rows: int, batches: Sequence[ShardBatch], most: int) -> int:
    """From 1 to `most` parts for rows as large as those of the batches, none of them small."""
    return max(1, min(most, rows // _rows_of_a_part(batches)))


def _rows_of_a_part(batches: Sequence[ShardBatch]) -> int:
    size = sum(batch.bytes for batch in batches)
    fit = BYTES_OF_A_PART * sum(batch.rows for batch in batches) // max(1, size)
    return max(1, min(ROWS_OF_A_PART, fit)) if size else ROWS_OF_A_PART


def parts_of_changes(
    spark: SparkSession,
    changes: DataFrame,
    keys: Sequence[str],
    asked: int | None,
    batches: Sequence[ShardBatch],
) -> DataFrame:
    """Changes `t`, `d`, c0, c1, … to the batches in parts; sorted by the keys and all columns.

    Without a number of parts, Spark counts the changes first. In one part, a row that went is
    beside the one that came instead, if they differ in late columns; so what they share is
    compressed.
    """
    _, _, *columns = changes.columns
    if asked:
        parts = in_parts(changes, asked)
    else:
        parts = _in_counted_parts(changes, _rows_of_a_part(batches), default_parallelism(spark))
    return sorted_inside(parts, [*keys, *columns])


def _in_counted_parts(changes: DataFrame, rows_of_a_part: int, most: int) -> DataFrame:
    """As `in_parts`, in so many parts as there are times `rows_of_a_part` rows; `most` at most.

    The changes are counted and written by one query, and computed once, as both read the same
    shuffle (with spark.sql.exchange.reuse off, twice). Were they held instead while they are
    counted, Spark could lose some of them with an executor, and compute these anew beside those
    that are left.
    """
    keys = order_keys(changes.schema)
    # By all columns: a count alone would not need them, and its shuffle would be another one.
    shuffled = changes.repartition(most, *keys)
    count = f"least({most}, greatest(1, count(1) div {rows_of_a_part}))"
    parts = shuffled.agg(F.expr(count)).scalar()
    # The hash of `in_parts`, so that the files are the same where their number is.
    nulls = [F.expr(f"isnull({name})") for name in changes.columns]
    part = F.pmod(F.xxhash64(*keys, *nulls), parts).cast("int")
    spread = shuffled.select(part.alias(PART_COLUMN), "*")
    return spread.repartitionById(most, F.col(PART_COLUMN))


class Sizes(Protocol):
    """How large files, upload parts, and what a worker holds may be; in bytes."""

    @property
    def max_file_size(self) -> int:
        """Of each file."""

    @property
    def part_size(self) -> int:
        """Of each part of an upload."""

    @property
    def max_multi_part_bytes_in_memory(self) -> int:
        """Of what waits for S3 in one worker."""


def batch_spec(
    shard: ShardLocation, columns: Sequence[Column], encoding: Encoding, moment: int, sizes: Sizes
) -> WriteSpec:
    """For rows `t`, `d`, c0, c1, … of these columns; in a folder that no other batch has."""
    tagged = tuple(TaggedColumn(column.tag, column.kind) for column in columns)
    names = tuple(column.name for column in columns)
    folder = f"{BATCHES}{moment}-{uuid.uuid4().hex[:12]}/"
    return WriteSpec(
        connection=shard.connection,
        bucket=shard.location.bucket,
        prefix=shard.location.key(folder),
        columns=tuple(ExportedColumn(name) for name in ("t", "d", *names)),
        format=BatchSpec(BatchLayout(tagged, encoding), names),
        max_file_size=sizes.max_file_size,
        part_size=sizes.part_size,
        max_bytes_in_memory=sizes.max_multi_part_bytes_in_memory,
    )


@dataclass(frozen=True)
class Uploaded:
    """Open uploads of a batch's files, and how many rows they add and take away."""

    files: tuple[PendingFile, ...]
    additions: int
    retractions: int


def upload(prefix: Prefix, changes: DataFrame, spec: WriteSpec) -> Uploaded:
    """The files of changes `t`, `d`, c0, c1, … in parts; no file where there is no change.

    The first column is the part, as `in_parts` makes it. Where rows were computed anew while
    others were written, all is uploaded once more. Raises what Spark raises, and ShardError.
    """
    ship_executor_code()
    for _ in range(2):
        uploaded = _attempt(prefix, changes, spec)
        if uploaded is not None:
            return uploaded
        left_by_tasks(prefix, spec.prefix)  # what is still there costs storage, and no more
    raise ShardError(COMPUTED_TWICE)


def _attempt(prefix: Prefix, changes: DataFrame, spec: WriteSpec) -> Uploaded | None:
    """None if rows were computed anew; then the uploads that were reported are aborted."""
    counted = Observation()
    diff = F.col(DIFF)
    none = F.lit(0).cast("bigint")
    rows = changes.observe(
        counted,
        F.count(F.lit(1)).alias("rows"),
        F.sum(F.when(diff > 0, diff).otherwise(none)).alias("additions"),
        F.sum(F.when(diff < 0, -diff).otherwise(none)).alias("retractions"),
    )
    reports = reported(rows, spec)
    if reports.refuted is not None:
        abort_all(prefix, [(report["key"], report["upload_id"]) for report in reports.files])
        return None
    files = tuple(map(PendingFile.from_dict, reports.files))
    found = observed(counted)
    check_count(sum(file.rows for file in files), int(found["rows"]))
    return Uploaded(files, int(found["additions"] or 0), int(found["retractions"] or 0))


def make_visible(prefix: Prefix, files: Sequence[PendingFile]) -> tuple[BatchFile, ...]:
    """Every upload as an object; raises ShardError, with none left open, if one can't be."""

    def one(file: PendingFile) -> BatchFile:
        if complete(prefix, file) is None:
            raise ShardError(
                f"the upload of {prefix.uri_of(file.key)} is gone: something else than this run "
                "has aborted it, such as a lifecycle rule of the bucket; run again"
            )
        found = prefix.find(file.key)
        if found is None:
            raise ShardError(
                f"{prefix.uri_of(file.key)} is gone right after it was written: something else "
                "than this run has removed it; run again"
            )
        name = file.key.removeprefix(prefix.location.prefix)
        return BatchFile(name, file.bytes, found.etag, file.rows)

    try:
        return tuple(map_concurrently(files, one))
    except AwsFailure as exc:
        abort_all(prefix, [(file.key, file.upload_id) for file in files])
        doing = f"completing the files of a batch at {prefix.uri}"
        raise ShardError(describe(exc, doing, "s3:PutObject and s3:ListBucket")) from exc
