"""The columns of a shard, each under a tag that no other one ever had; Spark's types."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.mzs3.names import folded
from dbt.adapters.mzs3.shard.types.kind import Type, is_wider, type_from_json

_NAME = re.compile(r"`((?:[^`]|``)*)`:")
_SCALAR = re.compile(r"[^<>,()]+(?:\([^)]*\))?")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_TIME = re.compile(r"time\((\d+)\)")
_NUMBERS = {
    "tinyint": Type("tinyint"),
    "smallint": Type("smallint"),
    "int": Type("integer"),
    "bigint": Type("bigint"),
    "float": Type("real"),
    "double": Type("double"),
}
_INTERVALS = (("year", "month"), ("day", "hour", "minute", "second"))


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


@dataclass(frozen=True)
class SparkType:
    """A type of Spark's: `name` is all of a scalar's DDL; `fields` are those of a struct."""

    name: str
    children: tuple[SparkType, ...] = ()
    fields: tuple[str, ...] = ()

    @property
    def ddl(self) -> str:
        """The DDL that `parsed` reads back."""
        if self.name == "struct":
            names = ("`" + name.replace("`", "``") + "`" for name in self.fields)
            pairs = zip(names, self.children, strict=True)
            return f"struct<{','.join(f'{name}:{child.ddl}' for name, child in pairs)}>"
        if self.children:
            return f"{self.name}<{','.join(child.ddl for child in self.children)}>"
        return self.name


def parsed(ddl: str) -> SparkType:
    """The type in DDL as `rows.kinds.ddl_of` writes it; any other text is a scalar's name."""
    try:
        found, end = _type_at(ddl, 0)
    except ValueError:
        return SparkType(ddl)
    return found if end == len(ddl) else SparkType(ddl)


def holding_both(one: SparkType, other: SparkType) -> SparkType | None:
    """The type that has every value of both, with the first one's names of fields, or None.

    Fields are taken by place: their names are for `differing_fields` to compare.
    """
    if one.children or other.children or one.name == "struct":
        if one.name != other.name or len(one.children) != len(other.children):
            return None
        inside = [holding_both(*pair) for pair in zip(one.children, other.children, strict=True)]
        known = tuple(child for child in inside if child is not None)
        return SparkType(one.name, known, one.fields) if len(known) == len(inside) else None
    if one == other:
        return one
    name = _interval_of_both(one.name, other.name) or _time_of_both(one.name, other.name)
    if name is not None:
        return SparkType(name)
    mine, theirs = _number(one.name), _number(other.name)
    if mine is None or theirs is None:
        return None
    if is_wider(mine, theirs):
        return one
    return other if is_wider(theirs, mine) else None


def differing_fields(
    path: str, one: SparkType, other: SparkType, kind: Type
) -> Iterator[tuple[str, Sequence[str], Sequence[str]]]:
    """Where structs at any depth name their fields differently: path, names of each.

    Letters' case is all the same. The parts of a type such as `range` go by place alone.
    """
    if kind.name == "record" and [n.lower() for n in one.fields] != [
        n.lower() for n in other.fields
    ]:
        yield path, one.fields, other.fields
        return
    if not len(one.children) == len(other.children) == len(kind.children):
        return
    inside = {"array": ["[]"], "map": [".key", ".value"]}.get(
        one.name, [f".{name}" for name in one.fields]
    )
    pairs = zip(one.children, other.children, kind.children, strict=True)
    for step, (mine, theirs, child) in zip(inside, pairs, strict=False):
        yield from differing_fields(path + step, mine, theirs, child)


def _type_at(ddl: str, place: int) -> tuple[SparkType, int]:
    """The type that begins there, and where it ends; raises ValueError."""
    scalar = _SCALAR.match(ddl, place)
    if scalar is None:
        raise ValueError(ddl)
    name, place = scalar[0], scalar.end()
    if ddl[place : place + 1] != "<":
        return SparkType(name), place
    children: list[SparkType] = []
    fields: list[str] = []
    while ddl[place] != ">":
        place += 1
        if ddl[place : place + 1] == ">":
            break
        if name == "struct":
            found = _NAME.match(ddl, place)
            if found is None:
                raise ValueError(ddl)
            fields.append(found[1].replace("``", "`"))
            place = found.end()
        child, place = _type_at(ddl, place)
        children.append(child)
        if ddl[place : place + 1] not in (",", ">"):
            raise ValueError(ddl)
    return SparkType(name, tuple(children), tuple(fields)), place + 1


def _number(name: str) -> Type | None:
    found = _DECIMAL.fullmatch(name)
    if found:
        return Type("numeric", precision=int(found[1]), scale=int(found[2]))
    return _NUMBERS.get(name)


def _interval_of_both(one: str, other: str) -> str | None:
    """From the largest unit of both to the smallest, of units that can stand together."""
    units = [text.removeprefix("interval ").split(" to ") for text in (one, other)]
    for known in _INTERVALS:
        if all(unit in known for unit in (*units[0], *units[1])):
            places = sorted(known.index(unit) for unit in (*units[0], *units[1]))
            first, last = known[places[0]], known[places[-1]]
            return f"interval {first}" if first == last else f"interval {first} to {last}"
    return None


def _time_of_both(one: str, other: str) -> str | None:
    digits = [_TIME.fullmatch(text) for text in (one, other)]
    found = [int(match[1]) for match in digits if match]
    return f"time({max(found)})" if len(found) == len(digits) else None
