"""What a compaction is asked for, valid by construction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.mzs3.config.size import parse_size
from dbt.adapters.mzs3.config.values import ConfigReader, choice, whole_number
from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.rows.plan import MAX_PARTS
from dbt.adapters.mzs3.shard.config.options import (
    MAX_FILE_SIZE,
    MAX_IN_MEMORY,
    PART_SIZE,
    column_names,
)
from dbt.adapters.mzs3.shard.config.source import moment
from dbt.adapters.mzs3.shard.executor.batch.layout import ENCODINGS, Encoding

OPERATION = "compact_shard"
_HOUR_MS = 3_600_000
_LONGEST_KEPT_HOURS = 24 * 366


@dataclass(frozen=True)
class CompactionRequest:
    """Which batches become one, and how it is written; sizes in bytes.

    `since` is a time in ms since the epoch, `latest`, or None for the one that the shard has.
    `encoding` is None for that of the newest batch that becomes part of it, `sort_by` for that of
    the newest one that is sorted. Files that no batch names stay for `keep_ms`.
    """

    since: int | str | None = None
    encoding: Encoding | None = None
    sort_by: tuple[str, ...] | None = None
    keep_ms: int = 24 * _HOUR_MS
    parts: int | None = None
    max_file_size: int = MAX_FILE_SIZE
    part_size: int = PART_SIZE
    max_multi_part_bytes_in_memory: int = MAX_IN_MEMORY


def parse_compaction(arguments: Mapping[str, Any]) -> CompactionRequest:
    """The request that a run-operation's arguments make; raises ConfigError with all problems."""
    problems: list[str] = []
    read = ConfigReader(arguments, problems)
    keep_hours = read("keep_hours", whole_number(0, _LONGEST_KEPT_HOURS))
    options: dict[str, Any] = {
        "since": read("since", moment),
        "encoding": read("encoding", choice(ENCODINGS)),
        "sort_by": read("sort_by", column_names),
        "keep_ms": None if keep_hours is None else keep_hours * _HOUR_MS,
        "parts": read("parts", whole_number(1, MAX_PARTS)),
        "max_file_size": read("max_file_size", parse_size),
    }
    if problems:
        raise ConfigError(OPERATION, problems)
    return CompactionRequest(**{key: value for key, value in options.items() if value is not None})
