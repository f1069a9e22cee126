"""Reads the rows of a shard as of a time, as a DataFrame."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from dbt.adapters.mzs3.errors import ShardError
from dbt.adapters.mzs3.shard.batch.footer import Bounds
from dbt.adapters.mzs3.shard.batch.read import FILES_SCHEMA, REPORT, read_files
from dbt.adapters.mzs3.shard.read.column_bytes import Fetching
from dbt.adapters.mzs3.shard.read.filter import filter_of
from dbt.adapters.mzs3.shard.rows import consolidate, from_wire, repeat_rows, wire_spark_type
from dbt.adapters.mzs3.shard.state.state import BatchFile, ShardBatch, ShardState
from dbt.adapters.mzs3.shard.state.store import NoShardError, StateStore
from dbt.adapters.mzs3.shard.types import Column
from dbt.adapters.mzs3.spark.engine import is_remote
from dbt.adapters.mzs3.spark.frames import default_parallelism
from dbt.adapters.mzs3.spark.job import shipped
from dbt.adapters.mzs3.spark.tables import arrow_frame
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.opened import open_store

# Each task is work for Spark's driver, and a shard may have tens of thousands of files.
MOST_TASKS = 500
# Over Spark Connect, up to this many files are each read by a task of its own.
FEW_FILES = 8
# In bytes: fetching a file's footer and starting its task take as long as reading 2 MB.
_COST_OF_A_FILE = 2 << 20
# In bytes: reading them takes 0.2 s, much longer than starting a task.
_COST_OF_A_TASK = 16 << 20


@dataclass(frozen=True)
class ShardLocation:
    """Where a shard's files are, and the connection to read and write them."""

    connection: AwsConnection
    location: S3Location


def readable_state(connection: AwsConnection, location: S3Location) -> ShardState:
    """The shard's state. Raises NoShardError if no run has written it, or none since a reset."""
    state = StateStore(open_store(connection, location), location).existing().state
    if state.is_unwritten:
        raise NoShardError(
            f"the shard at {location.uri} was reset, and no run has written it since; run the "
            "model that writes it first"
        )
    return state


def read_shard(
    spark: SparkSession,
    connection: AwsConnection,
    location: S3Location,
    *,
    as_of: int | None = None,
    names: Sequence[str] | None = None,
    where: str | None = None,
    fetching: Fetching | None = None,
    state: ShardState | None = None,
) -> DataFrame:
    """A shard's rows as of a time in ms since the epoch, by default its latest, read lazily.

    `names` are the columns to read, None for all. `where` is a condition on any columns.
    `fetching` counts the bytes fetched. `state` is the shard's state if the caller has read it.
    Raises ShardError, also for a time or a column that can't be read.
    """
    state = state or readable_state(connection, location)
    moment = state.upper - 1 if as_of is None else as_of
    batches = state.batches_until(moment)
    schema = state.schema_at(moment)
    columns, missing = (schema.columns, []) if names is None else schema.named(names)
    if missing:
        raise ShardError(
            f"the shard had no column {', '.join(missing)} at that time; it had "
            f"{', '.join(column.name for column in schema.columns)}. List those under the "
            "source's columns, or give another as_of"
        )
    row_filter = None if where is None else filter_of(spark, where, schema.columns)
    others = [each for each in row_filter.columns if each not in columns] if row_filter else []
    rows = changes_in(
        spark,
        ShardLocation(connection, location),
        batches,
        [*columns, *others],
        fetching=fetching,
        bounds=row_filter.bounds if row_filter else (),
    )
    places = {column.tag: f"c{place}" for place, column in enumerate([*columns, *others])}
    if any(batch.retractions for batch in batches):
        # A change may retract a row that another change added, so the changes are summed.
        rows = row_filter.changes(rows, places) if row_filter else rows
        rows = consolidate(rows, list(places.values()))
    if row_filter:
        # Also removes rows outside the bounds, of which only some changes may have been read.
        rows = row_filter.rows(rows, places)
    chosen = [places[column.tag] for column in columns]
    return from_wire(repeat_rows(rows.select(*chosen, "d")), columns, chosen)


def changes_in(
    spark: SparkSession,
    shard: ShardLocation,
    batches: Sequence[ShardBatch],
    columns: Sequence[Column],
    *,
    fetching: Fetching | None = None,
    bounds: Sequence[Bounds] = (),
    every: int = 1,
) -> DataFrame:
    """The changes in the batches: `t`, `d`, and the columns in wire form as c0, c1, ….

    Reads only every `every`-th change of a file, from the first on. May skip row groups that have
    no row within the bounds.
    """
    fields = [T.StructField(name, T.LongType()) for name in ("t", "d")]
    kinds = enumerate(wire_spark_type(column.kind) for column in columns)
    fields += [T.StructField(f"c{place}", kind) for place, kind in kinds]
    files = [file for batch in batches for file in batch.files]
    if not files:
        return spark.createDataFrame([], T.StructType(fields))
    read = shipped(
        read_files,
        shard.connection,
        shard.location,
        columns,
        every=every,
        bounds=bounds,
        reports=fetching is not None,
    )
    if fetching is not None:
        fields.append(T.StructField(REPORT, T.StringType()))
    changes = in_tasks(spark, shard, files).mapInArrow(read, T.StructType(fields))
    return changes if fetching is None else fetching.counted(changes, columns)


def in_tasks(spark: SparkSession, shard: ShardLocation, files: Sequence[BatchFile]) -> DataFrame:
    """A row of FILES_SCHEMA for each file, in partitions that take about the same time to read."""
    # With Spark Connect, `default_parallelism` runs a query, which is not worth it for few files.
    is_few = is_remote(spark) and len(files) <= FEW_FILES
    cores = FEW_FILES if is_few else default_parallelism(spark)
    tasks = tasks_of([file.size for file in files], cores)
    columns = {
        "task": tasks,
        "key": [shard.location.key(file.name) for file in files],
        "size": [file.size for file in files],
        "etag": [file.etag for file in files],
    }
    rows = arrow_frame(spark, pa.table(columns, FILES_SCHEMA))
    return rows.repartitionById(max(tasks) + 1, "task")


def tasks_of(sizes: Sequence[int], cores: int) -> list[int]:
    """The number of the task that reads each file, by the files' sizes; small files share a task.

    Each core gets the same number of tasks, unless there are too few files or MOST_TASKS is less.
    """
    costs = [size + _COST_OF_A_FILE for size in sizes]
    useful_tasks = sum(min(1, cost / _COST_OF_A_TASK) for cost in costs)
    rounds = math.ceil(useful_tasks / cores)
    return balanced_tasks(costs, min(MOST_TASKS, cores * rounds))


def balanced_tasks(costs: Sequence[int], most: int) -> list[int]:
    """The number of each file's task, for at most `most` tasks that cost about the same."""
    heap = [(0, task) for task in range(min(most, len(costs)))]
    tasks = [0] * len(costs)
    for place in sorted(range(len(costs)), key=lambda place: -costs[place]):
        load, task = heap[0]
        tasks[place] = task
        heapq.heapreplace(heap, (load + costs[place], task))
    return tasks
