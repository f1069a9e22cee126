"""The rows of a shard, as of a time, in Spark."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.mzs3.aws.client import s3_client
from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.aws.location import S3Location
from dbt.adapters.mzs3.errors import ShardError
from dbt.adapters.mzs3.shard.executor.batch.read import COMPARED, ReadColumn
from dbt.adapters.mzs3.shard.executor.batch.task import FILES_DDL, ReadSpec, read_files
from dbt.adapters.mzs3.shard.rows.changes import consolidated, repeated
from dbt.adapters.mzs3.shard.rows.wire import from_wire, wire_spark_type
from dbt.adapters.mzs3.shard.state.schema import Column, Schema
from dbt.adapters.mzs3.shard.state.state import ShardBatch, ShardState
from dbt.adapters.mzs3.shard.state.store import StateStore
from dbt.adapters.mzs3.spark.job import ship_executor_code
from dbt.adapters.mzs3.spark.status import observed

# Spark's driver has work with each task, and a shard may have tens of thousands of files.
MOST_TASKS = 500


@dataclass(frozen=True)
class ShardLocation:
    """Where a shard's files are, and how they are reached."""

    connection: AwsConnection
    location: S3Location


@dataclass
class Comparison:
    """That both encodings of what is read are compared; `values` counts them once it was read."""

    _observed: Observation | None = field(default=None, init=False)

    def counted(self, changes: DataFrame) -> DataFrame:
        """The changes without the column COMPARED, which is summed up on the way."""
        self._observed = Observation()
        values = F.sum(COMPARED).alias(COMPARED)
        return changes.observe(self._observed, values).drop(COMPARED)

    @property
    def values(self) -> int:
        """To be asked after the rows were read."""
        return 0 if self._observed is None else int(observed(self._observed)[COMPARED] or 0)


def rows_at(
    spark: SparkSession,
    shard: ShardLocation,
    state: ShardState,
    moment: int,
    columns: Sequence[Column],
    *,
    comparison: Comparison | None = None,
) -> DataFrame:
    """The shard's rows as of `moment`, of these columns, under their names and in their types.

    Nothing has been read yet. With a `comparison`, both encodings are decoded and compared. Raises
    ShardError for a time that can't be read.
    """
    batches = state.batches_until(moment)
    changes = changes_in(spark, shard, batches, columns, comparison=comparison)
    names = [f"c{place}" for place in range(len(columns))]
    rows = consolidated(changes, names) if _are_mixed(batches) else changes
    return from_wire(repeated(rows.select(*names, "d")), columns, names)


def changes_in(
    spark: SparkSession,
    shard: ShardLocation,
    batches: Sequence[ShardBatch],
    columns: Sequence[Column],
    *,
    comparison: Comparison | None = None,
) -> DataFrame:
    """`t`, `d` and the columns as c0, c1, … in wire form, of every change in the batches."""
    names = [f"c{place}" for place in range(len(columns))]
    return _read(spark, shard, batches, columns, names, comparison=comparison)


def keys_in(
    spark: SparkSession,
    shard: ShardLocation,
    batches: Sequence[ShardBatch],
    columns: Sequence[Column],
    names: Sequence[str],
    every: int,
) -> DataFrame:
    """The columns, under these names, of every so-manieth change in each file of the batches."""
    return _read(spark, shard, batches, columns, names, every=every).select(*names)


def _read(
    spark: SparkSession,
    shard: ShardLocation,
    batches: Sequence[ShardBatch],
    columns: Sequence[Column],
    names: Sequence[str],
    *,
    comparison: Comparison | None = None,
    every: int = 1,
) -> DataFrame:
    pairs = zip(names, columns, strict=True)
    fields = [T.StructField(name, wire_spark_type(column.kind)) for name, column in pairs]
    schema = T.StructType(
        [T.StructField("t", T.LongType()), T.StructField("d", T.LongType()), *fields]
    )
    files = [file for batch in batches for file in batch.files]
    if not files:
        return spark.createDataFrame([], schema)
    ship_executor_code()
    wanted = tuple(
        ReadColumn(column.tag, column.kind, column.default, column.name) for column in columns
    )
    spec = ReadSpec(shard.connection, shard.location.bucket, wanted, comparison is not None, every)
    tasks = spread([file.size for file in files], MOST_TASKS)
    listed = [
        (task, shard.location.key(file.name), file.size, file.etag)
        for task, file in zip(tasks, files, strict=True)
    ]
    apart = spark.createDataFrame(listed, FILES_DDL).repartitionById(max(tasks) + 1, F.col("task"))
    if comparison is None:
        return apart.mapInArrow(read_files(spec), schema)
    with_count = T.StructType([*schema.fields, T.StructField(COMPARED, T.LongType())])
    return comparison.counted(apart.mapInArrow(read_files(spec), with_count))


def spread(sizes: Sequence[int], most: int) -> list[int]:
    """Which of at most `most` tasks reads each file, so that each has about as many bytes.

    Each file has a task of its own if there are no more of them.
    """
    heap = [(0, task) for task in range(min(most, len(sizes)))]
    tasks = [0] * len(sizes)
    for place in sorted(range(len(sizes)), key=lambda place: -sizes[place]):
        held, task = heap[0]
        tasks[place] = task
        # One byte more: files are never free, so that empty ones are spread too.
        heapq.heapreplace(heap, (held + sizes[place] + 1, task))
    return tasks


def _are_mixed(batches: Sequence[ShardBatch]) -> bool:
    """Whether something that one change added may be taken away by another."""
    return any(batch.retractions for batch in batches)


def read_shard(
    spark: SparkSession,
    connection: AwsConnection,
    location: S3Location,
    *,
    as_of: int | None = None,
    names: Sequence[str] | None = None,
    comparison: Comparison | None = None,
) -> DataFrame:
    """A shard's rows as of a time in ms since the epoch, or as of its last one.

    `names` are the columns that are fetched, of those that the shard had at that time; None is
    all of them. With a `comparison`, both encodings are decoded and compared. Raises ShardError.
    """
    state = StateStore(s3_client(connection), location).existing().state
    moment = state.upper - 1 if as_of is None else as_of
    state.batches_until(moment)  # a time that can't be read is why it may lack a column
    columns = _columns(state.schema_at(moment), names)
    shard = ShardLocation(connection, location)
    return rows_at(spark, shard, state, moment, columns, comparison=comparison)


def _columns(schema: Schema, names: Sequence[str] | None) -> tuple[Column, ...]:
    if names is None:
        return schema.columns
    found: Mapping[str, Column | None] = {name: schema.find(name) for name in names}
    missing = [name for name, column in found.items() if column is None]
    if missing:
        raise ShardError(
            f"the shard had no column {', '.join(missing)} at that time; it had "
            f"{', '.join(column.name for column in schema.columns)}. List those under the "
            "source's columns, or give another as_of"
        )
    return tuple(column for column in found.values() if column is not None)
