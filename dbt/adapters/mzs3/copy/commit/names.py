"""The names of an export's files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from dbt.adapters.mzs3.copy.executor.folders import escaped

_FILE = re.compile(
    r"(?:[^/]+=[^/]*/)*part-\d{4,}-(?P<number>\d{4,})\.(?:csv|csv\.gz|csv\.zst|parquet)"
)
# Files of one part and folder that an overwrite can hold beside the export it replaces.
GENERATION = 5_000


def is_file_name(
    name: str, single_file: str | None = None, partition_by: Sequence[str] = ()
) -> bool:
    """Whether an export with these options writes files of this name, relative to its location."""
    if name == single_file:
        return True
    match = _FILE.fullmatch(name)
    if match is None:
        return False
    folders = name.split("/")[:-1]
    columns = [escaped(column) for column in partition_by]
    return not folders or [folder.partition("=")[0] for folder in folders] == columns


def first_number_of(names: Iterable[str]) -> int:
    """Where the export that has these names began to number its files; 1 if it has none."""
    numbers = [int(match["number"]) for match in map(_FILE.fullmatch, names) if match]
    return (min(numbers, default=1) - 1) // GENERATION * GENERATION + 1


def first_free_number(names: Iterable[str]) -> int:
    """Where a new export starts to number its files, so that none has a name that is taken.

    1 where nothing is; else the first number of a range of `GENERATION` that none of the names
    uses. An overwrite after an overwrite therefore goes back and forth between 1 and 5001.
    """
    taken = set()
    for name in names:
        match = _FILE.fullmatch(name)
        if match:
            taken.add((int(match["number"]) - 1) // GENERATION)
    return next(n for n in range(len(taken) + 1) if n not in taken) * GENERATION + 1
