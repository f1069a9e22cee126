"""Reading a shard that a source or an operation names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.mzs3.aws.client import s3_client
from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.aws.location import S3Location
from dbt.adapters.mzs3.errors import ShardError
from dbt.adapters.mzs3.shard.read.rows import Comparison, Shelf, rows_at
from dbt.adapters.mzs3.shard.state.schema import Column, Schema
from dbt.adapters.mzs3.shard.state.store import StateStore


def read_shard(
    spark: SparkSession,
    connection: AwsConnection,
    location: S3Location,
    *,
    as_of: int | None = None,
    names: Sequence[str] | None = None,
    comparison: Comparison | None = None,
) -> DataFrame:
    """A shard's rows as of a time in ms since the epoch, or as of its last one.

    `names` are the columns that are fetched, of those that the shard had at that time; None is
    all of them. With a `comparison`, both encodings are decoded and compared. Raises ShardError.
    """
    state = StateStore(s3_client(connection), location).existing().state
    moment = state.upper - 1 if as_of is None else as_of
    state.batches_until(moment)  # a time that can't be read is why it may lack a column
    columns = _columns(state.schema_at(moment), names)
    shelf = Shelf(connection, location)
    return rows_at(spark, shelf, state, moment, columns, comparison=comparison)


def _columns(schema: Schema, names: Sequence[str] | None) -> tuple[Column, ...]:
    if names is None:
        return schema.columns
    found: Mapping[str, Column | None] = {name: schema.find(name) for name in names}
    missing = [name for name, column in found.items() if column is None]
    if missing:
        raise ShardError(
            f"the shard had no column {', '.join(missing)} at that time; it had "
            f"{', '.join(column.name for column in schema.columns)}. List those under the "
            "source's columns, or give another as_of"
        )
    return tuple(column for column in found.values() if column is not None)
