"""In which format a source's objects are, and which keys of `external` go with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dbt.adapters.mzs3.csv_source.executor.columns import Column
from dbt.adapters.mzs3.csv_source.executor.formats.format import CSV, FORMATS

CSV_KEYS = (
    "column_count",
    "delimiter",
    "quote",
    "escape",
    "null",
    "encoding",
    "compression",
    "on_bad_row",
    "max_rejects",
)


def read_format(given: Mapping[str, Any], problems: list[str]) -> tuple[str, dict[str, Any]]:
    """The format that `given` says, and what it says beside that of such objects.

    Keys that are of CSV alone are wrong with another format; all that is wrong goes to
    `problems`.
    """
    name = given.get("format", CSV)
    if name not in FORMATS:
        problems.append(f"external.format must be one of {', '.join(FORMATS)}, not {name!r}")
        name = CSV
    if name == CSV:
        return CSV, dict(given)
    wrong = [key for key in CSV_KEYS if key in given]
    problems += [f"external.{key} is for CSV, but external.format is {name}" for key in wrong]
    rest = {key: value for key, value in given.items() if key not in wrong}
    if rest.get("header") is False:
        problems.append(
            f"external.header is false, but objects of the format {name} name their fields; "
            "leave it out, or list the names"
        )
        del rest["header"]
    return name, rest


def untyped_problems(columns: Sequence[Column], names: Sequence[str]) -> list[str]:
    """What is missing where `header` lists the names, so that no object tells their types."""
    listed = "external.header lists the names, so no object is read for their types"
    if not columns:
        return [f"{listed}: declare `columns` with the data_type of each ({', '.join(names)})"]
    return [
        f"{listed}: declare the data_type of column {column.name}"
        for column in columns
        if not column.data_type
    ]
