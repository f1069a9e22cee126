"""Purification: replaces what a definition left open with what was found, and pins it.

Declared columns are matched to the header's fields by name, or by position if no name matches.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, replace
from typing import Any

import pyarrow as pa

from dbt.adapters.mzs3.errors import ConfigError, SourceError
from dbt.adapters.mzs3.formats.read.columns import (
    PROBLEM_COLUMN,
    Column,
    name_problems,
    unmatchable_names,
)
from dbt.adapters.mzs3.formats.read.convert import convert
from dbt.adapters.mzs3.formats.read.format import CSV, EXACT, SUBSET, RecordField
from dbt.adapters.mzs3.formats.read.typed import VOID, misfits
from dbt.adapters.mzs3.ledger.relations import EPOCH_COLUMN
from dbt.adapters.mzs3.names import folded
from dbt.adapters.mzs3.source.options import PINNED, SourceDefinition
from dbt.adapters.mzs3.spark.sql import PARQUET

# Types that accept nearly every text.
_OF_ANY_TEXT = ("string", "binary")
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_DEFAULTS = {
    key: one.default for key, one in PINNED.items() if one.default is not MISSING and not one.like
}


@dataclass(frozen=True)
class PinnedDefinition:
    """A source's header and columns, with nothing left open, and how its objects are read.

    `header` is None if objects have none; else every object's header must match it as
    `header_match` requires. `columns` are the names and types in Spark, one for each name of the
    header. `fields` has the position in the header for each column; it is empty if both are in the
    same order. `options` are the pinned options, as users write them. `origin` is the URI of the
    object with this header, None if it was declared; it is ignored when definitions are compared.
    """

    header: tuple[str, ...] | None
    columns: tuple[Column, ...]
    options: Mapping[str, Any]
    file_format: str = PARQUET
    fields: tuple[int, ...] = ()
    origin: str | None = field(default=None, compare=False)

    def fetched(self) -> tuple[Column, ...]:
        """The columns in the order of the header, in which objects are read."""
        if not self.fields:
            return self.columns
        return tuple(self.columns[self.fields.index(n)] for n in range(len(self.fields)))

    def sql(self) -> str:
        """The definition in words, such as `(a, b) FORMAT CSV WITH HEADER COLUMNS (id, value)`."""
        return f"{self.aliases_sql()} {self.format_sql()}".lstrip()

    def aliases_sql(self) -> str:
        """The columns' names in parentheses; empty where they are the header's."""
        names = tuple(column.name for column in self.fetched())
        return "" if names == self.header else sql_names(names)

    def format_sql(self) -> str:
        """The format and its columns, such as `FORMAT CSV WITH HEADER COLUMNS (id, value)`."""
        name = str(self.options["format"]).upper()
        if self.header is None:
            return f"FORMAT {name} WITH {len(self.columns)} COLUMNS"
        return f"FORMAT {name} WITH HEADER COLUMNS {sql_names(self.header)}"

    def to_json(self) -> str:
        """The definition as one line of JSON, for `from_json`."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> PinnedDefinition:
        """The definition that `to_json` wrote; options that are newer have their defaults.

        Raises ValueError for any other text.
        """
        stored = json.loads(text)
        try:
            return cls(
                header=None if stored["header"] is None else tuple(stored["header"]),
                columns=tuple(Column(**column) for column in stored["columns"]),
                options={**_DEFAULTS, **stored["options"]},
                file_format=stored["file_format"],
                fields=tuple(stored["fields"]),
                origin=stored["origin"],
            )
        except (KeyError, TypeError) as exc:
            raise ValueError(text) from exc


def purify(
    definition: SourceDefinition, discovered: Sequence[RecordField] | None
) -> PinnedDefinition:
    """The definition with nothing left open; `discovered` is the header of an object, if any.

    Ignores `discovered` if the definition lists its header. A column without a type gets that of
    its field, or else string. Raises SourceError if a header is needed but missing, ConfigError if
    it does not match the declared columns or its fields can't be read as their types.
    """
    options = definition.pinned_options()
    if definition.header is False:
        return PinnedDefinition(None, _without_header(definition), options)
    listed = None if definition.header is True else definition.header
    if listed is None and discovered is None:
        raise SourceError(
            f"{definition.name}: no object at {definition.location.uri} that matches "
            f"{definition.pattern!r} has a header to learn the columns from. Put one there, "
            "or declare the names as `header: [name, ...]`"
        )
    header = listed or tuple(field.name for field in discovered or ())
    match, columns = definition.reading.header_match, definition.columns
    if definition.reading.widens:
        columns = _as_found(columns, header)
    positions: tuple[int, ...] = tuple(range(len(header)))
    if columns:
        try:
            names = [column.name for column in columns]
            positions = columns_fields(names, header, match, listed=listed is not None)
        except ValueError as exc:
            raise ConfigError(f"source {definition.name}", [str(exc)]) from exc
    problems = [] if columns else _unnamed(header)
    columns = columns or tuple(Column(name, "") for name in header)
    if listed is None and definition.format == CSV and _is_record(definition, header):
        problems.append(
            f"the first line is {sql_names(header)}, whose values are of the types declared: it "
            "looks like a record, not a header. Declare `header: false` if it is one, or else its "
            "names as `header: [name, ...]`"
        )
    in_order = sorted(positions)
    pinned = tuple(header[position] for position in in_order)
    problems += _unmatchable(pinned, match)
    if discovered and listed is None:
        read_as = [discovered[position] for position in positions]
        columns = tuple(map(_with_type, columns, read_as))
        problems += (
            f"the header is {sql_names(header)}: {problem}; declare another data_type, or leave "
            "it out: declare the others as `columns`, and `header_match: subset`"
            for problem in misfits(read_as, columns)
        )
    if problems:
        raise ConfigError(f"source {definition.name}", problems)
    return PinnedDefinition(
        header=pinned,
        columns=tuple(replace(one, data_type=one.data_type or "string") for one in columns),
        options=options,
        fields=()
        if list(positions) == in_order
        else tuple(in_order.index(position) for position in positions),
    )


def require_free_names(name: str, pinned: PinnedDefinition) -> None:
    """Raises SourceError if a column has the name of one that only the table of rows has."""
    names = {folded(column.name) for column in pinned.columns}
    for reserved in (EPOCH_COLUMN, PROBLEM_COLUMN):
        if reserved in names:
            raise SourceError(
                f"{name}: a column can't be named {reserved}, as the table of rows has one of "
                "that name; rename it, or declare `columns` to give it another"
            )


def widen(
    definition: SourceDefinition, pinned: PinnedDefinition, found: Sequence[RecordField]
) -> PinnedDefinition | None:
    """The pinned definition with a column for each new name of an object's header; None without.

    A declared column of that name says the type, else the field does. Raises ConfigError for names
    that can't be columns, and for fields that can't be read as declared.
    """
    header = pinned.header or ()
    new = [field for field in found if field.name not in header]
    if not new:
        return None
    declared = {folded(column.name): column for column in definition.columns}
    default = "string" if definition.format == CSV else ""
    added = [
        _with_type(declared.get(folded(field.name), Column(field.name, default)), field)
        for field in new
    ]
    columns = (*pinned.columns, *(replace(column, is_added=True) for column in added))
    names = [column.name for column in columns]
    problems = [
        f"with its new names the columns would be {sql_names(names)}: {problem}; rename it, or "
        "narrow `pattern` so that the object is left out"
        for problem in name_problems(names)
    ]
    problems += [f"{problem}; declare another data_type" for problem in misfits(new, added)]
    if problems:
        raise ConfigError(f"source {definition.name}", problems)
    places = range(len(header), len(columns))
    return replace(
        pinned,
        header=(*header, *(field.name for field in new)),
        columns=columns,
        fields=(*pinned.fields, *places) if pinned.fields else (),
    )


def _without_header(definition: SourceDefinition) -> tuple[Column, ...]:
    count = definition.column_count or 0
    return definition.columns or tuple(Column(f"column{n}") for n in range(1, count + 1))


def _as_found(columns: tuple[Column, ...], header: Sequence[str]) -> tuple[Column, ...]:
    """The declared columns that the header has, and one for each of its other names; all that are
    declared if these are aliases."""
    declared, found = ({folded(name) for name in each} for each in (_names(columns), header))
    there = [column for column in columns if folded(column.name) in found]
    others = [Column(name, "", is_added=True) for name in header if folded(name) not in declared]
    return (*there, *others) if there else columns


def _names(columns: Sequence[Column]) -> list[str]:
    return [column.name for column in columns]


def _with_type(column: Column, read_as: RecordField) -> Column:
    of_field = "string" if read_as.own in (None, VOID) else str(read_as.own)
    return replace(column, data_type=column.data_type or of_field)


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
    """The differences between the definition and the pinned one, as texts; empty if they agree."""
    then = {**pinned.options, "file_format": pinned.file_format}
    now = definition.pinned_options() | {
        "file_format": definition.file_format or pinned.file_format
    }
    differences = [
        f"the {key} is declared as {_value(now, key)!r} but was pinned as {_value(then, key)!r}"
        for key in {**now, **then}
        if now.get(key) != then.get(key)
    ]
    header = pinned.header
    if (definition.header is False) != (header is None):
        declared, before = ("without", "with") if header else ("with", "without")
        return [*differences, f"it is declared {declared} a header but was pinned {before} one"]
    if header is None:
        return differences + _column_differences(_without_header(definition), pinned.columns)
    if isinstance(definition.header, tuple) and definition.header != header:
        differences.append(
            f"the header is declared as {sql_names(definition.header)} but was pinned as "
            f"{sql_names(header)}"
        )
    if not definition.columns and (problems := _unnamed(header)):
        return differences + problems
    # In the pinned order, in which earlier objects were read.
    columns = definition.columns or tuple(
        Column(header[place], "") for place in pinned.fields or range(len(header))
    )
    return [
        *differences,
        *_unmatchable(header, definition.reading.header_match),
        *_column_differences(*_comparable(columns, pinned, definition.reading.widens)),
    ]


def _comparable(
    columns: Sequence[Column], pinned: PinnedDefinition, widens: bool
) -> tuple[list[Column], list[Column]]:
    """The declared and the pinned columns that must be the same, both in the pinned order.

    Columns that were added need not be declared; those that may still be need not be pinned.
    """
    names = {column.name for column in columns}
    then = [one for one in pinned.columns if not one.is_added or one.name in names]
    added = {one.name: place for place, one in enumerate(then) if one.is_added}
    known = {one.name for one in then}
    now = [one for one in columns if one.name in known or not widens]
    return sorted(now, key=lambda one: added.get(one.name, -1)), then


def _value(options: Mapping[str, Any], key: str) -> Any:
    return options.get(key, options.get(PINNED[key].like) if key in PINNED else None)


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

    A name matches a field if it is spelled the same, or else if Spark treats both as the same
    name; their order does not matter. If no name matches, the names are aliases of the fields, in
    order. If the source lists the header (`listed`), some names may be aliases, if the others are
    in the places that they have in the header. All else is ambiguous: raises ValueError with both
    lists and the ways out.
    """
    fields = [_field_position(name, header) for name in names]
    matched = [field for field in fields if field is not None]
    both = f"the columns are declared as {sql_names(names)}, and the header is {sql_names(header)}"
    if not matched:
        if len(names) != len(header):
            raise ValueError(
                f"{len(names)} columns are declared but the header has {len(header)}: "
                f"{sql_names(header)}. It has none of the names declared, {sql_names(names)}, so "
                "they would be aliases: declare one for each, or the header's own names"
            )
        return tuple(range(len(names)))
    if len(matched) < len(names):
        if listed and all(field in (None, place) for place, field in enumerate(fields)):
            return tuple(range(len(names)))
        missing = [name for name, field in zip(names, fields, strict=True) if field is None]
        raise ValueError(
            f"{both}, which has no {sql_names(missing)}: declare its own names for all columns; "
            "or aliases for all, other names in its order; or list its own names under `header`, "
            "in the order of `columns`"
        )
    if match != SUBSET and len(header) > len(names):
        others = [name for place, name in enumerate(header) if place not in matched]
        raise ValueError(
            f"{both}, which also has {sql_names(others)}: declare a column for each of its names; "
            "or set header_match: subset, which leaves the others out"
        )
    return tuple(matched)


def _field_position(name: str, header: Sequence[str]) -> int | None:
    """The position of this name's field; None without one. Raises ValueError for several."""
    positions = [place for place, other in enumerate(header) if other == name]
    if not positions:
        key = folded(name)
        positions = [place for place, other in enumerate(header) if folded(other) == key]
    if len(positions) > 1:
        which = sql_names([header[place] for place in positions])
        raise ValueError(
            f"the header is {sql_names(header)}: column {name} could be each of {which}; give "
            "each object's columns names of their own, or declare aliases for all"
        )
    return positions[0] if positions else None


def _is_record(definition: SourceDefinition, header: Sequence[str]) -> bool:
    """Whether the assumed header seems to be a record: its texts are values of the declared types,
    and none is the name of a column."""
    columns, null = definition.columns, definition.dialect.null
    names = {folded(name) for name in header}
    if len(columns) != len(header) or not names.isdisjoint(folded(c.name) for c in columns):
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
    """A list of names, written as in SQL."""
    return f"({', '.join(sql_name(name) for name in names)})"


def sql_name(name: str) -> str:
    """A name, written as in SQL: in double quotes unless it is plain."""
    if _PLAIN_NAME.fullmatch(name):
        return name
    return '"' + name.replace('"', '""') + '"'
