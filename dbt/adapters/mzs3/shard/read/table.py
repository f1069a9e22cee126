"""A shard's rows as what a source's name stands for: a view of a table that a run has written.

A table never changes once the view reads it. Each run writes one of its own, and then the view
reads that, in one step. Queries that began before are at the older table, for how long nobody
knows: it is marked as unused, and dropped by a run that finds a mark old enough.
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

from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.errors import ShardError
from dbt.adapters.mzs3.shard.config.source import ShardSource
from dbt.adapters.mzs3.shard.read.rows import Comparison, read_shard
from dbt.adapters.mzs3.shard.state.store import NoShardError
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, explain
from dbt.adapters.mzs3.spark.sql import quote_identifier
from dbt.adapters.mzs3.spark.table_properties import properties_sql, read_properties

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
) -> int | None:
    """`schema.identifier` has the shard's rows, or none of them if `empty`.

    With `if_missing` only where it is not there yet. How many values were compared, where the
    source asks for that and rows were read. Raises ShardError or S3Error; it then has the rows
    that it had before, and so it has after a run that was killed.
    """
    comparison = Comparison() if source.validate and not empty else None
    try:
        target = Target.of(spark, schema, identifier)
        frame = read_shard(
            spark,
            connection,
            source.location,
            as_of=source.as_of,
            names=source.columns or None,
            comparison=comparison,
        )
        require_storable(spark, frame.schema)
        rows = spark.createDataFrame([], frame.schema) if empty else frame
        replace_source(spark, target, rows, source.keep_ms, if_missing=if_missing)
    except SPARK_FAILURES as exc:
        raise explain(exc) from exc
    return None if comparison is None else comparison.values


@dataclass(frozen=True)
class Target:
    """A source as a run finds it before it looks at the shard, and the table that it will have."""

    names: _Names
    table: str
    before: str | None
    """The table that the view has read until then."""

    @classmethod
    def of(cls, spark: SparkSession, schema: str, identifier: str) -> Target:
        """Raises ShardError where the name is another relation's."""
        names = _Names(schema, identifier)
        return cls(names, names.of_a_run(), _table_of(spark, names))

    def yields_to(self, now: str, *, if_missing: bool) -> bool:
        """Whether the view keeps the table that it reads by `now`, which is not this run's.

        A run that began later has read what is newer. Clocks of hosts differ: they are asked only
        of runs that went on at the same time.
        """
        if if_missing:
            return True
        later = (self.names.began_at(now) or 0) > (self.names.began_at(self.table) or 0)
        return now != self.before and later


def replace_source(
    spark: SparkSession,
    target: Target,
    rows: DataFrame,
    keep_ms: int,
    *,
    if_missing: bool = False,
) -> None:
    """The source has these rows, or after any failure those of before; makes the schema too.

    It keeps those of a run that began later, and with `if_missing` any that it has. A query that
    has begun reads to its end what it began with, if that takes no longer than `keep_ms`. Raises
    ShardError where the name is another relation's, and else what Spark raises.
    """
    names, name = target.names, target.table
    spark.sql(f"create schema if not exists {quote_identifier(names.schema)}")
    _drop_unused(spark, names, keep_ms)
    _write(spark, names.quoted(name), rows)
    try:
        unread = _point(spark, target, if_missing=if_missing)
    except BaseException:
        with contextlib.suppress(ShardError, *SPARK_FAILURES):
            if _table_of(spark, names) != name:  # but maybe the view has read it, until just now
                _mark(spark, names, name)
        raise
    if unread is not None:
        _mark(spark, names, unread)
        if not keep_ms or unread == name:  # of which no query knows
            spark.sql(f"drop table if exists {names.quoted(unread)}")


def source_exists(spark: SparkSession, schema: str, identifier: str) -> bool:
    """Whether the source was read before, or a relation of its name is there."""
    return read_properties(spark, _Names(schema, identifier).view, PROPERTY) is not None


@dataclass(frozen=True)
class _Names:
    """The view, and the tables that runs write for it."""

    schema: str
    identifier: str

    def quoted(self, name: str) -> str:
        return f"{quote_identifier(self.schema)}.{quote_identifier(name)}"

    @property
    def view(self) -> str:
        return self.quoted(self.identifier)

    def of_a_run(self) -> str:
        """The name of a new table: metastores know no capital letters."""
        return f"{self.identifier.lower()}__shard_{_now()}_{uuid.uuid4().hex[:8]}"

    def began_at(self, name: str) -> int | None:
        """When the run began whose table this is, in ms since the epoch; None if it is none's."""
        found = re.fullmatch(re.escape(self.identifier.lower()) + _OF_A_RUN, name.lower())
        return int(found[1]) if found else None

    def in_text(self, text: str) -> str | None:
        """The table that the text of a view names; None if it names none of a run's."""
        quoted = re.escape(quote_identifier(self.identifier.lower()).removesuffix("`"))
        found = re.search(f"{quoted}({_OF_A_RUN})`", text.lower())
        return None if found is None else self.identifier.lower() + found[1]


def _now() -> int:
    return time.time_ns() // 1_000_000


def _write(spark: SparkSession, table: str, rows: DataFrame) -> None:
    """A new table with these rows; none if that fails."""
    try:
        # With its rows it would come into being after they are written, and a run that is killed
        # would leave files of which no table knows.
        spark.createDataFrame([], rows.schema).write.format("parquet").saveAsTable(table)
        rows.write.insertInto(table)
    except BaseException:
        with contextlib.suppress(*SPARK_FAILURES):
            spark.sql(f"drop table if exists {table}")
        raise


def _point(spark: SparkSession, target: Target, *, if_missing: bool) -> str | None:
    """The view reads the run's table, unless that yields; which table it doesn't read, if any."""
    names, name = target.names, target.table
    if _is_old(names, name):
        # It was taken for the table of a killed run, maybe.
        key = f"{PROPERTY}{UNUSED}"
        spark.sql(f"alter table {names.quoted(name)} unset tblproperties if exists ('{key}')")
    now = _table_of(spark, names)
    select = f"select * from {names.quoted(name)}"
    if now is None:
        spark.sql(f"create view if not exists {names.view} as {select}")
        now = _table_of(spark, names)
    if now == name:
        return None
    if now is not None and target.yields_to(now, if_missing=if_missing):
        return name
    # Not CREATE OR REPLACE: that drops the view first, and readers find none for a moment.
    spark.sql(f"alter view {names.view} as {select}")
    return now


def _table_of(spark: SparkSession, names: _Names) -> str | None:
    """The table that the view reads, None if there is no view; ShardError for a stranger's."""
    if read_properties(spark, names.view, PROPERTY) is None:
        return None
    rows = spark.sql(f"describe extended {names.view}").collect()
    texts = [row["data_type"] for row in rows if row["col_name"] == "View Text"]
    found = names.in_text(texts[-1]) if texts else None
    if found is None:
        raise ShardError(
            f"{names.schema}.{names.identifier} was not made by this source. Drop it, or give the "
            "source another schema or identifier"
        )
    return found


def _drop_unused(spark: SparkSession, names: _Names, keep_ms: int) -> None:
    """Tables are gone that the view has not read for so long, or that killed runs have left.

    Not those of runs that may still write them. Raises ShardError for a stranger's view.
    """
    current = _table_of(spark, names)
    tables = spark.sql(f"show tables in {quote_identifier(names.schema)}").collect()
    for name in (row["tableName"] for row in tables):
        if names.began_at(name) is None or name == current:
            continue
        found = read_properties(spark, names.quoted(name), PROPERTY) or {}
        if UNUSED in found:
            if int(found[UNUSED]) <= _now() - keep_ms:
                spark.sql(f"drop table if exists {names.quoted(name)}")
        elif _is_old(names, name):
            _mark(spark, names, name)


def _is_old(names: _Names, name: str) -> bool:
    return (names.began_at(name) or 0) <= _now() - LONGEST_RUN_MS


def _mark(spark: SparkSession, names: _Names, name: str) -> None:
    """From now on nobody begins to read the table; another run may have dropped it."""
    since = properties_sql(PROPERTY, {UNUSED: str(_now())})
    with contextlib.suppress(*SPARK_FAILURES):
        spark.sql(f"alter table {names.quoted(name)} set tblproperties {since}")


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
    if isinstance(kind, T.ArrayType):
        inside = [kind.elementType]
    elif isinstance(kind, T.MapType):
        inside = [kind.keyType, kind.valueType]
    elif isinstance(kind, T.StructType):
        inside = [field.dataType for field in kind.fields]
        if not inside:
            return False
    else:
        is_time = isinstance(kind, T.TimeType)
        return not isinstance(kind, T.CalendarIntervalType) and (has_times or not is_time)
    return all(_is_storable(inner, has_times) for inner in inside)


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
    """The source `schema.identifier` has no rows, and the columns of the shard.

    With `if_missing` it keeps the rows that it has, if it is there by then.

    Where there is no shard yet, as in a new project of which `--empty` has not written it either,
    it has those declared: `columns`, names and types in SQL. Raises S3Error, or ShardError: if
    there are none, if one has no type, or where the name is another relation's.
    """
    with contextlib.suppress(NoShardError):
        place = (schema, identifier)
        write_source_table(spark, source, connection, *place, empty=True, if_missing=if_missing)
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
    try:
        rows = spark.createDataFrame([], ddl)
        target = Target.of(spark, schema, identifier)
        replace_source(spark, target, rows, source.keep_ms, if_missing=if_missing)
    except SPARK_FAILURES as exc:
        raise explain(exc) from exc
