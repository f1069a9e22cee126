"""The table that a source's name stands for: a view of a table that a run has written.

A table never changes once the view reads it. Each run writes a table of its own, and then points
the view to it, in one step. Queries that began before still read the older table, for an unknown
time: it is marked as unused, and dropped by a run that finds the mark old enough.
"""

from __future__ import annotations

import contextlib
import re
import time
import uuid
from collections.abc import Iterator, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from dbt.adapters.mzs3.errors import Mzs3Error, ShardError
from dbt.adapters.mzs3.shard.config import ShardSource
from dbt.adapters.mzs3.shard.read.column_bytes import ColumnBytes, Fetching
from dbt.adapters.mzs3.shard.read.rows import ShardLocation, read_shard, readable_state
from dbt.adapters.mzs3.shard.read.validation import TABLE, record, validated
from dbt.adapters.mzs3.shard.state.spark_types import parts_of
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
# A run whose table is older and was never marked was killed, or its end was, as far as one can
# tell.
LONGEST_RUN_MS = 24 * 60 * 60 * 1000
_OF_A_RUN = "__shard_([0-9]+)_[0-9a-f]{8}"

TIMES = "spark.sql.timeType.enabled"


def write_source_table(
    spark: SparkSession,
    source: ShardSource,
    connection: AwsConnection,
    schema: str,
    identifier: str,
    *,
    empty: bool = False,
    if_missing: bool = False,
    invocation_id: str = "",
    tell: Tell = lambda what: None,
) -> ColumnBytes | None:
    """Give `schema.identifier` the shard's rows, or none if `empty`; returns what was fetched.

    That is None where it is not known. What `validate` has compared is told as levels and lines
    of the log, and kept in a table of the schema, also where encodings differ. With `if_missing`
    a table that exists is left as it is. Raises ShardError, S3Error, and what Spark raises; then,
    and after a run that was killed, it has the rows that it had before.
    """
    fetching = None if empty else Fetching()
    run = _Run(spark, schema, identifier, source.file_format)
    state = readable_state(connection, source.location)
    # What is wrong with the source is told before all is validated.
    rows = read_shard(
        spark,
        connection,
        source.location,
        as_of=source.as_of,
        names=source.columns or None,
        where=source.where,
        fetching=fetching,
        state=state,
    )
    require_storable(spark, rows.schema)
    validation = None
    if source.validate and not empty:
        shard = ShardLocation(connection, source.location)
        validation = validated(spark, shard, state, source.as_of)
        for line in validation.of_batches():
            tell(("debug", line))
        run.make_schema()
        with _warning(tell, schema):
            record(spark, schema, source.name, validation, invocation_id)
        validation.require_same()
    if empty:
        rows = spark.createDataFrame([], rows.schema)
    run.replace_rows(rows, source.keep_ms, if_missing=if_missing)
    if validation is not None:
        tell(("info", validation.summary))
    found = None if fetching is None else fetching.found()
    if fetching is not None and found is None:
        tell(("debug", "how much was fetched is not known, as Spark did not report it"))
    return found


@contextlib.contextmanager
def _warning(tell: Tell, schema: str) -> Iterator[None]:
    """Turns any failure to keep what was compared into a warning: the rows are read anyway."""
    try:
        yield
    except (Mzs3Error, *SPARK_FAILURES) as exc:
        tell(("warn", f"what was compared can't be kept in {schema}.{TABLE}: {readable(exc)}"))


def write_empty_table(
    spark: SparkSession,
    source: ShardSource,
    connection: AwsConnection,
    columns: Sequence[tuple[str, str | None]],
    schema: str,
    identifier: str,
    *,
    if_missing: bool = False,
) -> None:
    """Give `schema.identifier` no rows, and the columns of the shard.

    With `if_missing` it keeps its rows if it exists by then. Where there is no shard yet, as in a
    new project, it gets the declared `columns`, names and types in SQL. Raises as
    `write_source_table`, and ShardError if none is declared, one has no type, or the name is
    another relation's.
    """
    with contextlib.suppress(NoShardError):
        write_source_table(
            spark, source, connection, schema, identifier, empty=True, if_missing=if_missing
        )
        return
    untyped = [name for name, kind in columns if not kind]
    if untyped or not columns:
        what = f"give a data_type to {', '.join(untyped)}" if untyped else "declare the columns"
        raise ShardError(
            f"there is no shard at {source.location.uri} yet, and a table without rows is made of "
            f"the declared columns: {what} under the source's columns, or run the model that "
            "writes the shard first"
        )
    ddl = ", ".join(f"{quote_identifier(name)} {kind}" for name, kind in columns)
    run = _Run(spark, schema, identifier, source.file_format)
    run.replace_rows(spark.createDataFrame([], ddl), source.keep_ms, if_missing=if_missing)


def refresh_source(
    spark: SparkSession,
    source: ShardSource,
    connection: AwsConnection,
    columns: Sequence[tuple[str, str | None]],
    schema: str,
    identifier: str,
    *,
    is_empty: bool,
    if_missing: bool,
    invocation_id: str = "",
    tell: Tell = lambda what: None,
) -> ColumnBytes | None:
    """Give the source the shard's rows, or if `is_empty` or `if_missing` none, the latter only
    where it is not there. Tells and raises as `write_source_table`."""
    place = (schema, identifier)
    if if_missing and source_exists(spark, *place):
        return None
    if is_empty or if_missing:
        # Another process may have read it since.
        write_empty_table(spark, source, connection, columns, *place, if_missing=if_missing)
        return None
    return write_source_table(
        spark, source, connection, *place, invocation_id=invocation_id, tell=tell
    )


def source_exists(spark: SparkSession, schema: str, identifier: str) -> bool:
    """Whether the source was read before, or a relation of its name exists."""
    return read_properties(spark, qualified_name(schema, identifier), PROPERTY) is not None


class _Run:
    """A run that replaces a source's rows, begun before it reads the shard.

    `table` is the one that it writes, `before` the one that the view has read until then. Raises
    ShardError where the name is another relation's.
    """

    def __init__(
        self, spark: SparkSession, schema: str, identifier: str, file_format: str | None
    ) -> None:
        self.spark = spark
        self.schema = schema
        self.identifier = identifier
        self.file_format = table_format(spark, file_format)
        # Metastores know no capital letters.
        self.table = f"{identifier.lower()}__shard_{_now()}_{uuid.uuid4().hex[:8]}"
        self.before = self._table_of_view()

    def replace_rows(self, rows: DataFrame, keep_ms: int, *, if_missing: bool) -> None:
        """Give the source these rows, and make its schema; after a failure the old rows stay.

        Keeps the rows of a run that began later, and with `if_missing` any rows. A query that has
        begun can go on with the rows that it began with for `keep_ms`.
        """
        self.make_schema()
        self._drop_unused(keep_ms)
        self._write(rows)
        try:
            unread = self._point(if_missing=if_missing)
        except BaseException:
            with contextlib.suppress(ShardError, *SPARK_FAILURES):
                if self._table_of_view() != self.table:  # but maybe the view has read it
                    self._mark(self.table)
            raise
        if unread is not None:
            self._mark(unread)
            if not keep_ms or unread == self.table:  # of which no query knows
                self._drop(unread)

    def make_schema(self) -> None:
        """Make the schema of the source if there is none."""
        self.spark.sql(f"create schema if not exists {quote_schema(self.schema)}")

    def _write(self, rows: DataFrame) -> None:
        """Make the run's table with these rows, or no table after a failure."""
        table = qualified_name(self.schema, self.table)
        try:
            # With its rows it would come into being after they are written, and a run that is
            # killed would leave files of which no table knows.
            empty = self.spark.createDataFrame([], rows.schema)
            empty.write.format(self.file_format).saveAsTable(table)
            rows.write.insertInto(table)
        except BaseException:
            with contextlib.suppress(*SPARK_FAILURES):
                self._drop(self.table)
            raise

    def _point(self, *, if_missing: bool) -> str | None:
        """Point the view to the run's table; returns the table that it does not read, if any.

        That is the run's own if the view reads the table of a run that began later, and so has
        newer rows. Clocks of hosts differ: they are compared only for runs at the same time.
        """
        if self._is_old(self.table):
            # It was taken for the table of a killed run, maybe.
            self.spark.sql(
                f"alter table {qualified_name(self.schema, self.table)} "
                f"unset tblproperties if exists ('{PROPERTY}{UNUSED}')"
            )
        view = qualified_name(self.schema, self.identifier)
        select = f"select * from {qualified_name(self.schema, self.table)}"
        now = self._table_of_view()
        if now is None:
            self.spark.sql(f"create view if not exists {view} as {select}")
            now = self._table_of_view()
        if now == self.table:
            return None
        if now is not None:
            is_later = (self._began_at(now) or 0) > (self._began_at(self.table) or 0)
            if if_missing or (now != self.before and is_later):
                return self.table
        change_view(self.spark, view, select, PROPERTY, {})
        return now

    def _table_of_view(self) -> str | None:
        """The table that the view reads, None without one; ShardError if the view is not ours."""
        view = qualified_name(self.schema, self.identifier)
        if read_properties(self.spark, view, PROPERTY) is None:
            return None
        rows = self.spark.sql(f"describe extended {view}").collect()
        texts = [row["data_type"] for row in rows if row["col_name"] == "View Text"]
        quoted = re.escape(quote_identifier(self.identifier.lower()).removesuffix("`"))
        found = re.search(f"{quoted}({_OF_A_RUN})`", texts[-1].lower()) if texts else None
        if found is None:
            raise ShardError(
                f"{self.schema}.{self.identifier} was not made by this source. Drop it, or give "
                "the source another schema or identifier"
            )
        return self.identifier.lower() + found[1]

    def _drop_unused(self, keep_ms: int) -> None:
        """Drop tables that were marked `keep_ms` ago, and mark those that killed runs have left.

        Tables of runs that may still write are kept. Raises ShardError if the view is not ours.
        """
        current = self._table_of_view()
        tables = self.spark.sql(f"show tables in {quote_schema(self.schema)}").collect()
        for name in (row["tableName"] for row in tables):
            if self._began_at(name) is None or name == current:
                continue
            found = read_properties(self.spark, qualified_name(self.schema, name), PROPERTY) or {}
            if UNUSED in found:
                if int(found[UNUSED]) <= _now() - keep_ms:
                    self._drop(name)
            elif self._is_old(name):
                self._mark(name)

    def _drop(self, name: str) -> None:
        purge = " purge" if self.file_format == ICEBERG else ""  # which would leave the files
        table = qualified_name(self.schema, name)
        self.spark.sql(f"drop table if exists {table}{purge}")

    def _began_at(self, name: str) -> int | None:
        """When the run of a table began, in ms since the epoch; None for other tables."""
        found = re.fullmatch(re.escape(self.identifier.lower()) + _OF_A_RUN, name.lower())
        return int(found[1]) if found else None

    def _is_old(self, name: str) -> bool:
        return (self._began_at(name) or 0) <= _now() - LONGEST_RUN_MS

    def _mark(self, name: str) -> None:
        """Mark a table that no query reads from now on; another run may have dropped it."""
        since = properties_sql(PROPERTY, {UNUSED: str(_now())})
        with contextlib.suppress(*SPARK_FAILURES):
            table = qualified_name(self.schema, name)
            self.spark.sql(f"alter table {table} set tblproperties {since}")


def _now() -> int:
    return time.time_ns() // 1_000_000


def require_storable(spark: SparkSession, schema: T.StructType) -> None:
    """Raise ShardError with the columns that Spark can't write to a table, and why."""
    has_times = str(spark.conf.get(TIMES, "false")).strip().lower() == "true"
    wrong = [field for field in schema.fields if not _is_storable(field.dataType, has_times)]
    if wrong:
        listed = ", ".join(f"{field.name} ({field.dataType.simpleString()})" for field in wrong)
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
