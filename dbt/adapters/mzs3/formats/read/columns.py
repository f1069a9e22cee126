"""Columns of a source and the types they may have; shared by the driver and the executors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa

from dbt.adapters.mzs3.names import folded, namesakes
from dbt.adapters.mzs3.types.table import (
    MAX_DIGITS,
    TYPES,
    arrow_type,
    decimal_parameters,
    type_named,
)

T = TypeVar("T")

RESERVED_PREFIX = "_mz_"
# Not in `_mz_`, which is for columns that users see.
PROBLEM_COLUMN = "mz_problem"

INTEGERS = ("tinyint", "smallint", "int", "bigint")
DECLARED_TYPES = [row.name for row in TYPES if row.is_declared]
SUPPORTED_TYPES = ", ".join(DECLARED_TYPES).replace("decimal", "decimal(p,s)")


@dataclass(frozen=True)
class Column:
    """A column's name in Spark and its type in Spark's DDL, as `canonical_type` spells it.

    If it `is_added`, earlier objects brought no such column, so that others may lack it too.
    """

    name: str
    data_type: str = "string"
    is_added: bool = field(default=False, compare=False)


def canonical_type(text: str) -> str:
    """The canonical spelling of a type, such as `decimal(12,2)` for `NUMERIC( 12, 2 )`.

    Raises ValueError, whose text lists the supported types.
    """
    lowered = text.strip().lower()
    parameters = decimal_parameters(lowered)
    if parameters is None:
        row = type_named(lowered)
        if row is None or not row.is_declared:
            raise ValueError(
                f"type {text} is not supported by s3_csv_source; supported are {SUPPORTED_TYPES}"
            )
        return row.name
    precision, scale = parameters
    if not 1 <= precision <= MAX_DIGITS:
        raise ValueError(f"type {text}: the precision must be from 1 to {MAX_DIGITS}")
    if scale > precision:
        raise ValueError(f"type {text}: the scale must not be greater than the precision")
    return f"decimal({precision},{scale})"


def arrow_schema(columns_ddl: str) -> pa.Schema:
    """The Arrow schema of columns in Spark's DDL with canonical types."""
    columns = (column.split(" ") for column in columns_ddl.split(", "))
    return pa.schema([(name.strip("`"), arrow_type(data_type)) for name, data_type in columns])


def name_problems(names: Sequence[str]) -> list[str]:
    """Why these names cannot be the columns of a table in Spark; empty if they can."""
    problems: list[str] = []
    earlier = {index: first for first, index in namesakes(names)}
    for index, name in enumerate(names):
        if not name:
            problems.append(f"column {index + 1} has an empty name")
        elif folded(name).startswith(RESERVED_PREFIX):
            reserved = f"names that start with {RESERVED_PREFIX} are reserved"
            problems.append(f"column {index + 1} is named {name!r}: {reserved}")
        elif index in earlier:
            first = earlier[index]
            problems.append(f"columns {first + 1} and {index + 1} {_same(names[first], name)}")
    return problems


def _same(first: str, name: str) -> str:
    if first.lower() == name.lower():
        spark = "Spark does not tell upper from lower case by default"
        return f"have the same name {name!r} ({spark})"
    return f"have names that Spark takes for one, {first!r} and {name!r}"


def added_places(columns: Sequence[Column]) -> list[int]:
    """The places of the columns that objects may lack."""
    return [place for place, column in enumerate(columns) if column.is_added]


@dataclass(frozen=True)
class RecordLayout:
    """Where the columns are in records of `width` fields: column i is field `fields[i]`.

    Columns in the places `missing` are not counted there: an object without them has NULL.
    """

    width: int
    fields: tuple[int, ...]
    missing: tuple[int, ...] = ()

    @classmethod
    def in_order(cls, count: int) -> RecordLayout:
        """One field for each column, in the columns' order."""
        return cls(count, tuple(range(count)))

    def present(self, of_columns: Sequence[T]) -> list[T]:
        """What belongs to the columns that the object has."""
        return [one for place, one in enumerate(of_columns) if place not in self.missing]

    def with_missing(
        self, arrays: Sequence[pa.Array], kinds: Sequence[pa.DataType]
    ) -> list[pa.Array]:
        """The columns that the object has, and NULLs for the others; `kinds` are of all."""
        every = list(arrays)
        for place in self.missing:
            every.insert(place, pa.nulls(len(arrays[0]), kinds[place]))
        return every


def unmatchable_names(pinned: Sequence[str]) -> list[str]:
    """Why these names cannot be looked up in a header; empty if they can."""
    numbered = list(enumerate(pinned, 1))
    first = {name: number for number, name in reversed(numbered)}
    empty = [f"column {number} has an empty name" for number, name in numbered if not name]
    return empty + [
        f"columns {first[name]} and {number} have the same name {name!r}"
        for number, name in numbered
        if name and first[name] != number
    ]
