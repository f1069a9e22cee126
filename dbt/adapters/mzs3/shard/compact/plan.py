"""Which batches a compaction merges, and how the new one is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.mzs3.config.values import ConfigReader, choice, parse_size, whole_number
from dbt.adapters.mzs3.errors import ConfigError, ShardError
from dbt.adapters.mzs3.rows.plan import MAX_PARTS
from dbt.adapters.mzs3.shard.config.options import (
    MAX_FILE_SIZE,
    column_names,
    sort_problems,
)
from dbt.adapters.mzs3.shard.config.source import KEPT_MS, LATEST, hours, moment
from dbt.adapters.mzs3.shard.executor.batch.write import ENCODINGS, Encoding
from dbt.adapters.mzs3.shard.state.state import Schema, ShardBatch, ShardState
from dbt.adapters.mzs3.shard.types import Column
from dbt.adapters.mzs3.text import shown_at

OPERATION = "compact_shard"


@dataclass(frozen=True)
class CompactionPlan:
    """The batches `old` become one as of `since`, in the columns of `schema`, sorted by some."""

    old: tuple[ShardBatch, ...]
    since: int
    schema: Schema
    encoding: Encoding
    sort_by: tuple[Column, ...]

    @property
    def rows(self) -> int:
        """The number of changes in the old batches."""
        return sum(batch.rows for batch in self.old)

    @property
    def most_rows(self) -> int:
        """The most changes that can be left: no more than there are rows, or changes."""
        there = sum(batch.additions - batch.retractions for batch in self.old)
        return min(there, self.rows)


def compaction_plan(state: ShardState, request: CompactionRequest) -> CompactionPlan | None:
    """What to do, or None if the shard is already as requested.

    All batches that end at or before the request's `since` are merged, and the shard can be read
    from the end of the last of them on. Raises ShardError for a time that the shard has not
    reached, ConfigError for a column that it does not have.
    """
    frontier = _frontier(state, request)
    old = tuple(batch for batch in state.batches if batch.moment <= frontier)
    if not old:
        return None
    since = old[-1].moment
    schema = state.schema_at(since)
    written = [batch for batch in old if batch.files]
    last = written[-1] if written else old[-1]
    encoding = request.encoding or last.encoding
    plan = CompactionPlan(old, since, schema, encoding, _sort_columns(schema, request, old))
    return None if _is_done(plan, state) else plan


def _frontier(state: ShardState, request: CompactionRequest) -> int:
    if request.since == LATEST:
        return state.upper - 1
    if request.since is None:
        return state.since
    if int(request.since) >= state.upper:
        raise ShardError(
            f"the shard has been written up to {shown_at(state.upper - 1)}; it can't be "
            f"compacted as of {shown_at(int(request.since))}, which may still change. Give an "
            f"earlier since, or {LATEST}"
        )
    return max(int(request.since), state.since)


def _sort_columns(
    schema: Schema, request: CompactionRequest, old: tuple[ShardBatch, ...]
) -> tuple[Column, ...]:
    if request.sort_by is None:
        # Only compactions sort from file to file, and what runs have added since is no choice.
        by_tag = {column.tag: column for column in schema.columns}
        newest = next((batch.sort_by for batch in reversed(old) if batch.sort_by), ())
        return tuple(by_tag[tag] for tag in newest if tag in by_tag)
    problems = sort_problems(request.sort_by, [column.name for column in schema.columns])
    if found := list(problems):
        raise ConfigError(OPERATION, found)
    return schema.named(request.sort_by)[0]


def _is_done(plan: CompactionPlan, state: ShardState) -> bool:
    """Whether there is one batch already, of that time, and written as the plan would."""
    if len(plan.old) > 1 or state.since != plan.since:
        return False  # what one run has written may repeat rows
    [batch] = plan.old
    sort_by = tuple(column.tag for column in plan.sort_by)
    wanted = (plan.schema.id, plan.encoding, sort_by)
    return not batch.files or (batch.schema, batch.encoding, batch.sort_by) == wanted


@dataclass(frozen=True)
class CompactionRequest:
    """Which batches are merged, and how the new one is written; sizes in bytes.

    `since` is a time in ms since the epoch, `latest`, or None for the one that the shard has.
    `encoding` is None for that of the newest batch to be merged, `sort_by` for that of the newest
    sorted one. Files that no batch names are kept for `keep_ms`.
    """

    since: int | str | None = None
    encoding: Encoding | None = None
    sort_by: tuple[str, ...] | None = None
    keep_ms: int = KEPT_MS
    parts: int | None = None
    max_file_size: int = MAX_FILE_SIZE


def parse_compaction(arguments: Mapping[str, Any]) -> CompactionRequest:
    """The request in a run-operation's arguments; raises ConfigError with all problems."""
    problems: list[str] = []
    read = ConfigReader(arguments, problems)
    options: dict[str, Any] = {
        "since": read("since", moment),
        "encoding": read("encoding", choice(ENCODINGS)),
        "sort_by": read("sort_by", column_names),
        "keep_ms": read("keep_hours", hours),
        "parts": read("parts", whole_number(1, MAX_PARTS)),
        "max_file_size": read("max_file_size", parse_size),
    }
    if problems:
        raise ConfigError(OPERATION, problems)
    return CompactionRequest(**{key: value for key, value in options.items() if value is not None})
