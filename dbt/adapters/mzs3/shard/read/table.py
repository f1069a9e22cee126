"""A shard's rows as what a source's name stands for: a view of a table that this run has written.

A table that is replaced is gone from when the new one is begun, and for good if its rows can't be
read. So each run writes a table of its own, and then changes the view, which is one step.
"""

from __future__ import annotations

import contextlib
import re
import time
import uuid
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.csv_source.properties import (
    decoded,
    encoded,
    properties_sql,
    read_properties,
)
from dbt.adapters.mzs3.errors import ShardError
from dbt.adapters.mzs3.shard.config.source import ShardSource
from dbt.adapters.mzs3.shard.read.job import read_shard
from dbt.adapters.mzs3.shard.read.storable import require_storable
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, explain
from dbt.adapters.mzs3.spark.sql import quote_identifier

PROPERTY = "mzs3.shard."
# A run whose table is older and still not what the view reads was killed, as far as one can tell.
LONGEST_RUN_MS = 24 * 60 * 60 * 1000


def write_source_table(
    spark: SparkSession,
    source: ShardSource,
    connection: AwsConnection,
    schema: str,
    identifier: str,
    *,
    empty: bool = False,
) -> None:
    """`schema.identifier` has the shard's rows, or none of them if `empty`.

    Raises ShardError or S3Error; it then has the rows that it had before, and so it has after a
    run that was killed.
    """
    try:
        frame = read_shard(
            spark,
            connection,
            source.location,
            as_of=source.as_of,
            names=source.columns or None,
            validate=source.validate,
        )
        require_storable(spark, frame.schema)
        replace_source(spark, schema, identifier, frame.limit(0) if empty else frame)
    except SPARK_FAILURES as exc:
        raise explain(exc) from exc


def replace_source(spark: SparkSession, schema: str, identifier: str, rows: DataFrame) -> None:
    """The source has these rows, or after any failure those of before; makes the schema too.

    Raises ShardError where the name is another relation's, and else what Spark raises.
    """
    spark.sql(f"create schema if not exists {quote_identifier(schema)}")
    _replace(spark, _Names(schema, identifier), rows)


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
        now = time.time_ns() // 1_000_000
        return f"{self.identifier.lower()}__shard_{now}_{uuid.uuid4().hex[:8]}"

    def began_at(self, name: str) -> int | None:
        """When the run began whose table this is, in ms since the epoch; None if it is none's."""
        found = re.fullmatch(
            re.escape(self.identifier.lower()) + "__shard_([0-9]+)_[0-9a-f]{8}", name.lower()
        )
        return int(found[1]) if found else None


def _replace(spark: SparkSession, names: _Names, rows: DataFrame) -> None:
    before = _table_of(spark, names)
    _drop_leftovers(spark, names, before)
    name = names.of_a_run()
    table = names.quoted(name)
    try:
        # With its rows it would come into being after they are written, and a run that is killed
        # would leave files of which no table knows.
        rows.limit(0).write.format("parquet").saveAsTable(table)
        rows.write.insertInto(table)
        _point(spark, names, name)
    except BaseException:
        with contextlib.suppress(ShardError, *SPARK_FAILURES):
            if _table_of(spark, names) != name:
                spark.sql(f"drop table if exists {table}")
        raise
    if before is not None:
        spark.sql(f"drop table if exists {names.quoted(before)}")


def _point(spark: SparkSession, names: _Names, name: str) -> None:
    """The view reads the table of that name."""
    properties = properties_sql(PROPERTY, {"table": encoded(name)})
    table = names.quoted(name)
    spark.sql(
        f"create or replace view {names.view} tblproperties {properties} as select * from {table}"
    )


def _table_of(spark: SparkSession, names: _Names) -> str | None:
    """The table that the view reads, None if there is no view; ShardError for a stranger's."""
    found = read_properties(spark, names.view, PROPERTY)
    if found is None:
        return None
    if "table" not in found:
        raise ShardError(
            f"{names.schema}.{names.identifier} was not made by this source. Drop it, or give the "
            "source another schema or identifier"
        )
    return decoded(found["table"])


def _drop_leftovers(spark: SparkSession, names: _Names, current: str | None) -> None:
    """Tables of runs that were killed are gone; not those of runs that may still write them."""
    newest = time.time_ns() // 1_000_000 - LONGEST_RUN_MS
    tables = spark.sql(f"show tables in {quote_identifier(names.schema)}").collect()
    for name in (row["tableName"] for row in tables):
        began = names.began_at(name)
        if began is not None and began < newest and name != current:
            spark.sql(f"drop table if exists {names.quoted(name)}")
