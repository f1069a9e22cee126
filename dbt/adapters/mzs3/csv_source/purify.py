"""Purification: what a definition left open is replaced by what was found, and pinned."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace

from dbt.adapters.mzs3.csv_source.definition import SourceDefinition
from dbt.adapters.mzs3.csv_source.executor.columns import Column, name_problems, unmatchable_names
from dbt.adapters.mzs3.csv_source.executor.encoding import UTF_8
from dbt.adapters.mzs3.csv_source.executor.formats.format import CSV, EXACT, RecordField
from dbt.adapters.mzs3.csv_source.executor.formats.typed import VOID, misfits
from dbt.adapters.mzs3.errors import ConfigError, SourceError
from dbt.adapters.mzs3.formats.csv.dialect import CsvDialect
from dbt.adapters.mzs3.spark.sql import PARQUET

_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")


@dataclass(frozen=True)
class PinnedDefinition:
    """A source's header and columns, with nothing left open, and how its objects are read.

    `header` is what every object's header must equal, as `header_match` says, None for objects
    without one; `columns` are the names and types in Spark, one for each of its names. The
    pattern is not pinned, nor what is done with headers and rows that do not fit: these may change
    without making wrong what was taken.
    """

    header: tuple[str, ...] | None
    columns: tuple[Column, ...]
    location: str
    dialect: CsvDialect
    compression: str
    encoding: str = UTF_8
    format: str = CSV
    file_format: str = PARQUET

    def sql(self) -> str:
        """The definition in words, such as `(a, b) FORMAT CSV WITH HEADER COLUMNS (id, value)`."""
        return f"{self.aliases_sql()} {self.format_sql()}".lstrip()

    def aliases_sql(self) -> str:
        """The columns' names in parentheses; empty where they are the header's."""
        names = tuple(column.name for column in self.columns)
        return "" if names == self.header else _list(names)

    def format_sql(self) -> str:
        """The format and its columns, such as `FORMAT CSV WITH HEADER COLUMNS (id, value)`."""
        name = self.format.upper()
        if self.header is None:
            return f"FORMAT {name} WITH {len(self.columns)} COLUMNS"
        return f"FORMAT {name} WITH HEADER COLUMNS {_list(self.header)}"

    def to_json(self) -> str:
        """The definition as one line of JSON, for `from_json`."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> PinnedDefinition:
        """The definition that `to_json` wrote, without keys that a later version gave it."""
        stored = json.loads(text)
        value = {one.name: stored[one.name] for one in fields(cls) if one.name in stored}
        value["header"] = None if value["header"] is None else tuple(value["header"])
        value["columns"] = tuple(Column(**column) for column in value["columns"])
        value["dialect"] = CsvDialect(**value["dialect"])
        return cls(**value)


def purify(definition: SourceDefinition, found: Sequence[RecordField] | None) -> PinnedDefinition:
    """The definition with nothing left open, from an object's header, if any has one.

    `found` is for definitions that discover it. Columns without a type have that of their field,
    or else string. Raises SourceError where the header that is needed was not found, ConfigError
    where it does not go with the declared columns, or its fields can't be read as them.
    """
    header: tuple[str, ...] | None = None
    if definition.header is False:
        count = definition.column_count or 0
        columns = definition.columns or tuple(Column(f"column{n}") for n in range(1, count + 1))
    else:
        if isinstance(definition.header, tuple):
            header, found = definition.header, ()
        elif found is not None:
            header = tuple(field.name for field in found)
        else:
            raise SourceError(
                f"{definition.name}: no object at {definition.location.uri} that matches "
                f"{definition.pattern!r} has a header to learn the columns from. Put one there, "
                "or declare the names as `header: [name, ...]`"
            )
        own = ["string" if field.own in (None, VOID) else str(field.own) for field in found]
        columns, problems = _named_columns(definition, header, own)
        if len(columns) == len(found):
            problems += [
                f"the header is {_list(header)}: {problem}; declare another data_type, or leave "
                "it out with a list of the other names as `header`, and `header_match: subset`"
                for problem in misfits(found, columns)
            ]
        if problems:
            raise ConfigError(f"source {definition.name}", problems)
    return PinnedDefinition(
        header=header,
        columns=columns,
        location=definition.location.uri,
        dialect=definition.dialect,
        compression=definition.compression,
        encoding=definition.reading.encoding,
        format=definition.format,
    )


def _named_columns(
    definition: SourceDefinition, header: Sequence[str], own_types: Sequence[str]
) -> tuple[tuple[Column, ...], list[str]]:
    """The columns for the names in the header, and what is wrong with these."""
    declared, match = definition.columns, definition.reading.header_match
    problems: list[str] = []
    if not declared:
        problems += [
            f"the header is {_list(header)}: {problem}; declare `columns` to name them"
            for problem in name_problems(header)
        ]
    elif len(declared) != len(header):
        problems.append(
            f"{len(declared)} columns are declared but the header has {len(header)}: "
            f"{_list(header)}"
        )
    if match != EXACT:
        problems += [
            f"the header is {_list(header)}: {problem}, so its columns can't be told by name "
            f"as header_match: {match} does; leave out header_match, or give each object's "
            "columns names of their own"
            for problem in unmatchable_names(header)
        ]
    columns = declared or tuple(Column(name, "") for name in header)
    # Where there are more columns than types, that is a problem already.
    types = [*own_types, *["string"] * len(columns)]
    typed = (
        replace(column, data_type=column.data_type or own)
        for column, own in zip(columns, types, strict=False)
    )
    return tuple(typed), problems


def contradictions(pinned: PinnedDefinition, definition: SourceDefinition) -> list[str]:
    """What the definition now says that the pinned one does not; empty if they agree."""
    # No word of the escape: it is always the quote.
    now, then = definition.dialect, pinned.dialect
    values = (
        ("location", definition.location.uri, pinned.location),
        ("format", definition.format, pinned.format),
        ("delimiter", now.delimiter, then.delimiter),
        ("quote", now.quote, then.quote),
        ("null", now.null, then.null),
        ("compression", definition.compression, pinned.compression),
        ("encoding", definition.reading.encoding, pinned.encoding),
        ("file_format", definition.file_format or pinned.file_format, pinned.file_format),
    )
    found = [
        f"the {key} is declared as {declared!r} but was pinned as {before!r}"
        for key, declared, before in values
        if declared != before
    ]
    header = pinned.header
    if (definition.header is False) != (header is None):
        declared, before = ("without", "with") if header else ("with", "without")
        return [*found, f"it is declared {declared} a header but was pinned {before} one"]
    if header is None:
        return found + _column_differences(purify(definition, None).columns, pinned.columns)
    if isinstance(definition.header, tuple) and definition.header != header:
        found.append(
            f"the header is declared as {_list(definition.header)} but was pinned as "
            f"{_list(header)}"
        )
        header = definition.header
    types = [] if pinned.format == CSV else [column.data_type for column in pinned.columns]
    wanted, problems = _named_columns(definition, header, types)
    return found + (problems or _column_differences(wanted, pinned.columns))


def _column_differences(wanted: Sequence[Column], pinned: Sequence[Column]) -> list[str]:
    if len(wanted) != len(pinned):
        return [f"{len(wanted)} columns are declared but {len(pinned)} were pinned"]
    return [
        f"column {position} is declared as {_column(now)} but was pinned as {_column(then)}"
        for position, (now, then) in enumerate(zip(wanted, pinned, strict=True), 1)
        if now != then
    ]


def _column(column: Column) -> str:
    return f"{sql_name(column.name)} {column.data_type}"


def _list(names: Sequence[str]) -> str:
    return f"({', '.join(sql_name(name) for name in names)})"


def sql_name(name: str) -> str:
    """A name as SQL writes it: in double quotes unless it is plain."""
    if _PLAIN_NAME.fullmatch(name):
        return name
    return '"' + name.replace('"', '""') + '"'
