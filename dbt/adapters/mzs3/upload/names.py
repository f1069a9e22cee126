"""The names of an export's files; a name is never reused at a location."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dbt.adapters.mzs3.formats.write import FORMATS
from dbt.adapters.mzs3.upload.folders import escape_folder

_SUFFIXES = {kind.suffix for each in FORMATS.values() for kind in each.file_types.values()}
_ANY_SUFFIX = "|".join(map(re.escape, _SUFFIXES))
_FILE = re.compile(rf"(?:[^/]+=[^/]*/)*part-\d{{4,}}-(?P<number>\d{{4,}})(?:{_ANY_SUFFIX})")


@dataclass(frozen=True)
class UsedNames:
    """Names that no new file may have, as a late run may still delete an old file of that name.

    Numbers below `next_number` are used; `retired` are the used names of single files.
    """

    next_number: int = 1
    retired: tuple[str, ...] = ()

    def with_names(self, names: Iterable[str]) -> UsedNames:
        """The union of these used names and `names`."""
        names = list(names)
        numbers = [number + 1 for number in map(number_of, names) if number is not None]
        single_files = {name for name in names if number_of(name) is None}
        retired = tuple(sorted({*self.retired, *single_files}))
        return UsedNames(max([self.next_number, *numbers]), retired)

    def allows(self, names: Iterable[str]) -> bool:
        """Whether none of these names is used."""
        return all(
            name not in self.retired if number is None else number >= self.next_number
            for name, number in ((name, number_of(name)) for name in names)
        )


NO_NAMES = UsedNames()
"""No name is used."""


def is_file_name(
    name: str, single_file: str | None = None, partition_by: Sequence[str] = ()
) -> bool:
    """Whether an export with these options could write a file of this name."""
    if name == single_file:
        return True
    if number_of(name) is None:
        return False
    folders = name.split("/")[:-1]
    columns = [escape_folder(column) for column in partition_by]
    return not folders or [folder.partition("=")[0] for folder in folders] == columns


def number_of(name: str) -> int | None:
    """The last number in a file name such as `part-0000-0001.csv`; None for other names."""
    match = _FILE.fullmatch(name)
    return int(match["number"]) if match else None
