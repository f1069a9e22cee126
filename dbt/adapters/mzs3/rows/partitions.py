"""The columns that name folders."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import types as T

_FOLDER_TYPES = (
    T.BooleanType,
    T.ByteType,
    T.ShortType,
    T.IntegerType,
    T.LongType,
    T.DecimalType,
    T.StringType,
    T.CharType,
    T.VarcharType,
    T.DateType,
    T.TimestampType,
    T.TimestampNTZType,
)


def partition_indexes(schema: T.StructType, partition_by: Sequence[str]) -> tuple[int, ...]:
    """Where the columns are in the query, in the order of the folders."""
    names = schema.fieldNames()
    return tuple(names.index(name) for name in partition_by)


def partition_problems(schema: T.StructType, partition_by: Sequence[str]) -> list[str]:
    """Every name in partition_by that is no column, and every type that can't name a folder."""
    names = schema.fieldNames()
    problems = []
    unknown = [name for name in partition_by if name not in names]
    if unknown:
        problems.append(
            f"partition_by names {', '.join(unknown)}, but the columns are {', '.join(names)}"
        )
    for field in schema.fields:
        if field.name in partition_by and not isinstance(field.dataType, _FOLDER_TYPES):
            problems.append(
                f"partition_by names {field.name}, whose type {field.dataType.simpleString()} has "
                "no one text for a folder; cast it, to string for example"
            )
    if partition_by and not unknown and len(set(partition_by)) == len(names):
        problems.append(
            "partition_by names every column; at least one has to be left for the files"
        )
    twice = [name for name in partition_by if names.count(name) > 1]
    if twice:
        problems.append(f"partition_by names {', '.join(twice)}, but two columns have that name")
    return problems
