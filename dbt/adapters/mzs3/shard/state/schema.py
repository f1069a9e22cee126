"""The columns of a shard, each under a tag that no other column ever had or will have."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.mzs3.names import folded
from dbt.adapters.mzs3.shard.types.kind import Type, type_from_json


@dataclass(frozen=True)
class Column:
    """A column as users see it, and the tag by which files know it.

    `spark` is its type in Spark's DDL, to which values are cast when they are read. `default` is
    its value in batches that were written before it was added, a message `Datum`; empty for NULL.
    """

    tag: int
    name: str
    kind: Type
    spark: str
    default: bytes = b""

    def as_json(self) -> dict[str, Any]:
        """Plain values that `column_from_json` reads back."""
        return {
            "tag": self.tag,
            "name": self.name,
            "type": self.kind.as_json(),
            "spark": self.spark,
            "default": base64.b64encode(self.default).decode(),
        }


@dataclass(frozen=True)
class Schema:
    """Columns in the order of users' tables, in force from the time `since` on.

    No two have one name or one tag, whatever the case of letters; else ValueError.
    """

    id: int
    since: int
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        names = [column.name.lower() for column in self.columns]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"schema {self.id} has several columns named {', '.join(twice)}")
        if len({column.tag for column in self.columns}) < len(names):
            raise ValueError(f"schema {self.id} has several columns of one tag")

    def find(self, name: str) -> Column | None:
        """The column that a name means to Spark, in any case of letters."""
        found = [column for column in self.columns if folded(column.name) == folded(name)]
        return found[0] if found else None

    def as_json(self) -> dict[str, Any]:
        """Plain values that `schema_from_json` reads back."""
        columns = [column.as_json() for column in self.columns]
        return {"id": self.id, "since": self.since, "columns": columns}


def column_from_json(found: Mapping[str, Any]) -> Column:
    """The column that `as_json` wrote; raises KeyError or ValueError."""
    return Column(
        int(found["tag"]),
        str(found["name"]),
        type_from_json(found["type"]),
        str(found["spark"]),
        base64.b64decode(found["default"], validate=True),
    )


def schema_from_json(found: Mapping[str, Any]) -> Schema:
    """The schema that `as_json` wrote; raises KeyError or ValueError."""
    columns = tuple(map(column_from_json, found["columns"]))
    return Schema(int(found["id"]), int(found["since"]), columns)
