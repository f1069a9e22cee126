"""A source in Spark: a view with the source's name, and the tables from which it selects.

Each run writes a table of its own, which never changes later, and points the view to it in one
step. Earlier queries may still read the previous table. So it is only marked as unused, and a
later run drops it once the mark is old enough.
"""

from __future__ import annotations

import contextlib
import re
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from dbt.adapters.mzs3.errors import Mzs3Error, ShardError
from dbt.adapters.mzs3.rows.columns import parts_of
from dbt.adapters.mzs3.shard.options import ShardSource
from dbt.adapters.mzs3.shard.read.column_bytes import ColumnBytes, Fetching
from dbt.adapters.mzs3.shard.read.rows import ShardLocation, read_shard, readable_state
from dbt.adapters.mzs3.shard.read.validation import TABLE, record, validate_shard
from dbt.adapters.mzs3.shard.state.state import ShardState
from dbt.adapters.mzs3.shard.state.store import NoShardError
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, readable
from dbt.adapters.mzs3.spark.job import Tell
from dbt.adapters.mzs3.spark.sql import ICEBERG, qualified_name, quote_identifier, quote_schema
from dbt.adapters.mzs3.spark.tables import (
    change_view,
    properties_sql,
    read_properties,
    table_format,
)
from dbt.adapters.mzs3.store.connection import AwsConnection

PROPERTY = "mzs3.shard."
UNUSED = "unused_since"
# The run of a table that is older than this and has no mark was killed.
LONGEST_RUN_MS = 24 * 60 * 60 * 1000
_RUN_SUFFIX = "__shard_([0-9]+)_[0-9a-f]{8}"

TIMES = "spark.sql.timeType.enabled"


@dataclass(frozen=True)
class SourceTable:
    """A source, and the schema and identifier of its view in Spark.

    `columns` are the declared columns: the name, and the type in SQL or None.
    """

    source: ShardSource
    connection: AwsConnection
    schema: str
    identifier: str
    columns: Sequence[tuple[str, str | None]] = ()
    invocation_id: str = ""


def write_source_table(
    spark: SparkSession, table: SourceTable, *, tell: Tell = lambda what: None
) -> ColumnBytes | None:
    """Writes the shard's rows to the source. Returns what was fetched, or None if that is unknown.

    With `validate`, passes lines on the comparison to `tell`, as (log level, line), and records it
    in a table of the schema, even if encodings differ. Raises ShardError, S3Error, and Spark's
    failures. After an error or a killed run, the source still has its earlier rows.
    """
    source, fetching = table.source, Fetching()
    replacement = TableReplacement(spark, table)
    state = readable_state(table.connection, source.location)
    # Reports errors of the declaration before the validation, which takes long.
    rows = _storable_rows(spark, table, state, fetching)
    validation = None
    if source.validate:
        shard = ShardLocation(table.connection, source.location)
        validation = validate_shard(spark, shard, state, source.as_of)
        for line in validation.lines():
            tell(("debug", line))
        replacement.create_schema()
        try:
            record(spark, table.schema, source.name, validation, table.invocation_id)
        except (Mzs3Error, *SPARK_FAILURES) as exc:
            where = f"{table.schema}.{TABLE}"
            tell(("warn", f"what was compared can't be kept in {where}: {readable(exc)}"))
        validation.require_same()
    replacement.replace_rows(rows)
    if validation is not None:
        tell(("info", validation.summary))
    fetched = fetching.found()
    if fetched is None:
        tell(("debug", "how much was fetched is not known, as Spark did not report it"))
    return fetched


def _storable_rows(
    spark: SparkSession, table: SourceTable, state: ShardState, fetching: Fetching | None = None
) -> DataFrame:
    """The source's rows, read lazily. Raises ShardError if Spark's tables can't store a column."""
    source = table.source
    rows = read_shard(
        spark,
        table.connection,
        source.location,
        as_of=source.as_of,
        names=source.columns or None,
        where=source.where,
        fetching=fetching,
        state=state,
    )
    require_storable(spark, rows.schema)
    return rows


def write_empty_table(
    spark: SparkSession, table: SourceTable, *, if_missing: bool = False
) -> None:
    """Makes the source empty, with the shard's columns.

    With `if_missing`, a source that exists keeps its rows. Without a shard, as in a new project,
    the columns are the declared ones. Raises the errors of `write_source_table`, and ShardError if
    no column is declared, one has no type, or another relation has the name.
    """
    replacement = TableReplacement(spark, table)
    try:
        state = readable_state(table.connection, table.source.location)
        schema: T.StructType | str = _storable_rows(spark, table, state).schema
    except NoShardError:
        schema = _declared_schema(table)
    replacement.replace_rows(spark.createDataFrame([], schema), if_missing=if_missing)


def _declared_schema(table: SourceTable) -> str:
    untyped = [name for name, kind in table.columns if not kind]
    if untyped or not table.columns:
        what = f"give a data_type to {', '.join(untyped)}" if untyped else "declare the columns"
        raise ShardError(
            f"there is no shard at {table.source.location.uri} yet, and a table without rows is "
            f"made of the declared columns: {what} under the source's columns, or run the model "
            "that writes the shard first"
        )
    return ", ".join(f"{quote_identifier(name)} {kind}" for name, kind in table.columns)


def refresh_source(
    spark: SparkSession,
    table: SourceTable,
    *,
    is_empty: bool,
    if_missing: bool,
    tell: Tell = lambda what: None,
) -> ColumnBytes | None:
    """Writes the shard's rows to the source, or no rows if `is_empty`. With `if_missing`, only
    creates a missing source, without rows. See `write_source_table` for `tell` and the errors."""
    if if_missing and source_exists(spark, table.schema, table.identifier):
        return None
    if is_empty or if_missing:
        # With `if_missing`, as another process may have written the source in the meantime.
        write_empty_table(spark, table, if_missing=if_missing)
        return None
    return write_source_table(spark, table, tell=tell)


def source_exists(spark: SparkSession, schema: str, identifier: str) -> bool:
    """Whether the source, or another relation with its name, exists in Spark."""
    return read_properties(spark, qualified_name(schema, identifier), PROPERTY) is not None


class TableReplacement:
    """Replaces the table from which a source's view selects; created before the shard is read.

    `table` is the new table, `before` the view's table at the beginning, if any. Raises ShardError
    if another relation has the source's name.
    """

    def __init__(self, spark: SparkSession, target: SourceTable) -> None:
        self.spark = spark
        self.schema = target.schema
        self.identifier = target.identifier
        self.keep_ms = target.source.keep_ms
        self.file_format = table_format(spark, target.source.file_format)
        # Metastores store names in lower case.
        self.table = f"{self.identifier.lower()}__shard_{now_ms()}_{uuid.uuid4().hex[:8]}"
        self.before = self._table_of_view()

    def replace_rows(self, rows: DataFrame, *, if_missing: bool = False) -> None:
        """Replaces the source's rows; creates a missing schema. After a failure the old rows stay.

        Does not replace the rows of a run that began later, nor any rows with `if_missing`. A
        running query can read the old rows for another `keep_ms`.
        """
        self.create_schema()
        self._drop_unused()
        self._write(rows)
        try:
            unused = self.point_view(if_missing=if_missing)
        except BaseException:
            with contextlib.suppress(ShardError, *SPARK_FAILURES):
                # Marked, not dropped: the view may have selected from the table for a moment.
                if self._table_of_view() != self.table:
                    self._mark(self.table)
            raise
        if unused is not None:
            self._mark(unused)
            # No query reads the new table if the view never selected from it.
            if not self.keep_ms or unused == self.table:
                self._drop(unused)

    def create_schema(self) -> None:
        """Creates the schema of the source if there is none."""
        self.spark.sql(f"create schema if not exists {quote_schema(self.schema)}")

    def _write(self, rows: DataFrame) -> None:
        """Creates the new table with these rows; drops it after a failure."""
        table = qualified_name(self.schema, self.table)
        try:
            # The table is created empty first: if a run is killed while it writes rows, their
            # files then belong to a table, which a later run drops.
            empty = self.spark.createDataFrame([], rows.schema)
            empty.write.format(self.file_format).saveAsTable(table)
            rows.write.insertInto(table)
        except BaseException:
            with contextlib.suppress(*SPARK_FAILURES):
                self._drop(self.table)
            raise

    def point_view(self, *, if_missing: bool) -> str | None:
        """Points the view to the new table. Returns the table that is now unused, if any.

        The new table is unused if the view exists and `if_missing`, or if a concurrent run that
        began later has changed the view. Other runs are not compared, as clocks differ.
        """
        if self._is_old(self.table):
            # Another run may have marked the new table, as if this run were killed.
            self.spark.sql(
                f"alter table {qualified_name(self.schema, self.table)} "
                f"unset tblproperties if exists ('{PROPERTY}{UNUSED}')"
            )
        view = qualified_name(self.schema, self.identifier)
        select = f"select * from {qualified_name(self.schema, self.table)}"
        current = self._table_of_view()
        if current is None:
            self.spark.sql(f"create view if not exists {view} as {select}")
            current = self._table_of_view()
        if current == self.table:
            return None
        if current is not None:
            is_later = (self._began_at(current) or 0) > (self._began_at(self.table) or 0)
            if if_missing or (current != self.before and is_later):
                return self.table
        change_view(self.spark, view, select, PROPERTY, {})
        return current

    def _table_of_view(self) -> str | None:
        """The view's table, None without a view. Raises ShardError if the view is not ours."""
        view = qualified_name(self.schema, self.identifier)
        if read_properties(self.spark, view, PROPERTY) is None:
            return None
        rows = self.spark.sql(f"describe extended {view}").collect()
        texts = [row["data_type"] for row in rows if row["col_name"] == "View Text"]
        quoted = re.escape(quote_identifier(self.identifier.lower()).removesuffix("`"))
        matched = re.search(f"{quoted}({_RUN_SUFFIX})`", texts[-1].lower()) if texts else None
        if matched is None:
            raise ShardError(
                f"{self.schema}.{self.identifier} was not made by this source. Drop it, or give "
                "the source another schema or identifier"
            )
        return self.identifier.lower() + matched[1]

    def _drop_unused(self) -> None:
        """Drops tables that were marked `keep_ms` ago or earlier; marks the tables of killed runs.

        Tables of runs that may still write are kept. Raises ShardError if the view is not ours.
        """
        current = self._table_of_view()
        tables = self.spark.sql(f"show tables in {quote_schema(self.schema)}").collect()
        for name in (row["tableName"] for row in tables):
            if self._began_at(name) is None or name == current:
                continue
            marks = read_properties(self.spark, qualified_name(self.schema, name), PROPERTY) or {}
            if UNUSED in marks:
                if int(marks[UNUSED]) <= now_ms() - self.keep_ms:
                    self._drop(name)
            elif self._is_old(name):
                self._mark(name)

    def _drop(self, name: str) -> None:
        purge = " purge" if self.file_format == ICEBERG else ""  # else Iceberg keeps the files
        table = qualified_name(self.schema, name)
        self.spark.sql(f"drop table if exists {table}{purge}")

    def _began_at(self, name: str) -> int | None:
        """When the run of this table began, in ms since the epoch; None for other tables."""
        matched = re.fullmatch(re.escape(self.identifier.lower()) + _RUN_SUFFIX, name.lower())
        return int(matched[1]) if matched else None

    def _is_old(self, name: str) -> bool:
        return (self._began_at(name) or 0) <= now_ms() - LONGEST_RUN_MS

    def _mark(self, name: str) -> None:
        """Marks a table as unused from now on, unless another run has dropped it."""
        since = properties_sql(PROPERTY, {UNUSED: str(now_ms())})
        with contextlib.suppress(*SPARK_FAILURES):
            table = qualified_name(self.schema, name)
            self.spark.sql(f"alter table {table} set tblproperties {since}")


def now_ms() -> int:
    """The time of this host, in ms since the epoch."""
    return time.time_ns() // 1_000_000


def require_storable(spark: SparkSession, schema: T.StructType) -> None:
    """Raises ShardError with the columns that Spark can't write to a table, and why."""
    has_times = str(spark.conf.get(TIMES, "false")).strip().lower() == "true"
    refused = [field for field in schema.fields if not _is_storable(field.dataType, has_times)]
    if refused:
        listed = ", ".join(f"{field.name} ({field.dataType.simpleString()})" for field in refused)
        raise ShardError(
            "Spark's tables hold no calendar intervals, no structs without fields, and times only "
            f"with {TIMES}: true. List the columns to read under `columns`, without {listed}"
        )


def _is_storable(kind: T.DataType, has_times: bool) -> bool:
    if isinstance(kind, T.CalendarIntervalType):
        return False
    if isinstance(kind, T.TimeType):
        return has_times
    inside = parts_of(kind)
    if isinstance(kind, T.StructType) and not inside:
        return False
    return all(_is_storable(inner, has_times) for _, inner in inside)
