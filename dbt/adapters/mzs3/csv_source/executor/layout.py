"""Which field of an object's records belongs to which column of the source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dbt.adapters.mzs3.csv_source.executor.problem import shown
from dbt.adapters.mzs3.csv_source.executor.reading import SUBSET


@dataclass(frozen=True)
class Layout:
    """A record has `width` fields; that of column i is at `fields[i]`, from 0."""

    width: int
    fields: tuple[int, ...]

    @classmethod
    def in_order(cls, count: int) -> Layout:
        """One field for each column, in the columns' order."""
        return cls(count, tuple(range(count)))

    @property
    def is_in_order(self) -> bool:
        """Whether every field is a column's, in the columns' order."""
        return self.fields == tuple(range(self.width))

    @property
    def drops(self) -> bool:
        """Whether there are fields that belong to no column."""
        return len(self.fields) < self.width

    def column_of(self, field: int) -> int | None:
        """The column of a field, both from 0; None for one that is dropped."""
        return self.fields.index(field) if field in self.fields else None


def layout_by_name(found: Sequence[str], pinned: Sequence[str]) -> Layout:
    """Each pinned name's field in a header that has each of them once; see `name_difference`."""
    places = {name: position for position, name in enumerate(found)}
    return Layout(len(found), tuple(places[name] for name in pinned))


def name_difference(found: Sequence[str], pinned: Sequence[str], match: str) -> str | None:
    """Why the names of a header, in any order, are not those pinned; None if they are.

    Names are compared exactly. A subset's header may have any other names beside them, such as
    empty ones, or one of them twice; the pinned ones are there once.
    """
    counts = Counter(found)
    missing = [name for name in pinned if name not in counts]
    twice = [name for name in pinned if counts[name] > 1]
    wanted = set(pinned)
    extra = [] if match == SUBSET else [name for name in counts if name not in wanted]
    told = [
        *(f"{shown(name)} is missing" for name in missing[:1]),
        *(f"{shown(name)} is there {counts[name]} times" for name in twice[:1]),
        *(f"{shown(name)} is not one of them" for name in extra[:1]),
    ]
    more = len(missing) + len(twice) + len(extra) - len(told)
    if not told:
        return None
    return ", ".join(told) + (f" ({more} more)" if more else "")


def unmatchable_names(pinned: Sequence[str]) -> list[str]:
    """Why these names cannot be found by name in a header; empty if they can."""
    problems = [
        f"column {position} has an empty name"
        for position, name in enumerate(pinned, 1)
        if not name
    ]
    first_seen: dict[str, int] = {}
    for position, name in enumerate(pinned, 1):
        before = first_seen.setdefault(name, position)
        if name and before != position:
            problems.append(f"columns {before} and {position} have the same name {name!r}")
    return problems
