"""Schema evolution: the columns of a shard after those of its model have changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Literal, get_args

import pyarrow as pa
from pyspark.sql import types as T

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.names import folded
from dbt.adapters.mzs3.shard.codec.decode import values_of_datums
from dbt.adapters.mzs3.shard.codec.encode import datums
from dbt.adapters.mzs3.shard.state.spark_types import (
    ddl_of,
    differing_fields,
    holding_both,
    kind_of,
)
from dbt.adapters.mzs3.shard.types import Column, Type, is_wider, wire_type

OnSchemaChange = Literal["ignore", "fail", "append_new_columns", "sync_all_columns"]
POLICIES: tuple[OnSchemaChange, ...] = get_args(OnSchemaChange)
_DROP = (
    "drop the column in one run with on_schema_change: sync_all_columns and add it in the next one"
)


def given_columns(schema: T.StructType, types: Mapping[str, Type]) -> list[Column]:
    """The columns that a new shard has for a query; `types` is `column_types`, by folded name."""
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
    """The columns of the shard from now on; the same ones if nothing has changed.

    A column keeps its tag under another name or a wider type. A new one never gets the tag of a
    dropped one of its name. `renames` has new names by old ones; an earlier run may have carried
    them out. Tags of the `given` columns are ignored. Raises ConfigError with everything that the
    policy or the types do not allow.
    """
    problems: list[str] = []
    found = {folded(column.name): column for column in given}
    columns = [
        _widened(column, found.get(folded(column.name)), policy, problems)
        for column in _renamed(current, renames, problems)
    ]
    known = {folded(column.name) for column in columns}
    gone = [column.name for column in columns if folded(column.name) not in found]
    new = [column for column in given if folded(column.name) not in known]
    if gone and policy in ("ignore", "fail"):
        problems.append(
            f"the shard has {', '.join(gone)}, which the model lacks; select them, or set "
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
        columns = [column for column in columns if column.name not in gone]
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
    known = {folded(column.name) for column in columns}
    names = {}
    for old, new in renames.items():
        has_old, has_new = folded(old) in known, folded(new) in known
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
    both = holding_both(*types)
    if not is_wider(kind, column.kind) or both is None:
        problems.append(
            f"column {column.name} is {column.spark} ({column.kind}) in the shard and "
            f"{given.spark} ({given.kind}) in the model, which does not hold all of its values; "
            f"cast it, or {_DROP}"
        )
        return column
    # A shard knows the fields of a struct by their order: other names may mean other values.
    renamed = [
        f"column {path} has the fields {', '.join(before)} in the shard and {', '.join(now)} "
        "in the model, and a shard knows fields by their order; select them in the shard's "
        "order and under its names, as named_struct does (a cast goes by the order too), or "
        f"select the column under another name, or {_DROP}"
        for path, before, now in differing_fields(column.name, *types, column.kind)
    ]
    problems += renamed
    spark = ddl_of(both)
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
