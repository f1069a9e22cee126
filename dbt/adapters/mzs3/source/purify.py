"""Purification: what a definition left open is replaced by what was found, and pinned.

Which field of a header each declared column is goes by its name, or by its position.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pyarrow as pa

from dbt.adapters.mzs3.errors import ConfigError, SourceError
from dbt.adapters.mzs3.formats.dialect import CsvDialect
from dbt.adapters.mzs3.formats.read.columns import Column, name_problems, unmatchable_names
from dbt.adapters.mzs3.formats.read.convert import convert
from dbt.adapters.mzs3.formats.read.encoding import UTF_8
from dbt.adapters.mzs3.formats.read.format import CSV, EXACT, SUBSET, RecordField
from dbt.adapters.mzs3.formats.read.typed import VOID, misfits
from dbt.adapters.mzs3.names import folded
from dbt.adapters.mzs3.source.options import PINNED, SourceDefinition
from dbt.adapters.mzs3.spark.sql import PARQUET

# Of these nearly any text is a value.
_OF_ANY_TEXT = ("string", "binary")
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")


@dataclass(frozen=True)
class PinnedDefinition:
    """A source's header and columns, with nothing left open, and how its objects are read.

    `header` is what every object's header must equal, as `header_match` says, None for objects
    without one; `columns` are the names and types in Spark, one for each of its names. `fields`
    has for each column the position of its name in the header; it is empty where they are in one
    order, as all were that an earlier version has pinned. `origin` is the URI of the object whose
    header it is, None for one that was declared, or pinned by an earlier version; definitions
    that differ in no more are equal. `others` are options that are pinned and have no field here;
    what was pinned before there was one has its default. The pattern is not pinned, nor what is
    done with headers and rows that do not fit: these may change without making wrong what was
    taken.
    """

    header: tuple[str, ...] | None
    columns: tuple[Column, ...]
    location: str
    dialect: CsvDialect
    compression: str
    encoding: str = UTF_8
    format: str = CSV
    file_format: str = PARQUET
    fields: tuple[int, ...] = ()
    origin: str | None = field(default=None, compare=False)
    others: Mapping[str, Any] = field(default_factory=dict)

    def fetched(self) -> tuple[Column, ...]:
        """The columns in the header's order, which is that in which objects are read."""
        if not self.fields:
            return self.columns
        return tuple(self.columns[self.fields.index(n)] for n in range(len(self.fields)))

    def misplaced(self) -> list[str]:
        """The columns that an earlier version has pinned to another field than that of their name,
        as it went by positions alone."""
        if self.header is None or self.fields:
            return []
        header = [folded(name) for name in self.header]
        columns = [(column.name, folded(column.name)) for column in self.columns]
        return [
            name
            for (name, own), field in zip(columns, header, strict=True)
            if own != field and own in header
        ]

    def sql(self) -> str:
        """The definition in words, such as `(a, b) FORMAT CSV WITH HEADER COLUMNS (id, value)`."""
        return f"{self.aliases_sql()} {self.format_sql()}".lstrip()

    def aliases_sql(self) -> str:
        """The columns' names in parentheses; empty where they are the header's."""
        names = tuple(column.name for column in self.fetched())
        return "" if names == self.header else sql_names(names)

    def format_sql(self) -> str:
        """The format and its columns, such as `FORMAT CSV WITH HEADER COLUMNS (id, value)`."""
        name = self.format.upper()
        if self.header is None:
            return f"FORMAT {name} WITH {len(self.columns)} COLUMNS"
        return f"FORMAT {name} WITH HEADER COLUMNS {sql_names(self.header)}"

    def to_json(self) -> str:
        """The definition as one line of JSON, for `from_json`.

        Columns are in the header's order, as they were before `order` was: a version that does
        not know it takes them for others than are declared, and never one for another.
        """
        stored = asdict(self)
        stored |= stored.pop("others")
        stored["order"] = stored.pop("fields")
        stored["columns"] = [asdict(column) for column in self.fetched()]
        return json.dumps(stored)

    @classmethod
    def from_json(cls, text: str) -> PinnedDefinition:
        """The definition that `to_json` wrote, without keys that a later version gave it."""
        stored = json.loads(text)
        value = {
            one.name: stored[one.name] for one in dataclasses.fields(cls) if one.name in stored
        }
        value["header"] = None if value["header"] is None else tuple(value["header"])
        columns = tuple(Column(**column) for column in value["columns"])
        value["fields"] = tuple(stored.get("order", ()))
        value["columns"] = tuple(columns[at] for at in value["fields"]) or columns
        value["others"] = {
            key: stored.get(key, one.default) for key, one in PINNED.items() if key not in _OWN
        }
        value["dialect"] = CsvDialect(**value["dialect"])
        return cls(**value)


_OWN = {one.name for kind in (PinnedDefinition, CsvDialect) for one in dataclasses.fields(kind)}


def purify(definition: SourceDefinition, found: Sequence[RecordField] | None) -> PinnedDefinition:
    """The definition with nothing left open, from an object's header, if any has one.

    `found` is for definitions that discover it. Columns without a type have that of their field,
    or else string. Raises SourceError where the header that is needed was not found, ConfigError
    where it does not go with the declared columns, or its fields can't be read as them.
    """
    header: tuple[str, ...] | None = None
    fields: tuple[int, ...] = ()
    if definition.header is False:
        columns = _without_header(definition)
    else:
        header, fields, columns = _of_header(definition, found)
    return PinnedDefinition(
        header=header,
        columns=columns,
        location=definition.location.uri,
        dialect=definition.dialect,
        compression=definition.compression,
        encoding=definition.reading.encoding,
        format=definition.format,
        fields=fields,
        others={
            key: value for key, value in definition.pinned_options().items() if key not in _OWN
        },
    )


def _without_header(definition: SourceDefinition) -> tuple[Column, ...]:
    count = definition.column_count or 0
    return definition.columns or tuple(Column(f"column{n}") for n in range(1, count + 1))


def _of_header(
    definition: SourceDefinition, found: Sequence[RecordField] | None
) -> tuple[tuple[str, ...], tuple[int, ...], tuple[Column, ...]]:
    """The names to pin, the position among them of each column's, and the columns."""
    listed = definition.header if isinstance(definition.header, tuple) else None
    if listed is None and found is None:
        raise SourceError(
            f"{definition.name}: no object at {definition.location.uri} that matches "
            f"{definition.pattern!r} has a header to learn the columns from. Put one there, "
            "or declare the names as `header: [name, ...]`"
        )
    header = listed or tuple(field.name for field in found or ())
    declared, match = definition.columns, definition.reading.header_match
    columns = declared or tuple(Column(name, "") for name in header)
    places: tuple[int, ...] = tuple(range(len(header)))
    problems = [] if declared else _unnamed(header)
    if declared:
        try:
            names = [column.name for column in declared]
            places = columns_fields(names, header, match, listed=listed is not None)
        except ValueError as exc:
            raise ConfigError(f"source {definition.name}", [str(exc)]) from exc
    if listed is None and definition.format == CSV and _is_record(definition, header):
        problems.append(
            f"the first line is {sql_names(header)}, whose values are of the types declared: it "
            "looks like a record, not a header. Declare `header: false` if it is one, or else its "
            "names as `header: [name, ...]`"
        )
    kept = sorted(places)
    pinned = tuple(header[place] for place in kept)
    problems += _unmatchable(pinned, match)
    if found and listed is None:
        columns, misfit = _typed(header, columns, [found[place] for place in places])
        problems += misfit
    if problems:
        raise ConfigError(f"source {definition.name}", problems)
    columns = tuple(replace(one, data_type=one.data_type or "string") for one in columns)
    fields = tuple(kept.index(place) for place in places)
    return pinned, fields if list(fields) != sorted(fields) else (), columns


def _typed(
    header: Sequence[str], columns: Sequence[Column], fields: Sequence[RecordField]
) -> tuple[tuple[Column, ...], list[str]]:
    """The columns with the types of their fields where none is declared, and what is wrong."""
    own = ["string" if field.own in (None, VOID) else str(field.own) for field in fields]
    typed = tuple(
        replace(column, data_type=column.data_type or kind)
        for column, kind in zip(columns, own, strict=True)
    )
    return typed, [
        f"the header is {sql_names(header)}: {problem}; declare another data_type, or leave "
        "it out: declare the others as `columns`, and `header_match: subset`"
        for problem in misfits(fields, typed)
    ]


def _unnamed(header: Sequence[str]) -> list[str]:
    return [
        f"the header is {sql_names(header)}: {problem}; declare `columns` to name them"
        for problem in name_problems(header)
    ]


def _unmatchable(header: Sequence[str], match: str) -> list[str]:
    return [
        f"the header is {sql_names(header)}: {problem}, so its columns can't be told by name "
        f"as header_match: {match} does; leave out header_match, or give each object's "
        "columns names of their own"
        for problem in (unmatchable_names(header) if match != EXACT else ())
    ]


def contradictions(pinned: PinnedDefinition, definition: SourceDefinition) -> list[str]:
    """What the definition now says that the pinned one does not; empty if they agree."""
    then = {**vars(pinned), **vars(pinned.dialect), **pinned.others}
    now = {
        **definition.pinned_options(),
        "file_format": definition.file_format or pinned.file_format,
    }
    found = [
        f"the {key} is declared as {declared!r} but was pinned as {then[key]!r}"
        for key, declared in now.items()
        if declared != then[key]
    ]
    header = pinned.header
    if (definition.header is False) != (header is None):
        declared, before = ("without", "with") if header else ("with", "without")
        return [*found, f"it is declared {declared} a header but was pinned {before} one"]
    if header is None:
        return found + _column_differences(_without_header(definition), pinned.columns)
    if isinstance(definition.header, tuple) and definition.header != header:
        found.append(
            f"the header is declared as {sql_names(definition.header)} but was pinned as "
            f"{sql_names(header)}"
        )
    if not definition.columns and (problems := _unnamed(header)):
        return found + problems
    # As they were pinned, by whatever rule of that time: what was taken was read so.
    columns = definition.columns or tuple(
        Column(header[place], "") for place in pinned.fields or range(len(header))
    )
    return [
        *found,
        *_unmatchable(header, definition.reading.header_match),
        *_column_differences(columns, pinned.columns),
    ]


def _column_differences(wanted: Sequence[Column], pinned: Sequence[Column]) -> list[str]:
    if len(wanted) != len(pinned):
        return [f"{len(wanted)} columns are declared but {len(pinned)} were pinned"]
    typed = [
        replace(now, data_type=now.data_type or then.data_type)
        for now, then in zip(wanted, pinned, strict=True)
    ]
    return [
        f"column {position} is declared as {_column(now)} but was pinned as {_column(then)}"
        for position, (now, then) in enumerate(zip(typed, pinned, strict=True), 1)
        if now != then
    ]


def _column(column: Column) -> str:
    return f"{sql_name(column.name)} {column.data_type}"


def columns_fields(
    names: Sequence[str], header: Sequence[str], match: str, *, listed: bool
) -> tuple[int, ...]:
    """For each declared name, the position of its field in the header.

    A name that the header has is that field, wherever it is: as it is written, or else as Spark
    takes names for one. If the header has none of them, they are aliases, in its order. Nothing in
    between is guessed: raises ValueError, which says both lists and the ways out. Only where the
    source lists the header (`listed`) may some names be aliases, if the others are where they
    stand in the header.
    """
    fields = [_named(name, header) for name in names]
    known = [field for field in fields if field is not None]
    both = f"the columns are declared as {sql_names(names)}, and the header is {sql_names(header)}"
    if not known:
        if len(names) != len(header):
            raise ValueError(
                f"{len(names)} columns are declared but the header has {len(header)}: "
                f"{sql_names(header)}. It has none of the names declared, {sql_names(names)}, so "
                "they would be aliases: declare one for each, or the header's own names"
            )
        return tuple(range(len(names)))
    if len(known) < len(names):
        if listed and all(field in (None, place) for place, field in enumerate(fields)):
            return tuple(range(len(names)))
        missing = [name for name, field in zip(names, fields, strict=True) if field is None]
        raise ValueError(
            f"{both}, which has no {sql_names(missing)}: declare its own names for all columns; "
            "or aliases for all, other names in its order; or list its own names under `header`, "
            "in the order of `columns`"
        )
    if match != SUBSET and len(header) > len(names):
        others = [name for place, name in enumerate(header) if place not in known]
        raise ValueError(
            f"{both}, which also has {sql_names(others)}: declare a column for each of its names; "
            "or set header_match: subset, which leaves the others out"
        )
    return tuple(known)


def _named(name: str, header: Sequence[str]) -> int | None:
    """The field of this name; None if there is none. Raises ValueError if there are several."""
    found = [place for place, other in enumerate(header) if other == name]
    if not found:
        key = folded(name)
        found = [place for place, other in enumerate(header) if folded(other) == key]
    if len(found) > 1:
        which = sql_names([header[place] for place in found])
        raise ValueError(
            f"the header is {sql_names(header)}: column {name} could be each of {which}; give "
            "each object's columns names of their own, or declare aliases for all"
        )
    return found[0] if found else None


def _is_record(definition: SourceDefinition, header: Sequence[str]) -> bool:
    """Whether the first record of an object, taken for its header, has values of the columns, and
    not one of their names."""
    columns, null = definition.columns, definition.dialect.null
    names = {folded(name) for name in header}
    if len(columns) != len(header) or not names.isdisjoint(folded(one.name) for one in columns):
        return False
    typed = [
        (text, column.data_type)
        for text, column in zip(header, columns, strict=True)
        if column.data_type not in _OF_ANY_TEXT and text != null
    ]
    try:
        for text, data_type in typed:
            convert(pa.array([text]), data_type)
    except ValueError:
        return False
    return bool(typed)


def sql_names(names: Sequence[str]) -> str:
    """A list of names as SQL writes it."""
    return f"({', '.join(sql_name(name) for name in names)})"


def sql_name(name: str) -> str:
    """A name as SQL writes it: in double quotes unless it is plain."""
    if _PLAIN_NAME.fullmatch(name):
        return name
    return '"' + name.replace('"', '""') + '"'
