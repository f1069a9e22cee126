"""Writing a DataFrame as a partition of a table."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dbt.adapters.mzs3.spark.sql import quote_identifier, quote_literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def insert_partition(
    spark: SparkSession,
    frame: DataFrame,
    table: str,
    partition: Mapping[str, str],
    *,
    overwrite: bool = False,
) -> None:
    """The frame's rows are in a partition that nobody has written before; none on failure.

    With `overwrite`, what a failed attempt may have left there goes.

    Columns go by position. The partition appears to readers when the metastore lists it, which
    is one step, after all of its files are in place. The frame may read the same table.
    """
    view = f"mzs3_{uuid.uuid4().hex}"
    values = ", ".join(
        f"{quote_identifier(name)} = {quote_literal(value)}" for name, value in partition.items()
    )
    frame.createOrReplaceTempView(view)
    try:
        how = "OVERWRITE" if overwrite else "INTO"
        spark.sql(f"INSERT {how} TABLE {table} PARTITION ({values}) SELECT * FROM {view}")
    finally:
        spark.catalog.dropTempView(view)
