"""Reads a folder of files as sources would, and compares what is read with what is expected.

    python scripts/corpora.py FOLDER

FOLDER/corpus.jsonl has a line of JSON for each file:

    {"path": "files/a.csv", "options": {"skip_lines": 1}, "rows": 2, "clean": "clean/a.csv"}

`options` are those of `external`, `columns` those of a source; both may be left out. `rows` is
the number of records that are read, and `clean` a file with a header, in PostgreSQL's dialect,
that has the same rows. `refused` is `[line, byte]` instead: the place of the error. Neither S3 nor
Spark is used. The exit status is 1 if a file is not as described.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbt.adapters.mzs3.errors import Mzs3Error
from dbt.adapters.mzs3.formats.read.object_error import ObjectError
from dbt.adapters.mzs3.source.executor.fetch import open_format
from dbt.adapters.mzs3.source.options import parse_definition
from dbt.adapters.mzs3.source.purify import purify


@dataclass(frozen=True)
class LocalFile:
    """A file as an object of a source; see `StoredObject`."""

    path: Path

    @property
    def key(self) -> str:
        """The file's name."""
        return self.path.name

    @property
    def size(self) -> int:
        """The file's size in bytes."""
        return self.path.stat().st_size

    def open(self) -> io.BufferedReader:
        """A stream of the file."""
        return self.path.open("rb")

    def part(self, start: int, end: int) -> bytes:
        """The bytes from `start` up to, but not including, `end`."""
        with self.path.open("rb") as file:
            file.seek(start)
            return file.read(end - start)


def rows_of(
    path: Path, options: dict[str, Any], columns: list[dict[str, Any]]
) -> list[tuple[Any, ...]]:
    """The rows that a source with these options reads. Raises ObjectError or Mzs3Error."""
    definition = parse_definition(
        name=f"corpus.{path.name}",
        schema="corpus",
        identifier="file",
        external={"type": "s3_csv_source", "location": "s3://corpus/", **options},
        columns=columns,
        connections={"default"},
    )
    form = open_format(
        definition.format, definition.dialect, definition.compression, definition.reading
    )
    stored = LocalFile(path)
    pinned = purify(definition, form.fields(stored) if definition.header is True else None)
    rows: list[tuple[Any, ...]] = []
    with contextlib.closing(form.decoder(pinned.header, pinned.fetched())(stored)) as found:
        for records in found:
            rows += zip(*(column.to_pylist() for column in records.batch.columns), strict=True)
    return rows


def problem_of(folder: Path, described: dict[str, Any]) -> str | None:
    """How a file is read otherwise than it is described; None if it is read so."""
    refused = described.get("refused")
    columns = described.get("columns", [])
    try:
        rows = rows_of(folder / described["path"], described.get("options", {}), columns)
    except ObjectError as error:
        if refused == [error.line, error.byte]:
            return None
        return f"refused at {error.place or 'no place'}: {error.problem}. {error.advice}"
    except Mzs3Error as error:
        return f"refused: {error}"
    if refused:
        return f"read ({len(rows)} rows), and not refused at line {refused[0]}, byte {refused[1]}"
    if described.get("rows", len(rows)) != len(rows):
        return f"{len(rows)} rows, not {described['rows']}"
    if clean := described.get("clean"):
        wanted = rows_of(folder / clean, {}, columns)
        for number, pair in enumerate(zip(rows, wanted, strict=False), 1):
            if pair[0] != pair[1]:
                return f"row {number} is {pair[0]}, not {pair[1]}"
        if len(rows) != len(wanted):
            return f"{len(rows)} rows, not {len(wanted)}"
    return None


def problems(folder: Path) -> Iterator[tuple[str, str | None]]:
    """Each file of the corpus, with what is wrong with it."""
    for line in (folder / "corpus.jsonl").read_text().splitlines():
        if line.strip():
            described = json.loads(line)
            yield described["path"], problem_of(folder, described)


def main() -> None:
    """Prints what is not as described."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    found = list(problems(parser.parse_args().folder))
    wrong = [(path, problem) for path, problem in found if problem is not None]
    for path, problem in wrong:
        print(f"{path}: {problem}")
    print(f"{len(found)} files, {len(wrong)} not as described")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
