"""The table of a source's rows, epoch by epoch, whatever its format; no view shows them yet."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.ledger.partitions import (
    drop_partitions,
    list_partitions,
    location_of,
    partition_sql,
)
from dbt.adapters.mzs3.ledger.relations import EPOCH_COLUMN, SourceRelations
from dbt.adapters.mzs3.ledger.table_files import END, FILES_DDL, table_files
from dbt.adapters.mzs3.spark.frames import observed
from dbt.adapters.mzs3.spark.job import OnBatches, shipped
from dbt.adapters.mzs3.spark.sql import quote_literal

PARTITIONS_AT_ONCE = 100

_ENCRYPTION = "spark.hadoop.parquet.crypto.factory.class"
# Where Spark's name of a compression is not Arrow's, or Arrow has none.
_CODECS = {"uncompressed": "none", "lz4_raw": "lz4", "lzo": "snappy"}

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


class RowsTable:
    """A table of Parquet files, in which each epoch is a partition."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self._spark = spark
        self._name = name

    def rows_from(
        self, given: DataFrame, spec: RowsSpec, rows_of: RowsOf, *more: Any
    ) -> DataFrame:
        """The rows of `rows_of(spec, *more)`, made by tasks over the rows of `given`, for `write`.

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
        """Writes the frame of `rows_from` as the epoch's rows, in one step; how many they are.

        Columns of the table that the rows lack are NULL. Nothing is written if `require_lock`
        raises, as the table may have been made anew; nor, in partitions, if Spark does not report
        how many rows there are, for which SparkJobError is raised.
        """
        # Not by INSERT: each INSERT stages its files in the same folder of the table, which the
        # first one to end removes. A run that has lost the source's lock would take rows from
        # another run, and Spark would not notice.
        counted = Observation()
        files = frame.observe(counted, F.sum("rows").alias("rows"))
        folder = self._folder(epoch)
        texts = files.select(F.col("file").cast("string")).write.mode("overwrite")
        texts.options(lineSep=END.decode(), maxRecordsPerFile=1, compression="none").text(folder)
        written = int(observed(counted)["rows"] or 0)
        require_lock()
        self._add_partition(epoch, folder)
        return written

    def settle(self, epoch: str) -> None:
        """Lets `drop_except` find what a run that died has written of the epoch."""
        self._add_partition(epoch, self._folder(epoch))

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

    def _add_partition(self, epoch: str, folder: str) -> None:
        located = f"{partition_sql({EPOCH_COLUMN: epoch})} LOCATION {quote_literal(folder)}"
        self._spark.sql(f"ALTER TABLE {self._name} ADD IF NOT EXISTS {located}")

    def _folder(self, epoch: str) -> str:
        """Where the epoch's files are: the same folder each time, until it is dropped."""
        # Its name is no partition's, as `mz_epoch=7` would be: else `MSCK REPAIR TABLE` would list
        # a partition that is still being written, and a session that found it empty would keep it
        # so.
        return f"{location_of(self._spark, self._name)}/{EPOCH_COLUMN}-{epoch}"


class _RowTransactions(RowsTable):
    """A table of a format with transactions: the rows of an epoch are one INSERT."""

    def rows_from(
        self, given: DataFrame, spec: RowsSpec, rows_of: RowsOf, *more: Any
    ) -> DataFrame:
        return given.mapInArrow(shipped(rows_of, spec, *more), spec.ddl)

    def write(self, frame: DataFrame, epoch: str, *, require_lock: Callable[[], None]) -> int:
        schema = self._spark.table(self._name).drop(EPOCH_COLUMN).schema
        counted = Observation()
        rows = frame.to(schema)
        rows = rows.observe(counted, F.count(F.lit(1)).alias("rows"))
        require_lock()
        rows.withColumn(EPOCH_COLUMN, F.lit(epoch)).writeTo(self._name).append()
        return int(observed(counted)["rows"])

    def settle(self, epoch: str) -> None:
        pass  # `drop_except` finds all that is in the table

    def drop_except(
        self, kept: Collection[str], before: str, *, require_lock: Callable[[], None]
    ) -> None:
        # Epochs have as many digits as each other, so texts compare as numbers do. No file is
        # read for that: a condition on partitions alone takes whole files out of the table.
        gone = f"{EPOCH_COLUMN} < {quote_literal(before)}"
        if kept:
            gone += f" AND {EPOCH_COLUMN} NOT IN ({', '.join(map(quote_literal, sorted(kept)))})"
        require_lock()
        self._spark.sql(f"DELETE FROM {self._name} WHERE {gone}")

    def is_empty(self) -> bool:
        return self._spark.table(self._name).first() is None


def rows_table(spark: SparkSession, relations: SourceRelations) -> RowsTable:
    """The table of rows of the source, in the format that it has."""
    kind = _RowTransactions if relations.has_transactions else RowsTable
    return kind(spark, relations.rows)
