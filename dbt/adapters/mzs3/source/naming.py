"""Which field of a header each declared column is: by its name, or by its position; pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from dbt.adapters.mzs3.formats.read.columns import Column
from dbt.adapters.mzs3.formats.read.convert import convert
from dbt.adapters.mzs3.formats.read.format import SUBSET
from dbt.adapters.mzs3.names import folded

# Of these nearly any text is a value.
_OF_ANY_TEXT = ("string", "binary")
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")


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


def is_record(texts: Sequence[str], columns: Sequence[Column], null: str) -> bool:
    """Whether the first record of an object, taken for its header, has values of the columns."""
    typed = [
        (text, column.data_type)
        for text, column in zip(texts, columns, strict=True)
        if column.data_type not in _OF_ANY_TEXT and text != null
    ]
    return bool(typed) and all(_is_value(*one) for one in typed)


def _is_value(text: str, data_type: str) -> bool:
    try:
        convert(pa.array([text]), data_type)
    except ValueError:
        return False
    return True


def misplaced(header: Sequence[str], columns: Sequence[str]) -> list[str]:
    """The columns that have a name of the header and are another field, where an earlier version
    took all by their positions: `columns` has one for each name of the header."""
    there = [folded(name) for name in header]
    names = [folded(name) for name in columns]
    return [
        name
        for name, mine, at in zip(columns, names, there, strict=True)
        if mine != at and mine in there
    ]


def sql_names(names: Sequence[str]) -> str:
    """A list of names as SQL writes it."""
    return f"({', '.join(sql_name(name) for name in names)})"


def sql_name(name: str) -> str:
    """A name as SQL writes it: in double quotes unless it is plain."""
    if _PLAIN_NAME.fullmatch(name):
        return name
    return '"' + name.replace('"', '""') + '"'
