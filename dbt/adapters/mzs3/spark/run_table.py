"""A table to which concurrent runs append rows, each run as a partition."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable
from datetime import datetime, timezone

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.spark import engine
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES
from dbt.adapters.mzs3.spark.sql import qualified_name, quote_identifier
from dbt.adapters.mzs3.types.table import sql_of

_PARTITIONS = "# Partition Information"  # their heading in DESCRIBE TABLE EXTENDED


class RunTable:
    """A table in `schema`, which may be `catalog.schema`; `columns` have Arrow's types.

    The constructor creates a missing table, and adds columns that a table of an earlier version
    lacks, so that `append` is fast: users wait for it after Ctrl-C. Raises Spark's failures, and
    SparkJobError if another relation has the name.
    """

    def __init__(
        self, spark: SparkSession, schema: str, name: str, columns: pa.Schema, comment: str
    ) -> None:
        self._spark = spark
        self._name = f"{schema}.{name}"
        self._table = qualified_name(schema, name)
        self._location = self._find_or_make(columns, comment)

    def append(self, rows: pa.Table, at: int) -> None:
        """Adds the rows of a run that began `at`, in ms since the epoch; thread-safe.

        The rows become a new partition (`day` in UTC, `run`), which the metastore makes visible
        atomically. Raises Spark's failures.
        """
        day = datetime.fromtimestamp(at / 1000, tz=timezone.utc).date().isoformat()
        run = uuid.uuid4().hex
        # Not with INSERT: of several concurrent INSERTs, the first to commit would delete the
        # others' unfinished files.
        folder = f"{self._location}/day={day}/run={run}"
        engine.write_parquet(self._spark, folder, rows)
        added = f"ADD PARTITION (day = '{day}', run = '{run}')"
        self._spark.sql(f"ALTER TABLE {self._table} {added}")

    def _find_or_make(self, columns: pa.Schema, comment: str) -> str:
        """Creates a missing table. Returns the folder of the table's files."""
        describe = f"DESCRIBE TABLE EXTENDED {self._table}"
        try:
            described = self._spark.sql(describe).collect()
        except AnalysisException as exc:
            if exc.getCondition() != "TABLE_OR_VIEW_NOT_FOUND":
                raise
            self._make(columns, comment)
            described = self._spark.sql(describe).collect()
        names = [row[0] for row in described]
        locations = [value for name, value, *_ in described if name == "Location"]
        # The partitions follow a heading and the row `# col_name`.
        partitions = names.index(_PARTITIONS) + 2 if _PARTITIONS in names else len(names)
        if not locations or names[partitions : partitions + 2] != ["day", "run"]:
            raise SparkJobError(
                f"{self._name} is not the table that dbt-mzs3 makes under this name; rename or "
                "drop it, and the next run makes the table"
            )
        if missing := [column for column in columns if column.name not in names[:partitions]]:
            # Another run may add the columns meanwhile. Without them, their values are not seen.
            with contextlib.suppress(*SPARK_FAILURES):
                self._spark.sql(f"ALTER TABLE {self._table} ADD COLUMNS ({_ddl(missing)})")
        return str(locations[-1])

    def _make(self, columns: pa.Schema, comment: str) -> None:
        try:
            self._spark.sql(
                f"CREATE TABLE IF NOT EXISTS {self._table} "
                f"({_ddl(columns)}, day string, run string) "
                f"USING parquet PARTITIONED BY (day, run) COMMENT '{comment} (dbt-mzs3)'"
            )
        except PySparkException:
            # Another run may have created the table meanwhile.
            if not self._spark.catalog.tableExists(self._table):
                raise


def _ddl(columns: Iterable[pa.Field]) -> str:
    return ", ".join(f"{quote_identifier(each.name)} {sql_of(each.type)}" for each in columns)
