"""The footer of a batch's file: the range and size of each column in each row group."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow.parquet as pq

from dbt.adapters.mzs3.shard.types import Type

MESSAGES = -1
"""Stands in place of a tag for the rows as messages."""
OTHERS = -2
"""Stands in place of a tag for other columns, footers, and the gaps between columns."""

Value = int | Decimal | str


@dataclass(frozen=True)
class Bounds:
    """A filter's condition on the column with a tag: the value is in one of the ranges, or NULL if
    `is_null`. Both ends of a range are included; None is no limit.

    Dates are days since 1970, and timestamps microseconds.
    """

    tag: int
    ranges: tuple[tuple[Value | None, Value | None], ...] = ()
    is_null: bool = False


def may_hold(
    group: pq.RowGroupMetaData, bounds: Sequence[Bounds], columns: Mapping[int, Type]
) -> bool:
    """Whether the row group may have a row within all bounds; `columns` are the file's, by tag."""
    if not bounds:
        return True
    statistics = {chunk.path_in_schema: chunk.statistics for chunk in _chunks(group)}
    return all(
        _may_be_within(each, statistics[_path(each.tag, columns[each.tag])], group.num_rows)
        for each in bounds
        if each.tag in columns
    )


def _chunks(group: pq.RowGroupMetaData) -> Iterator[pq.ColumnChunkMetaData]:
    return map(group.column, range(group.num_columns))


def _path(tag: int, kind: Type) -> str:
    return f"k_s.{tag}.lossy" if kind.name == "numeric" else f"k_s.{tag}"


def _may_be_within(bounds: Bounds, statistics: pq.Statistics | None, rows: int) -> bool:
    if statistics is None:
        return True
    nulls = statistics.null_count if statistics.has_null_count else None
    if bounds.is_null and nulls != 0:
        return True
    if nulls == rows:
        return False
    if not statistics.has_min_max:  # for example, for long texts
        return bool(bounds.ranges)
    return any(_overlap(low, high, statistics.min, statistics.max) for low, high in bounds.ranges)


def _overlap(low: Any, high: Any, least: Any, most: Any) -> bool:
    if isinstance(least, float):
        # The statistics of numerics are of their nearest doubles, which keep the order.
        low, high = (end if end is None else float(end) for end in (low, high))
    return (low is None or low <= most) and (high is None or least <= high)


def sizes(group: pq.RowGroupMetaData) -> Counter[int]:
    """The compressed bytes of a row group's columns, by tag."""
    counted: Counter[int] = Counter()
    for chunk in _chunks(group):
        first, *rest = chunk.path_in_schema.split(".")
        tag = int(rest[0]) if first == "k_s" else MESSAGES if first == "k" else OTHERS
        counted[tag] += chunk.total_compressed_size
    return counted


@dataclass
class Tally:
    """What was fetched: files, row groups, how many of these were skipped, and bytes by tag."""

    files: int = 0
    groups: int = 0
    skipped: int = 0
    bytes: Counter[int] = field(default_factory=Counter)

    def report(self) -> str:
        """This tally as a text for `add`."""
        return json.dumps({**vars(self), "bytes": [*self.bytes.items()]})

    def add(self, report: str) -> None:
        """Adds the tally in a task's report."""
        tally = json.loads(report)
        self.files += tally["files"]
        self.groups += tally["groups"]
        self.skipped += tally["skipped"]
        self.bytes.update(dict(tally["bytes"]))
