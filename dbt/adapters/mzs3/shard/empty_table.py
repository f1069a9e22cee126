"""A source without rows, whether its shard is there or not."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from pyspark.sql import SparkSession

from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.errors import ShardError
from dbt.adapters.mzs3.shard.config.source import ShardSource
from dbt.adapters.mzs3.shard.read.table import Target, replace_source, write_source_table
from dbt.adapters.mzs3.shard.state.store import NoShardError
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, explain
from dbt.adapters.mzs3.spark.sql import quote_identifier


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
