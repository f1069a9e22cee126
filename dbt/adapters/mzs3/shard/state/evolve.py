"""What becomes of a shard's columns when a model's are other ones: rules without effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.shard.executor.batch.widen import widened_datum
from dbt.adapters.mzs3.shard.state.schema import Column
from dbt.adapters.mzs3.shard.types.kind import Type
from dbt.adapters.mzs3.shard.types.widening import is_wider

OnSchemaChange = Literal["ignore", "fail", "append_new_columns", "sync_all_columns"]
POLICIES: tuple[OnSchemaChange, ...] = (
    "ignore",
    "fail",
    "append_new_columns",
    "sync_all_columns",
)


@dataclass(frozen=True)
class Given:
    """A column of the model's query; `spark` is its type in Spark's DDL."""

    name: str
    kind: Type
    spark: str


@dataclass(frozen=True)
class Evolution:
    """What a model says of its columns beside the columns themselves.

    `renames` has new names by old ones; one that was carried out before is nothing new.
    `defaults` has messages `Datum` by the names of columns.
    """

    policy: OnSchemaChange = "append_new_columns"
    renames: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, bytes] = field(default_factory=dict)


def first_columns(given: Sequence[Given]) -> tuple[Column, ...]:
    """The columns of a new shard, with tags from 0."""
    return tuple(
        Column(tag, column.name, column.kind, column.spark) for tag, column in enumerate(given)
    )


def evolved(
    node: str,
    current: Sequence[Column],
    given: Sequence[Given],
    next_tag: int,
    evolution: Evolution = Evolution(),
) -> tuple[Column, ...]:
    """The columns that the shard has from now on; the same ones if nothing has changed.

    A column keeps its tag under another name or a wider type. A new one has a tag of its own,
    from `next_tag` on, also where a dropped one had its name. Raises ConfigError with everything
    that the policy or the types do not allow.
    """
    problems: list[str] = []
    columns = _renamed(current, evolution.renames, problems)
    columns = _widened(columns, given, evolution.policy, problems)
    columns = _without_dropped(columns, given, evolution.policy, problems)
    columns = _with_added(columns, given, next_tag, evolution, problems)
    if problems:
        raise ConfigError(node, problems)
    return tuple(columns)


def _key(name: str) -> str:
    return name.lower()


def _renamed(
    columns: Sequence[Column], renames: Mapping[str, str], problems: list[str]
) -> list[Column]:
    names = {_key(column.name) for column in columns}
    wanted = {_key(old): new for old, new in renames.items()}
    for old, new in renames.items():
        if _key(old) in names and _key(new) in names:
            problems.append(
                f"column_renames has {old}: {new}, but the shard has columns of both names; take "
                "the rename out if it was carried out before, else drop one of them first"
            )
        elif _key(old) not in names and _key(new) not in names:
            problems.append(
                f"column_renames has {old}: {new}, but the shard has no column {old}; it has "
                f"{', '.join(column.name for column in columns)}"
            )
    return [
        replace(column, name=wanted[_key(column.name)])
        if _key(column.name) in wanted and _key(wanted[_key(column.name)]) not in names
        else column
        for column in columns
    ]


def _widened(
    columns: Sequence[Column],
    given: Sequence[Given],
    policy: OnSchemaChange,
    problems: list[str],
) -> list[Column]:
    found = {_key(column.name): column for column in given}
    return [
        _with_type(column, found.get(_key(column.name)), policy, problems) for column in columns
    ]


def _with_type(
    column: Column, given: Given | None, policy: OnSchemaChange, problems: list[str]
) -> Column:
    if given is None or is_wider(column.kind, given.kind):
        return column  # the model's values are widened as they are written
    name = column.name
    if not is_wider(given.kind, column.kind):
        problems.append(
            f"column {name} is {column.spark} ({column.kind}) in the shard and {given.spark} "
            f"({given.kind}) in the model, which does not hold all of its values; cast it, or "
            "drop the column in one run with on_schema_change: sync_all_columns and add it in the "
            "next one"
        )
    elif policy in ("ignore", "fail"):
        problems.append(
            f"column {name} is {column.spark} in the shard and {given.spark} in the model; "
            f"on_schema_change: {policy} keeps types as they are"
        )
    else:
        default = widened_datum(column.default, column.kind, given.kind)
        return replace(column, kind=given.kind, spark=given.spark, default=default)
    return column


def _without_dropped(
    columns: Sequence[Column],
    given: Sequence[Given],
    policy: OnSchemaChange,
    problems: list[str],
) -> list[Column]:
    names = {_key(column.name) for column in given}
    gone = [column.name for column in columns if _key(column.name) not in names]
    if policy == "sync_all_columns":
        return [column for column in columns if _key(column.name) in names]
    if gone and policy in ("ignore", "fail"):
        problems.append(
            f"the shard has {', '.join(gone)}, which the model lacks; select them, or set "
            "on_schema_change to sync_all_columns, which drops them, or to append_new_columns, "
            "which leaves them NULL in new rows"
        )
    return list(columns)


def _with_added(
    columns: Sequence[Column],
    given: Sequence[Given],
    next_tag: int,
    evolution: Evolution,
    problems: list[str],
) -> list[Column]:
    names = {_key(column.name) for column in columns}
    new = [column for column in given if _key(column.name) not in names]
    if evolution.policy == "ignore":
        return list(columns)
    if new and evolution.policy == "fail":
        problems.append(
            f"the model has {', '.join(column.name for column in new)}, which the shard lacks; "
            "on_schema_change: fail allows no new column"
        )
    defaults = {_key(name): default for name, default in evolution.defaults.items()}
    added = [
        Column(tag, column.name, column.kind, column.spark, defaults.get(_key(column.name), b""))
        for tag, column in enumerate(new, start=next_tag)
    ]
    return [*columns, *added]
