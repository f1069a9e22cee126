"""The table of a source's rows, by epoch, in any format; views show only committed rows."""

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
# Arrow's compressions for those of Spark that Arrow names differently, or lacks.
_CODECS = {"uncompressed": "none", "lz4_raw": "lz4", "lzo": "snappy"}

RowsOf = Callable[..., OnBatches]


class RowsSpec(Protocol):
    """What tasks need to produce rows. Spark sends it to the tasks."""

    @property
    def source(self) -> str:
        """The name of the rows' source, for errors."""

    @property
    def ddl(self) -> str:
        """The schema of the rows, in Spark's DDL."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows, in Arrow."""


class RowsTable:
    """A table of Parquet files, in which each epoch is a partition."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self._spark = spark
        self._name = name

    def rows_from(
        self, given: DataFrame, spec: RowsSpec, rows_of: RowsOf, *more: Any
    ) -> DataFrame:
        """A frame for `write`, whose rows tasks produce from `given` by `rows_of(spec, *more)`.

        Raises SourceError if Spark is configured to encrypt Parquet, which tasks can't do.
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
        """Writes a frame of `rows_from` as the epoch's rows, in one step. Returns their number.

        Columns of the table that the rows lack are NULL. If `require_lock` raises, no rows are
        added: another run may have recreated the table. If Spark does not report the number of
        rows, raises SparkJobError; then nothing is written to a table with partitions.
        """
        # Not with INSERT: all INSERTs into a table stage files in the same folder, which the first
        # INSERT to end removes. A run that has lost the source's lock would remove another run's
        # rows, and Spark would not notice.
        counted = Observation()
        files = frame.observe(counted, F.sum("rows").alias("rows"))
        folder = self._folder(epoch)
        texts = files.select(F.col("file").cast("string")).write.mode("overwrite")
        texts.options(lineSep=END.decode(), maxRecordsPerFile=1, compression="none").text(folder)
        written = int(observed(counted)["rows"] or 0)
        require_lock()
        self._add_partition(epoch, folder)
        return written

    def register_partition(self, epoch: str) -> None:
        """Adds the epoch's partition, so that `drop_except` finds the rows of a run that died."""
        self._add_partition(epoch, self._folder(epoch))

    def drop_except(
        self, kept: Collection[str], before: str, *, require_lock: Callable[[], None]
    ) -> None:
        """Drops the rows of all epochs before `before`, except those of the epochs in `kept`."""
        written = [epoch for (epoch,) in list_partitions(self._spark, self._name)]
        dropped = [e for e in written if int(e) < int(before) and e not in kept]
        for start in range(0, len(dropped), PARTITIONS_AT_ONCE):
            require_lock()
            chunk = dropped[start : start + PARTITIONS_AT_ONCE]
            drop_partitions(self._spark, self._name, [{EPOCH_COLUMN: epoch} for epoch in chunk])

    def is_empty(self) -> bool:
        """Whether the table has no rows, not even of epochs that are not committed."""
        return self._spark.sql(f"SHOW PARTITIONS {self._name}").first() is None

    def _add_partition(self, epoch: str, folder: str) -> None:
        partition = f"{partition_sql({EPOCH_COLUMN: epoch})} LOCATION {quote_literal(folder)}"
        self._spark.sql(f"ALTER TABLE {self._name} ADD IF NOT EXISTS {partition}")

    def _folder(self, epoch: str) -> str:
        """The folder of the epoch's files, whose name depends only on the epoch."""
        # Not named like a partition, such as `mz_epoch=7`: `MSCK REPAIR TABLE` would then add a
        # folder that is still being written, and a session that finds a partition empty goes on
        # reading it as empty.
        return f"{location_of(self._spark, self._name)}/{EPOCH_COLUMN}-{epoch}"


class _RowTransactions(RowsTable):
    """A table in a format with transactions: the rows of an epoch are one INSERT."""

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

    def register_partition(self, epoch: str) -> None:
        pass  # `drop_except` finds all rows in the table

    def drop_except(
        self, kept: Collection[str], before: str, *, require_lock: Callable[[], None]
    ) -> None:
        # All epochs have the same number of digits, so their texts have the order of the numbers.
        # As the condition is on partitions alone, whole files are removed, and none is read.
        where = f"{EPOCH_COLUMN} < {quote_literal(before)}"
        if kept:
            where += f" AND {EPOCH_COLUMN} NOT IN ({', '.join(map(quote_literal, sorted(kept)))})"
        require_lock()
        self._spark.sql(f"DELETE FROM {self._name} WHERE {where}")

    def is_empty(self) -> bool:
        return self._spark.table(self._name).first() is None


def rows_table(spark: SparkSession, relations: SourceRelations) -> RowsTable:
    """The source's table of rows, as the class for its format."""
    kind = _RowTransactions if relations.has_transactions else RowsTable
    return kind(spark, relations.rows)
