"""What a shard is to its users, in plain Python: of each time the columns, and how often each row.

There are no files here, no batches of changes and no encodings. A run makes a multiset of rows of
the one before, and everything that was ever there is kept as it was.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

Row = tuple[Any, ...]
WIDTH = {"int": 0, "bigint": 1}


@dataclass(frozen=True)
class ModelColumn:
    """A column; one that is dropped and added again is another one."""

    name: str
    kind: str
    default: Any = None


@dataclass
class Query:
    """A model's query: its columns, and the rows that it gives."""

    columns: list[ModelColumn]
    rows: list[Row] = field(default_factory=list)

    def place(self, name: str) -> int | None:
        names = [column.name for column in self.columns]
        return names.index(name) if name in names else None


@dataclass(frozen=True)
class Seen:
    """What readers see as of a time."""

    columns: tuple[tuple[str, str], ...]
    rows: Counter[Row]


class ShardModel:
    """One shard; times in ms since the epoch."""

    def __init__(self) -> None:
        self.columns: list[ModelColumn] = []
        self.rows: Counter[Row] = Counter()
        self.history: dict[int, Seen] = {}
        self.since = 0
        # The last time of each batch, and whether it has no changes.
        self.ends: list[tuple[int, bool]] = []

    @property
    def upper(self) -> int:
        return self.ends[-1][0] + 1 if self.ends else 0

    def readable(self) -> dict[int, Seen]:
        """What there is to see at the time of each run, and right before the next one."""
        moments = [moment for moment in sorted(self.history) if moment >= self.since]
        seen = {moment: self.history[moment] for moment in moments}
        for moment, following in itertools.pairwise(moments):
            seen[following - 1] = self.history[moment]
        return seen

    def run(
        self,
        as_of: int,
        query: Query,
        *,
        renames: Mapping[str, str],
        policy: str,
        append: bool,
    ) -> int:
        """A run that came to its end; how many changes it wrote."""
        moment = max(as_of, self.upper)
        first = self.since == self.upper
        before = self.rows
        if first:
            self.columns = list(query.columns)
        else:
            before = self._evolve(query, renames, policy)
        given = Counter(map(self._as_stored(query), query.rows))
        self.rows = before + given if append else given
        if first and self.ends:
            self.since = moment
        changes = given.total() if append else _difference(before, given)
        self.history[moment] = Seen(
            tuple((column.name, column.kind) for column in self.columns), Counter(self.rows)
        )
        if self.ends and not changes and self.ends[-1][1]:
            self.ends.pop()
        self.ends.append((moment, not changes))
        return changes

    def compact(self, frontier: int) -> None:
        """Batches that end by then are one, which can be read from its last end on."""
        old = [end for end, _ in self.ends if end <= max(frontier, self.since)]
        if not old or self.since == self.upper:
            return
        self.since = max(self.since, old[-1])
        empty = not self._at(old[-1]).rows
        self.ends = [(old[-1], empty), *self.ends[len(old) :]]

    def reset(self) -> None:
        """Nothing can be read any more; times go on."""
        if self.ends:
            self.columns, self.rows, self.history = [], Counter(), {}
            self.since = self.upper
            self.ends = [(self.upper - 1, True)]

    def _at(self, moment: int) -> Seen:
        return self.history[max(known for known in self.history if known <= moment)]

    def _evolve(self, query: Query, renames: Mapping[str, str], policy: str) -> Counter[Row]:
        """The columns from now on, and what the rows from before are in them."""
        there = {column.name: place for place, column in enumerate(self.columns)}
        columns, places = [], []
        for name, place in there.items():
            column = replace(self.columns[place], name=renames.get(name, name))
            given = query.place(column.name)
            if given is None and policy == "sync_all_columns":
                continue
            if given is not None:
                column = replace(column, kind=_wider(column.kind, query.columns[given].kind))
            columns.append(column)
            places.append(place)
        known = {column.name for column in columns}
        added = [column for column in query.columns if column.name not in known]
        self.columns = columns + added
        defaults = tuple(column.default for column in added)
        rows: Counter[Row] = Counter()
        for row, count in self.rows.items():
            rows[tuple(row[place] for place in places) + defaults] += count
        return rows

    def _as_stored(self, query: Query) -> Any:
        places = [query.place(column.name) for column in self.columns]
        return lambda row: tuple(None if place is None else row[place] for place in places)


def _wider(one: str, other: str) -> str:
    return max(one, other, key=lambda kind: WIDTH.get(kind, 0))


def _difference(before: Counter[Row], after: Counter[Row]) -> int:
    rows: Iterable[Row] = before.keys() | after.keys()
    return sum(abs(after[row] - before[row]) for row in rows)
