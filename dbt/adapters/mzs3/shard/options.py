"""The options of models that write shards, and of sources that read them."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from dbt.adapters.mzs3.names import folded, namesakes
from dbt.adapters.mzs3.options.groups import UploadSizes
from dbt.adapters.mzs3.options.option import group, option, read
from dbt.adapters.mzs3.options.values import (
    IGNORED,
    choice,
    flag,
    format_size,
    names,
    parse_size,
    text,
    whole_number,
)
from dbt.adapters.mzs3.rows.plan import MAX_PARTS
from dbt.adapters.mzs3.shard.condition import condition
from dbt.adapters.mzs3.shard.state.columns import POLICIES, OnSchemaChange
from dbt.adapters.mzs3.shard.types import BATCH_ENCODINGS, BatchEncoding, Type, parse_type
from dbt.adapters.mzs3.spark.sql import TABLE_FORMATS
from dbt.adapters.mzs3.store.connection import DEFAULT_NAME
from dbt.adapters.mzs3.store.location import (
    S3Location,
    connection_problems,
    option_problems,
    readable_location,
)

TYPE = "persist_shard"
COMPACTION = "compact_shard"
LATEST = "latest"
Mode = Literal["diff", "append"]
SIZES = UploadSizes(max_file_size=128 << 20, parts_in_memory=3)
_HOUR_MS = 3_600_000
KEPT_MS = 24 * _HOUR_MS
_DAY = re.compile(r"[0-9]{8}")
_LEAST_MS = 10**11  # in 1973; days without hyphens, and seconds until the year 5138, are smaller
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


def _expressions(value: Any) -> dict[str, str]:
    """SQL expressions by column; YAML's numbers and booleans are valid expressions too."""
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a mapping of columns to SQL expressions, not {value!r}")
    expressions = {}
    for name, expression in value.items():
        if expression is None or not isinstance(expression, (str, int, float)):
            raise ValueError(
                f"has {expression!r} for {name}, which is no SQL expression; a text is one in "
                "quotes of its own, such as \"'new'\""
            )
        expressions[str(name)] = str(expression)
    return expressions


def column_names(value: Any) -> tuple[str, ...]:
    """The names in a text or a list. Raises ValueError if two are equal."""
    listed = names(list(value) if isinstance(value, tuple) else value)
    if namesakes(listed):
        raise ValueError(f"has a column twice: {', '.join(listed)}")
    return listed


def sort_problems(sort_by: Sequence[str], known: Collection[str]) -> list[str]:
    """The problems of `sort_by` for a shard with the columns `known`."""
    known_names = {folded(name) for name in known}
    return [
        f"sort_by has {name}, which the shard lacks; it has {', '.join(known)}"
        for name in sort_by
        if folded(name) not in known_names
    ]


def _texts_by_name(value: Any, what: str) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for each in value.values()):
        raise ValueError(f"must be a mapping of {what}, not {value!r}")
    return {str(name): each for name, each in value.items()}


def _renames(value: Any) -> dict[str, str]:
    renames = _texts_by_name(value, "old names to new ones")
    for what, listed in (("from", [*renames]), ("to", [*renames.values()])):
        for first, _ in namesakes(listed):
            raise ValueError(
                f"has several renames {what} {folded(listed[first])}, and no two columns have one "
                "name, in whatever case; leave one of them"
            )
    return renames


def _types(value: Any) -> dict[str, Type]:
    texts = _texts_by_name(value, "columns to types")
    return {folded(name): parse_type(kind) for name, kind in texts.items()}


def hours(value: Any) -> int:
    """A duration in ms from a number of hours, at most a year."""
    return whole_number(0, 24 * 366)(value) * _HOUR_MS


def moment(value: Any) -> int | str:
    """LATEST, or a time in ms since the epoch. A timestamp is in UTC unless it has an offset."""
    if value == LATEST:
        return LATEST
    if isinstance(value, str) and _DAY.fullmatch(value):
        value = f"{value[:4]}-{value[4:6]}-{value[6:]}"  # Python 3.10 requires the hyphens
    if isinstance(value, str) and value.isdecimal():
        value = int(value)  # Jinja turns numbers into texts
    if isinstance(value, int) and not isinstance(value, bool):
        if value == 0 or value >= _LEAST_MS:
            return value
        raise ValueError(
            f"has {value}, which as ms since 1970 is before 1973, and may be meant as a day or as "
            "seconds: write a day in quotes, such as '2026-01-31', and seconds times 1000"
        )
    try:
        if isinstance(value, str):
            value = dt.datetime.fromisoformat(value.replace("Z", "+00:00"))
        if type(value) is dt.date:
            value = dt.datetime(value.year, value.month, value.day)
        if isinstance(value, dt.datetime):
            zoned = value if value.tzinfo else value.replace(tzinfo=dt.timezone.utc)
            return (zoned - _EPOCH) // dt.timedelta(milliseconds=1)
    except ValueError:
        pass
    raise ValueError(
        f"must be {LATEST}, a number of ms since 1970, or a timestamp such as "
        f"'2026-01-31 12:00:00', not {value!r}"
    )


def _moment_or_none(value: Any) -> int | None:
    return None if (found := moment(value)) == LATEST else int(found)


@dataclass(frozen=True)
class ShardOptions:
    """A model's options. `column_types` has folded names."""

    location: str = option(text, blank="")
    """`s3://bucket/prefix`, or a SQL expression for one, as of `copy_to_s3`."""
    aws_connection: str = option(text, DEFAULT_NAME)
    """A connection of the profile."""
    mode: Mode = option(choice(get_args(Mode)), "diff")
    """`diff`: the run writes what makes the shard's rows the model's. `append`: it writes all
    rows as new."""
    encoding: BatchEncoding = option(choice(BATCH_ENCODINGS), "dual")
    """`dual`: messages and structured columns. `structured`: columns alone. `codec`: messages
    alone. Batches of one shard may differ."""
    on_schema_change: OnSchemaChange = option(choice(POLICIES), "append_new_columns")
    """`append_new_columns`, `sync_all_columns`, `ignore` or `fail`: what happens when
    [columns come and go](persist-shard.md#columns-come-and-go)."""
    column_defaults: Mapping[str, str] = option(_expressions, {})
    """SQL expressions for the values that added columns have in older batches:
    `{b: 50, c: "'new'"}`."""
    column_renames: Mapping[str, str] = option(_renames, {})
    """`{old: new}`: the column keeps its values under the new name."""
    column_types: Mapping[str, Type] = option(_types, {})
    """Types that Spark lacks, see [types](persist-shard.md#types):
    `{id: uuid, valid: 'range<date>'}`."""
    sort_by: tuple[str, ...] = option(column_names, ())
    """Columns by which each file of a batch is sorted; `compact_shard` sorts from file to file."""
    sizes: UploadSizes = group(UploadSizes, **vars(SIZES))
    parts: int | None = option(whole_number(1, MAX_PARTS), None)
    """How many parts the rows are hashed into, 10,000 at most. Without it, the cluster's default
    parallelism, but a part of a diff has at least 100,000 changes or about 32 MB, so that few
    changes are one file; to count them first, Spark shuffles what changed once more."""

    def problems(self, given: Mapping[str, Any]) -> list[str]:
        """What is wrong with the location."""
        return option_problems(given.get("location"))


def parse_shard_options(
    node: str, config: Mapping[str, Any], connections: Collection[str]
) -> ShardOptions:
    """The options in a model's config; raises ConfigError with everything that is wrong."""
    return read(
        ShardOptions,
        {key: value for key, value in config.items() if key not in IGNORED},
        node,
        of="persist_shard",
        check=lambda options: connection_problems(options.aws_connection, connections),
    )


@dataclass(frozen=True)
class ShardSource:
    """A source's declaration: a shard, read as of a time in ms since the epoch, or its latest.

    `columns` are the names of the columns to read; all if empty. Without a `file_format`, Spark's
    default is used.
    """

    name: str
    type: str = option(text, TYPE, shown="required", kw_only=True)
    """`persist_shard`."""
    location: S3Location = option(readable_location, blank=S3Location("", ""))
    """The shard's, `s3://bucket/prefix/`."""
    aws_connection: str = option(text, DEFAULT_NAME)
    """A connection of the profile."""
    as_of: int | None = option(_moment_or_none, None, shown=f"`{LATEST}`")
    """`latest`, milliseconds since 1970, or a timestamp, which is UTC unless it has an offset. A
    time that the shard has not reached yet, or no longer has, is an error."""
    where: str | None = option(condition, None)
    """A condition in SQL on the shard's columns: the source has the rows for which it is true,
    and [what statistics exclude](persist-shard.md#where) is not fetched."""
    validate: bool = option(flag, False)
    """Whether both encodings of each row are [compared](persist-shard.md#validation)."""
    keep_ms: int = option(hours, KEPT_MS, key="keep_hours", shown="`24`")
    """How long the rows of earlier reads stay, for queries that still use them."""
    file_format: str | None = option(choice(TABLE_FORMATS), None)
    """`parquet`, `delta` or `iceberg`: the [format](engines/table-formats.md) of the table in
    Spark. Without it, that of `spark.sql.sources.default`, by itself Parquet."""
    columns: tuple[str, ...] = ()

    def problems(self, given: Mapping[str, Any]) -> Iterator[str]:
        """A missing location, and a wrong type."""
        if given.get("type") != TYPE:
            yield f"type must be {TYPE}, not {given.get('type')!r}"
        if "location" not in given:
            yield "location is required, such as s3://bucket/prefix/"


def parse_shard_source(
    name: str,
    external: Mapping[str, Any],
    columns: Collection[str],
    connections: Collection[str],
) -> ShardSource:
    """A source's declaration; raises ConfigError with everything that is wrong."""
    return read(
        ShardSource,
        external,
        f"source {name}",
        of=TYPE,
        check=lambda source: connection_problems(source.aws_connection, connections),
        name=name,
        columns=tuple(columns),
    )


@dataclass(frozen=True)
class CompactionRequest:
    """Which batches are merged, and how the new one is written; sizes in bytes.

    `since` is a time in ms since the epoch, `latest`, or None for the shard's own `since`. Without
    an `encoding`, the new batch has that of the newest merged batch; without `sort_by`, the order
    of the newest sorted batch. Files that no batch uses are kept for `keep_ms`.
    """

    since: int | str | None = option(moment, None)
    encoding: BatchEncoding | None = option(choice(BATCH_ENCODINGS), None)
    sort_by: tuple[str, ...] | None = option(column_names, None)
    keep_ms: int = option(hours, KEPT_MS, key="keep_hours")
    parts: int | None = option(whole_number(1, MAX_PARTS), None)
    max_file_size: int = option(parse_size, SIZES.max_file_size, spell=format_size)

    @property
    def sizes(self) -> UploadSizes:
        """The sizes of uploads."""
        return replace(SIZES, max_file_size=self.max_file_size)

    def problems(self, _: Mapping[str, Any]) -> Iterator[str]:
        """Sizes that S3 would not accept."""
        for problem in self.sizes.problems({}):
            yield problem.removesuffix(", or raise part_size")  # which is no option here


def parse_compaction(arguments: Mapping[str, Any]) -> CompactionRequest:
    """The request in a run-operation's arguments; raises ConfigError with all problems."""
    return read(CompactionRequest, arguments, COMPACTION, of=COMPACTION)
