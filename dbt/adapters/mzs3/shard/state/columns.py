"""A shard's columns: their types, derived from Spark's types, and schema evolution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Literal, get_args

import pyarrow as pa
from pyspark.sql import types as T

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.names import folded
from dbt.adapters.mzs3.rows.columns import parts_of
from dbt.adapters.mzs3.shard.codec.decode import values_of_datums
from dbt.adapters.mzs3.shard.codec.encode import datums
from dbt.adapters.mzs3.shard.types import (
    CONTAINERS,
    LARGEST,
    LISTS,
    Column,
    Type,
    is_wider,
    wire_type,
)
from dbt.adapters.mzs3.spark.sql import quote_identifier
from dbt.adapters.mzs3.types.table import row_of

OnSchemaChange = Literal["ignore", "fail", "append_new_columns", "sync_all_columns"]
POLICIES: tuple[OnSchemaChange, ...] = get_args(OnSchemaChange)
_DROP = (
    "drop the column in one run with on_schema_change: sync_all_columns and add it in the next one"
)


def kind_of(data_type: T.DataType) -> Type:
    """The shard's type for a Spark type that can be exported."""
    if isinstance(data_type, T.DecimalType):
        return Type("numeric", precision=data_type.precision, scale=data_type.scale)
    inside = tuple(kind_of(inner) for _, inner in parts_of(data_type))
    return Type(row_of(data_type.typeName()).shard, inside)


def ddl_of(data_type: T.DataType) -> str:
    """The type in DDL, with `string` for any text type. Quotes fields; `simpleString` does not."""
    if isinstance(data_type, T.StructType):
        fields = (f"{quote_identifier(f.name)}:{ddl_of(f.dataType)}" for f in data_type.fields)
        return f"struct<{','.join(fields)}>"
    if inside := parts_of(data_type):
        return f"{data_type.typeName()}<{','.join(ddl_of(inner) for _, inner in inside)}>"
    is_text = isinstance(data_type, (T.NullType, T.StringType, T.CharType, T.VarcharType))
    return "string" if is_text else data_type.simpleString()


def fits(data_type: T.DataType, kind: Type) -> bool:
    """Whether a shard's column of type `kind` can store values of the Spark type.

    Values of ranges, PostgreSQL's arrays and similar types are structs of their parts, in order.
    """
    if kind.name == "uuid":
        return isinstance(data_type, (T.StringType, T.BinaryType))
    if kind.name in LARGEST:
        return isinstance(data_type, T.IntegralType) or (
            isinstance(data_type, T.DecimalType) and data_type.scale == 0
        )
    if kind.name not in CONTAINERS:
        return is_wider(kind, kind_of(data_type))
    nested = {**dict.fromkeys(LISTS, T.ArrayType), "map": T.MapType}.get(kind.name, T.StructType)
    inside = [inner for _, inner in parts_of(data_type)]
    return (
        isinstance(data_type, nested)
        and len(inside) == len(kind.children)
        and all(map(fits, inside, kind.children))
    )


def common_type(first: T.DataType, second: T.DataType) -> T.DataType | None:
    """The Spark type that can represent all values of both types, or None.

    Fields are matched by position; the result has the field names of `first`.
    """
    if first == second:
        return first
    if isinstance(first, T.NumericType) and isinstance(second, T.NumericType):
        mine, theirs = kind_of(first), kind_of(second)
        if is_wider(mine, theirs):
            return first
        return second if is_wider(theirs, mine) else None
    if type(first) is not type(second):
        return None
    if isinstance(first, T.TimeType) and isinstance(second, T.TimeType):
        return max(first, second, key=lambda time: time.precision)
    intervals = (T.DayTimeIntervalType, T.YearMonthIntervalType)
    if isinstance(first, intervals) and isinstance(second, intervals):
        start = min(first.startField, second.startField)
        end = max(first.endField, second.endField)
        return type(first)(start, end)
    pairs = zip(parts_of(first), parts_of(second), strict=False)
    inside = [common_type(mine, theirs) for (_, mine), (_, theirs) in pairs]
    merged = [kind for kind in inside if kind is not None]
    if not len(merged) == len(parts_of(first)) == len(parts_of(second)):
        return None
    if isinstance(first, T.StructType):
        return T.StructType(list(map(T.StructField, first.names, merged)))
    return type(first)(*merged)


def differing_fields(
    path: str, one: T.DataType, other: T.DataType, kind: Type
) -> Iterator[tuple[str, Sequence[str], Sequence[str]]]:
    """Yields the path and both lists of field names of each struct whose field names differ.

    Ignores case, and types such as ranges, whose parts have no names for users.
    """
    names, others = ([step[1:] for step, _ in parts_of(struct)] for struct in (one, other))
    if kind.name == "record" and list(map(str.lower, names)) != list(map(str.lower, others)):
        yield path, names, others
        return
    inside = zip(parts_of(one), parts_of(other), kind.children, strict=False)
    for (step, mine), (_, theirs), child in inside:
        yield from differing_fields(path + step, mine, theirs, child)


def given_columns(schema: T.StructType, types: Mapping[str, Type]) -> list[Column]:
    """A new shard's columns for a query's schema; `types` is `column_types`, by folded name."""
    return [
        Column(
            tag,
            field.name,
            types.get(folded(field.name)) or kind_of(field.dataType),
            ddl_of(field.dataType),
        )
        for tag, field in enumerate(schema.fields)
    ]


def evolved_columns(
    node: str,
    current: Sequence[Column],
    given: Sequence[Column],
    next_tag: int,
    *,
    policy: OnSchemaChange = "append_new_columns",
    renames: Mapping[str, str] = MappingProxyType({}),
    defaults: Mapping[str, bytes] = MappingProxyType({}),
) -> tuple[Column, ...]:
    """The shard's columns from now on: the `current` ones, adapted to the `given` ones of a model.

    A renamed or widened column keeps its tag. A new column gets an unused tag, even if a dropped
    column had its name. `renames` maps old names to new ones; an earlier run may have carried it
    out. Tags of the `given` columns are ignored. Raises ConfigError with everything that the
    policy or the types do not allow.
    """
    problems: list[str] = []
    by_name = {folded(column.name): column for column in given}
    columns = [
        _widened(column, by_name.get(folded(column.name)), policy, problems)
        for column in _renamed(current, renames, problems)
    ]
    current_names = {folded(column.name) for column in columns}
    missing = [column.name for column in columns if folded(column.name) not in by_name]
    new = [column for column in given if folded(column.name) not in current_names]
    if missing and policy in ("ignore", "fail"):
        problems.append(
            f"the shard has {', '.join(missing)}, which the model lacks; select them, or set "
            "on_schema_change to sync_all_columns, which drops them, or to append_new_columns, "
            "which has them NULL in the rows of the model (with mode: diff in all rows)"
        )
    if new and policy == "fail":
        problems.append(
            f"the model has {', '.join(column.name for column in new)}, which the shard lacks; "
            "on_schema_change: fail allows no new column. Leave them out, or set it to "
            "append_new_columns, or to ignore, which keeps them out of the shard"
        )
    if problems:
        raise ConfigError(node, problems)
    if policy == "sync_all_columns":
        columns = [column for column in columns if column.name not in missing]
    if policy != "ignore":
        values = {folded(name): default for name, default in defaults.items()}
        columns += [
            replace(column, tag=tag, default=values.get(folded(column.name), b""))
            for tag, column in enumerate(new, start=next_tag)
        ]
    return tuple(columns)


def _renamed(
    columns: Sequence[Column], renames: Mapping[str, str], problems: list[str]
) -> list[Column]:
    current_names = {folded(column.name) for column in columns}
    names = {}
    for old, new in renames.items():
        has_old, has_new = folded(old) in current_names, folded(new) in current_names
        if has_old and not has_new:
            names[folded(old)] = new
        elif has_old:
            problems.append(
                f"column_renames has {old}: {new}, but the shard has columns of both names; take "
                "the rename out if it was carried out before, else drop one of them first"
            )
        elif not has_new:
            problems.append(
                f"column_renames has {old}: {new}, but the shard has no column {old}; it has "
                f"{', '.join(column.name for column in columns)}"
            )
    return [
        replace(column, name=names.get(folded(column.name), column.name)) for column in columns
    ]


def _widened(
    column: Column, given: Column | None, policy: OnSchemaChange, problems: list[str]
) -> Column:
    if given is None or (given.kind, given.spark) == (column.kind, column.spark):
        return column
    # Values of a narrower type in the model are widened as they are written.
    kind = column.kind if is_wider(column.kind, given.kind) else given.kind
    types = T.DataType.fromDDL(column.spark_sql), T.DataType.fromDDL(given.spark_sql)
    merged = common_type(*types)
    if not is_wider(kind, column.kind) or merged is None:
        problems.append(
            f"column {column.name} is {column.spark} ({column.kind}) in the shard and "
            f"{given.spark} ({given.kind}) in the model, which does not hold all of its values; "
            f"cast it, or {_DROP}"
        )
        return column
    # A shard identifies a struct's fields by position: new names may mean reordered fields.
    renamed = [
        f"column {path} has the fields {', '.join(before)} in the shard and {', '.join(now)} "
        "in the model, and a shard knows fields by their order; select them in the shard's "
        "order and under its names, as named_struct does (a cast goes by the order too), or "
        f"select the column under another name, or {_DROP}"
        for path, before, now in differing_fields(column.name, *types, column.kind)
    ]
    problems += renamed
    spark = ddl_of(merged)
    if renamed or (kind, spark) == (column.kind, column.spark):
        return column
    if policy in ("ignore", "fail"):
        problems.append(
            f"column {column.name} is {column.spark} in the shard and {given.spark} in the model; "
            f"on_schema_change: {policy} keeps types as they are. Cast it, or set "
            "on_schema_change to append_new_columns, which takes the wider type over"
        )
        return column
    default = column.default
    if default:
        value = values_of_datums(pa.array([default]), column.kind).cast(wire_type(kind))
        default = bytes(datums(value, kind)[0].as_py())
    return replace(column, kind=kind, spark=spark, default=default)
