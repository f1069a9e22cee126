"""The table of a source's rows, epoch by epoch, whatever its format; nobody sees them there yet.

Where the format has transactions, an epoch's rows are one INSERT: all there, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.ledger.partitions import (
    add_partition,
    drop_partitions,
    list_partitions,
    write_partition,
)
from dbt.adapters.mzs3.ledger.relations import EPOCH_COLUMN, SourceRelations
from dbt.adapters.mzs3.ledger.table_files import FILES_DDL, table_files
from dbt.adapters.mzs3.spark.frames import observed
from dbt.adapters.mzs3.spark.job import OnBatches, shipped
from dbt.adapters.mzs3.spark.sql import quote_literal

PARTITIONS_AT_ONCE = 100

_ENCRYPTION = "spark.hadoop.parquet.crypto.factory.class"

RowsOf = Callable[..., OnBatches]


class RowsSpec(Protocol):
    """What tasks need to make rows; it travels with them."""

    @property
    def source(self) -> str:
        """The name of the rows' source, for errors."""

    @property
    def ddl(self) -> str:
        """The schema of the rows, in Spark's DDL."""

    @property
    def schema(self) -> pa.Schema:
        """The same, as Arrow's."""


# Where Spark's name of a compression is not Arrow's, or Arrow has none.
_CODECS = {"uncompressed": "none", "lz4_raw": "lz4", "lzo": "snappy"}


class RowPartitions:
    """A table of Parquet files, in which each epoch is a partition."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self._spark = spark
        self._name = name

    def fetched(self, given: DataFrame, spec: RowsSpec, rows_of: RowsOf, *more: Any) -> DataFrame:
        """The rows of `rows_of(spec, *more)`, in tasks over the rows of `given`, as `write`
        takes them.

        Raises SourceError where Spark is told to encrypt Parquet, which tasks can't.
        """
        if self._spark.conf.get(_ENCRYPTION, None):
            raise SourceError(
                f"{spec.source}: {_ENCRYPTION} has Spark encrypt Parquet files, and those of a "
                "source are made by its tasks, which can't. Encrypt the store, or give the source "
                "file_format: delta or iceberg"
            )
        codec = str(self._spark.conf.get("spark.sql.parquet.compression.codec", "snappy")).lower()
        files = shipped(
            table_files, spec.schema, _CODECS.get(codec, codec), rows_of, (spec, *more)
        )
        return given.mapInArrow(files, FILES_DDL)

    def write(self, frame: DataFrame, epoch: str, *, require_lock: Callable[[], None]) -> int:
        """Writes what `fetched` gave as the rows of the epoch, in one step; how many they are.

        Columns of the table that the rows lack are NULL. Nothing is written if `require_lock`
        raises, nor, in partitions, if Spark does not report how many rows there are, for which
        SparkJobError is raised.
        """
        return write_partition(frame, self._name, {EPOCH_COLUMN: epoch}, require_lock=require_lock)

    def settle(self, epoch: str) -> None:
        """Lets `drop_except` find what a run that died has written of the epoch."""
        add_partition(self._spark, self._name, {EPOCH_COLUMN: epoch})

    def drop_except(
        self, kept: Collection[str], before: str, *, require_lock: Callable[[], None]
    ) -> None:
        """Drops the rows of all epochs before this one but for those that are to be kept."""
        written = [epoch for (epoch,) in list_partitions(self._spark, self._name)]
        gone = [e for e in written if int(e) < int(before) and e not in kept]
        for start in range(0, len(gone), PARTITIONS_AT_ONCE):
            require_lock()
            some = gone[start : start + PARTITIONS_AT_ONCE]
            drop_partitions(self._spark, self._name, [{EPOCH_COLUMN: epoch} for epoch in some])

    def is_empty(self) -> bool:
        """Whether no row was ever written, or all are dropped."""
        return self._spark.sql(f"SHOW PARTITIONS {self._name}").first() is None


class RowTransactions:
    """A table of a format with transactions, partitioned by epochs."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self._spark = spark
        self._name = name

    def fetched(self, given: DataFrame, spec: RowsSpec, rows_of: RowsOf, *more: Any) -> DataFrame:
        """See `RowPartitions`."""
        return given.mapInArrow(shipped(rows_of, spec, *more), spec.ddl)

    def write(self, frame: DataFrame, epoch: str, *, require_lock: Callable[[], None]) -> int:
        """See `RowPartitions`."""
        schema = self._spark.table(self._name).drop(EPOCH_COLUMN).schema
        counted = Observation()
        rows = frame.to(schema)
        rows = rows.observe(counted, F.count(F.lit(1)).alias("rows"))
        require_lock()
        rows.withColumn(EPOCH_COLUMN, F.lit(epoch)).writeTo(self._name).append()
        return int(observed(counted)["rows"])

    def settle(self, epoch: str) -> None:
        """See `RowPartitions`: all that is in the table is found."""

    def drop_except(
        self, kept: Collection[str], before: str, *, require_lock: Callable[[], None]
    ) -> None:
        """See `RowPartitions`."""
        # Epochs have as many digits as each other, so texts compare as numbers do. No file is
        # read for that: a condition on partitions alone takes whole files out of the table.
        gone = f"{EPOCH_COLUMN} < {quote_literal(before)}"
        if kept:
            gone += f" AND {EPOCH_COLUMN} NOT IN ({', '.join(map(quote_literal, sorted(kept)))})"
        require_lock()
        self._spark.sql(f"DELETE FROM {self._name} WHERE {gone}")

    def is_empty(self) -> bool:
        """See `RowPartitions`."""
        return self._spark.table(self._name).first() is None


RowsTable = RowPartitions | RowTransactions


def rows_table(spark: SparkSession, relations: SourceRelations) -> RowsTable:
    """The table of rows of the source, in the format that it has."""
    kind = RowTransactions if relations.has_transactions else RowPartitions
    return kind(spark, relations.rows)
