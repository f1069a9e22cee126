"""Compares the two encodings of a shard, batch by batch, and records the result in a table."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from dbt.adapters.mzs3.errors import ShardError
from dbt.adapters.mzs3.shard.batch.read import COMPARED_DDL, compare_files
from dbt.adapters.mzs3.shard.read.rows import ShardLocation, in_tasks
from dbt.adapters.mzs3.shard.state.state import ShardBatch, ShardState
from dbt.adapters.mzs3.spark.job import shipped
from dbt.adapters.mzs3.spark.run_table import RunTable
from dbt.adapters.mzs3.text import count_with_commas, moment_text

TABLE = "mzs3_shard_validations"
_MOST_SHOWN = 10


@dataclass(frozen=True)
class ValidatedBatch:
    """The comparison of the batch whose changes have the time `batch`, in ms since the epoch.

    `compared` and `differences` count values; both are 0 for a batch without both encodings.
    `differing` lists the columns in which values differ, each with the number of these values.
    """

    batch: int
    encoding: str
    files: int
    compared: int
    differences: int
    differing: str


@dataclass(frozen=True)
class Validation:
    """The comparison of a shard's encodings as of a time, for batches that have changes."""

    location: str
    as_of: int
    batches: tuple[ValidatedBatch, ...]

    @property
    def compared(self) -> int:
        """The number of values that were compared."""
        return sum(batch.compared for batch in self.batches)

    @property
    def differences(self) -> int:
        """The number of values that differ."""
        return sum(batch.differences for batch in self.batches)

    @property
    def summary(self) -> str:
        """A line for users, to be shown if no values differ."""
        if not self.compared:
            return "no values were compared, as no file that was read has them in both encodings"
        both = sum(bool(batch.compared) for batch in self.batches)
        return (
            f"{count_with_commas(self.compared, 'value')} were compared, in {both} of "
            f"{len(self.batches)} batches, and are the same in both encodings"
        )

    def lines(self) -> Iterator[str]:
        """A line for each batch."""
        for batch in self.batches:
            compared = count_with_commas(batch.compared, "value")
            found = f"{compared} compared, {batch.differences:,} differ"
            more = f": {batch.differing}" if batch.differing else ""
            yield f"batch {moment_text(batch.batch)}, {batch.encoding}: {found}{more}"

    def require_same(self) -> None:
        """Raises ShardError, which names batches and columns, if values differ."""
        if not self.differences:
            return
        differing = [batch for batch in self.batches if batch.differences]
        listed = "".join(
            f"\n  - batch {moment_text(batch.batch)}: {batch.differing}"
            for batch in differing[:_MOST_SHOWN]
        )
        if len(differing) > _MOST_SHOWN:
            listed += f"\n  - and {len(differing) - _MOST_SHOWN} more batches"
        raise ShardError(
            f"the two encodings of {self.location} differ in {self.differences:,} of "
            f"{count_with_commas(self.compared, 'value')}:{listed}\nOne of the two is wrong: if "
            "the objects are what was written, report it with the versions of dbt-mzs3 and "
            "pyarrow; without `validate`, structured columns are read"
        )


def validate_shard(
    spark: SparkSession, shard: ShardLocation, state: ShardState, as_of: int | None
) -> Validation:
    """Compares the encodings of all batches up to a time, by default the shard's latest.

    Raises ShardError for a time that can't be read, and Spark's failures.
    """
    moment = state.upper - 1 if as_of is None else as_of
    batches = [batch for batch in state.batches_until(moment) if batch.files]
    files = [file for batch in batches if batch.encoding == "dual" for file in batch.files]
    results = {}
    if files:
        compare = shipped(compare_files, shard.connection, shard.location)
        rows = in_tasks(spark, shard, files).mapInArrow(compare, COMPARED_DDL).collect()
        results = {row["key"]: (row["compared"], row["differing"]) for row in rows}
    names = {column.tag: column.name for schema in state.schemas for column in schema.columns}

    def summed(batch: ShardBatch) -> ValidatedBatch:
        keys = [shard.location.key(file.name) for file in batch.files]
        compared, differing = 0, Counter[int]()
        for count, by_tag in (results[key] for key in keys if key in results):
            compared += count
            differing.update(by_tag)
        text = ", ".join(
            f"{names.get(tag, 'a column')} (tag {tag}): {count}"
            for tag, count in sorted(differing.items())
        )
        total = differing.total()
        return ValidatedBatch(batch.moment, batch.encoding, len(keys), compared, total, text)

    return Validation(shard.location.uri, moment, tuple(map(summed, batches)))


_COLUMNS = pa.schema(
    [
        ("source", pa.string()),
        ("location", pa.string()),
        ("as_of", pa.int64()),
        ("validated", pa.timestamp("ms", "UTC")),
        ("batch", pa.int64()),
        ("encoding", pa.string()),
        ("files", pa.int64()),
        ("compared", pa.int64()),
        ("differences", pa.int64()),
        ("differing", pa.string()),
        ("invocation_id", pa.string()),
    ]
)


def record(
    spark: SparkSession, schema: str, source: str, validation: Validation, invocation_id: str
) -> None:
    """Appends a row for each batch to the table TABLE of the schema, which it creates if missing.

    Raises Spark's failures, and SparkJobError if another relation has the name.
    """
    if not validation.batches:
        return
    table = RunTable(spark, schema, TABLE, _COLUMNS, "What validate: true compared of shards")
    now = time.time_ns() // 1_000_000
    table.append(validation_rows(source, validation, invocation_id, now), now)


def validation_rows(source: str, validation: Validation, invocation_id: str, now: int) -> pa.Table:
    """The rows that `record` appends, one for each batch."""
    common = {
        "source": source,
        "location": validation.location,
        "as_of": validation.as_of,
        "validated": now,
        "invocation_id": invocation_id,
    }
    rows = [{**common, **vars(batch)} for batch in validation.batches]
    return pa.Table.from_pylist(rows, _COLUMNS)
