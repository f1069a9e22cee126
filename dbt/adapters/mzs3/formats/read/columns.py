"""Columns of a source and the types they may have; shared by the driver and the executors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from dbt.adapters.mzs3.names import folded, namesakes

RESERVED_PREFIX = "_mz_"
# Not `_mz_problem`: users never see it.
PROBLEM_COLUMN = "mz_problem"

MAX_PRECISION = 38

ARROW_TYPES = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "binary": pa.binary(),
}

INTEGERS = ("tinyint", "smallint", "int", "bigint")

# Spark's other spellings of the same types.
_SYNONYMS = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "timestamp_ltz": "timestamp",
}

_DECIMAL = re.compile(r"(?:decimal|dec|numeric)(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")

SUPPORTED_TYPES = ", ".join(ARROW_TYPES).replace("double", "double, decimal(p,s)")


@dataclass(frozen=True)
class Column:
    """A column's name in Spark and its type in Spark's DDL, as `canonical_type` spells it."""

    name: str
    data_type: str = "string"


def canonical_type(text: str) -> str:
    """The canonical spelling of a type, such as `decimal(12,2)` for `NUMERIC( 12, 2 )`.

    Raises ValueError, whose text lists what is supported.
    """
    lowered = text.strip().lower()
    name = _SYNONYMS.get(lowered, lowered)
    if name in ARROW_TYPES:
        return name
    decimal = _DECIMAL.fullmatch(lowered)
    if decimal is None:
        raise ValueError(
            f"type {text} is not supported by s3_csv_source; supported are {SUPPORTED_TYPES}"
        )
    # Spark's own defaults: decimal is decimal(10,0), decimal(p) is decimal(p,0).
    precision, scale = int(decimal.group(1) or 10), int(decimal.group(2) or 0)
    if not 1 <= precision <= MAX_PRECISION:
        raise ValueError(f"type {text}: the precision must be from 1 to {MAX_PRECISION}")
    if scale > precision:
        raise ValueError(f"type {text}: the scale must not be greater than the precision")
    return f"decimal({precision},{scale})"


def arrow_type(data_type: str) -> pa.DataType:
    """The Arrow type that Spark's `mapInArrow` expects for a canonical type."""
    if data_type in ARROW_TYPES:
        return ARROW_TYPES[data_type]
    precision, scale = re.findall(r"\d+", data_type)
    return pa.decimal128(int(precision), int(scale))


def arrow_schema(columns_ddl: str) -> pa.Schema:
    """The Arrow schema of columns in Spark's DDL, whose types are canonical ones."""
    columns = (column.split(" ") for column in columns_ddl.split(", "))
    return pa.schema([(name.strip("`"), arrow_type(data_type)) for name, data_type in columns])


def name_problems(names: Sequence[str]) -> list[str]:
    """Why these names cannot be the columns of a table in Spark; empty if they can."""
    problems: list[str] = []
    earlier = {place: first for first, place in namesakes(names)}
    for place, name in enumerate(names):
        if not name:
            problems.append(f"column {place + 1} has an empty name")
        elif folded(name).startswith(RESERVED_PREFIX):
            reserved = f"names that start with {RESERVED_PREFIX} are reserved"
            problems.append(f"column {place + 1} is named {name!r}: {reserved}")
        elif place in earlier:
            first = earlier[place]
            problems.append(f"columns {first + 1} and {place + 1} {_same(names[first], name)}")
    return problems


def _same(first: str, name: str) -> str:
    if first.lower() == name.lower():
        spark = "Spark does not tell upper from lower case by default"
        return f"have the same name {name!r} ({spark})"
    return f"have names that Spark takes for one, {first!r} and {name!r}"


@dataclass(frozen=True)
class RecordLayout:
    """Where the columns are in records of `width` fields: column i is field `fields[i]`."""

    width: int
    fields: tuple[int, ...]

    @classmethod
    def in_order(cls, count: int) -> RecordLayout:
        """One field for each column, in the columns' order."""
        return cls(count, tuple(range(count)))


def unmatchable_names(pinned: Sequence[str]) -> list[str]:
    """Why these names cannot be found by name in a header; empty if they can."""
    numbered = list(enumerate(pinned, 1))
    first = {name: number for number, name in reversed(numbered)}
    empty = [f"column {number} has an empty name" for number, name in numbered if not name]
    return empty + [
        f"columns {first[name]} and {number} have the same name {name!r}"
        for number, name in numbered
        if name and first[name] != number
    ]
