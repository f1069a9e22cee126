"""The tables of docs/inside/values.md: each text with what becomes of it."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa

from dbt.adapters.mzs3.formats.dialect import CsvDialect
from dbt.adapters.mzs3.formats.write.csv.format import CsvEncoder

PAGE = Path(__file__).parents[3] / "docs" / "inside" / "values.md"
HEADING = "| type | text | becomes | PostgreSQL |"
_ROW = re.compile(r"^\| (\S+) \| `(.*?)` \| (`.*?`|refused) \| (`.*?`|refused|the same) \|$")


@dataclass(frozen=True)
class Entry:
    """A row of the page; None stands for a text that is refused."""

    data_type: str
    text: str
    becomes: str | None
    in_postgres: str | None


@cache
def entries() -> list[Entry]:
    """All rows, each of which must be one: a table's lines that are none are an error."""
    found = []
    for line in PAGE.read_text().splitlines():
        if not line.startswith("|") or line in (HEADING, "| --- | --- | --- | --- |"):
            continue
        row = _ROW.match(line)
        assert row is not None, f"not a row: {line}"
        becomes = _value(row[3])
        in_postgres = becomes if row[4] == "the same" else _value(row[4])
        found.append(Entry(row[1], _text(row[2]), becomes, in_postgres))
    return found


def _value(cell: str) -> str | None:
    return None if cell == "refused" else _text(cell.strip("`"))


def _text(cell: str) -> str:
    return str(json.loads(cell)) if cell.startswith('"') else cell


def written(value: pa.Array) -> str:
    """One value that is not NULL, as an export to CSV writes it, without quotes."""
    schema = pa.schema([("value", value.type), ("other", pa.int8())])
    batch = pa.record_batch([value, pa.array([1], pa.int8())], schema)
    (line,) = CsvEncoder(schema, CsvDialect()).encode(batch).to_pylist()
    return field_of(line if isinstance(line, bytes) else line.encode())


def field_of(line: bytes) -> str:
    """The first field of a line of CSV."""
    return next(csv.reader([line.decode()]))[0]
