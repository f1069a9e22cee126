"""Columns that no table of Spark's can have."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from dbt.adapters.mzs3.errors import ShardError

TIMES = "spark.sql.timeType.enabled"


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
