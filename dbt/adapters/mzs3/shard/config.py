"""The options of models that write shards, and of sources that read them."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.names import folded, namesakes
from dbt.adapters.mzs3.options.values import (
    IGNORED,
    SIZES,
    ConfigReader,
    Problems,
    choice,
    flag,
    names,
    parse_size,
    text,
    unknown_keys,
    upload_problems,
    whole_number,
)
from dbt.adapters.mzs3.rows.plan import MAX_PARTS
from dbt.adapters.mzs3.shard.condition import condition
from dbt.adapters.mzs3.shard.state.evolve import POLICIES, OnSchemaChange, repeated_names
from dbt.adapters.mzs3.shard.types import BATCH_ENCODINGS, BatchEncoding, Type, parse_type
from dbt.adapters.mzs3.spark.sql import TABLE_FORMATS
from dbt.adapters.mzs3.store.connection import DEFAULT_NAME
from dbt.adapters.mzs3.store.location import (
    S3Location,
    named_location,
    option_problems,
    unknown_connection,
)
from dbt.adapters.mzs3.text import did_you_mean

Mode = Literal["diff", "append"]
MODES: tuple[Mode, ...] = get_args(Mode)
MAX_FILE_SIZE, PART_SIZE, MAX_IN_MEMORY = 128 << 20, 8 << 20, 100 << 20


@dataclass(frozen=True)
class ShardOptions:
    """A model's options; sizes in bytes. `column_types` has folded names.

    The text below a field is its row in `docs/options.md`.
    """

    location: str
    """`s3://bucket/prefix`, or a SQL expression for one, as of `copy_to_s3`."""
    aws_connection: str = DEFAULT_NAME
    """A connection of the profile."""
    mode: Mode = "diff"
    """`diff`: the run writes what makes the shard's rows the model's. `append`: it writes all
    rows as new."""
    encoding: BatchEncoding = "dual"
    """`dual`: messages and structured columns. `structured`: columns alone. `codec`: messages
    alone. Batches of one shard may differ."""
    on_schema_change: OnSchemaChange = "append_new_columns"
    """`append_new_columns`, `sync_all_columns`, `ignore` or `fail`: what happens when
    [columns come and go](persist-shard.md#columns-come-and-go)."""
    column_defaults: Mapping[str, str] = field(default_factory=dict)
    """SQL expressions for the values that added columns have in older batches:
    `{b: 50, c: "'new'"}`."""
    column_renames: Mapping[str, str] = field(default_factory=dict)
    """`{old: new}`: the column keeps its values under the new name."""
    column_types: Mapping[str, Type] = field(default_factory=dict)
    """Types that Spark lacks, see [types](persist-shard.md#types):
    `{id: uuid, valid: 'range<date>'}`."""
    sort_by: tuple[str, ...] = ()
    """Columns by which each file of a batch is sorted; `compact_shard` sorts from file to file."""
    max_file_size: int = MAX_FILE_SIZE
    """How large a file may grow, as of `copy_to_s3`."""
    part_size: int = PART_SIZE
    """The size of one S3 upload part, at least `5MB`."""
    max_multi_part_bytes_in_memory: int = MAX_IN_MEMORY
    """How much one worker buffers in upload parts, at least three times `part_size`."""
    parts: int | None = None
    """How many parts the rows are hashed into, 10,000 at most. Without it, the cluster's default
    parallelism, but a part of a diff has at least 100,000 changes or about 32 MB, so that few
    changes are one file; to count them first, Spark shuffles what changed once more."""


def parse_shard_options(
    node: str, config: Mapping[str, Any], connections: Collection[str]
) -> ShardOptions:
    """The options in a model's config; raises ConfigError with everything that is wrong."""
    given = {key: value for key, value in config.items() if key not in IGNORED}
    problems = unknown_keys(given, KNOWN, "persist_shard")
    read = ConfigReader(given, problems)
    options = ShardOptions(**{"location": "", **read.all(_CONVERTERS)})
    problems += option_problems(given.get("location"))
    if options.aws_connection not in connections:
        problems.append(unknown_connection("aws_connection", options.aws_connection, connections))
    problems += upload_problems(options, in_memory=3)
    Problems(node, problems).raise_if_any()
    return options


def _expressions(value: Any) -> dict[str, str]:
    """SQL expressions by names; YAML's own numbers and booleans are expressions too."""
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
    """One name, or a list of different ones."""
    listed = names(list(value) if isinstance(value, tuple) else value)
    if namesakes(listed):
        raise ValueError(f"has a column twice: {', '.join(listed)}")
    return listed


def sort_problems(sort_by: Sequence[str], known: Collection[str]) -> list[str]:
    """What is wrong with `sort_by` where a shard has the columns `known`."""
    found = {folded(name) for name in known}
    return [
        f"sort_by has {name}, which the shard lacks; it has {', '.join(known)}"
        for name in sort_by
        if folded(name) not in found
    ]


def _names_by_name(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(new, str) for new in value.values()):
        raise ValueError(f"must be a mapping of old names to new ones, not {value!r}")
    renames = {str(old): new for old, new in value.items()}
    for problem in repeated_names(renames):
        raise ValueError(f"has {problem}")
    return renames


def _types_by_name(value: Any) -> dict[str, Type]:
    if not isinstance(value, Mapping) or not all(isinstance(kind, str) for kind in value.values()):
        raise ValueError(f"must be a mapping of columns to types, not {value!r}")
    return {folded(str(name)): parse_type(kind) for name, kind in value.items()}


_CONVERTERS: Mapping[str, Callable[[Any], Any]] = {
    "location": text,
    "aws_connection": text,
    "mode": choice(MODES),
    "encoding": choice(BATCH_ENCODINGS),
    "on_schema_change": choice(POLICIES),
    "column_defaults": _expressions,
    "column_renames": _names_by_name,
    "column_types": _types_by_name,
    "sort_by": column_names,
    **dict.fromkeys(SIZES, parse_size),
    "parts": whole_number(1, MAX_PARTS),
}
KNOWN = tuple(_CONVERTERS)


TYPE = "persist_shard"
LATEST = "latest"
_HOUR_MS = 3_600_000
_DAY = re.compile(r"[0-9]{8}")
_LEAST_MS = 10**11  # in 1973; any day without hyphens, and seconds until the year 5138, are less
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


@dataclass(frozen=True)
class External:
    """The keys of `external`; the text below each is its row in `docs/options.md`."""

    type: str
    """`persist_shard`."""
    location: str
    """The shard's, `s3://bucket/prefix/`."""
    aws_connection: str = DEFAULT_NAME
    """A connection of the profile."""
    as_of: int | str = LATEST
    """`latest`, milliseconds since 1970, or a timestamp, which is UTC unless it has an offset. A
    time that the shard has not reached yet, or no longer has, is an error."""
    where: str | None = None
    """A condition in SQL on the shard's columns: the source has the rows for which it is true,
    and [what statistics exclude](persist-shard.md#where) is not fetched."""
    validate: bool = False
    """Whether both encodings of each row are [compared](persist-shard.md#validation)."""
    keep_hours: int = 24
    """How long the rows of earlier reads stay, for queries that still use them."""
    file_format: str | None = None
    """`parquet`, `delta` or `iceberg`: the [format](engines/table-formats.md) of the table in
    Spark. Without it, that of `spark.sql.sources.default`, by itself Parquet."""


_KNOWN = tuple(key.name for key in fields(External))
KEPT_MS = External.keep_hours * _HOUR_MS


@dataclass(frozen=True)
class ShardSource:
    """A shard to read as of a time in ms since the epoch, or of its last one if `as_of` is None.

    `columns` are the names of those to read; none is all. `keep_ms` is `keep_hours`. Without a
    `file_format`, Spark's own default holds.
    """

    name: str
    location: S3Location
    aws_connection: str = External.aws_connection
    as_of: int | None = None
    where: str | None = None
    validate: bool = External.validate
    columns: tuple[str, ...] = ()
    keep_ms: int = KEPT_MS
    file_format: str | None = None


def parse_shard_source(
    name: str,
    external: Mapping[str, Any],
    columns: Collection[str],
    connections: Collection[str],
) -> ShardSource:
    """A source's declaration; raises ConfigError with everything that is wrong."""
    problems = [
        f"{key} is not a key of a {TYPE} source; {did_you_mean(str(key), _KNOWN)}known are "
        f"{', '.join(_KNOWN)}"
        for key in external
        if key not in _KNOWN
    ]
    if (kind := external.get("type")) != TYPE:
        problems.append(f"type must be {TYPE}, not {kind!r}")
    read = ConfigReader(external, problems)
    location = None
    if external.get("location") is None:
        problems.append("location is required, such as s3://bucket/prefix/")
    elif (uri := read("location", text)) is not None:
        location = named_location(uri, problems)
    connection = read("aws_connection", text) or External.aws_connection
    if connection not in connections:
        problems.append(unknown_connection("aws_connection", connection, connections))
    options = read.all(
        {
            "as_of": moment,
            "where": condition,
            "validate": flag,
            "keep_hours": hours,
            "file_format": choice(TABLE_FORMATS),
        }
    )
    if problems or location is None:
        raise ConfigError(f"source {name}", problems)
    if options.get("as_of") == LATEST:
        del options["as_of"]
    if "keep_hours" in options:
        options["keep_ms"] = options.pop("keep_hours")
    return ShardSource(name, location, connection, columns=tuple(columns), **options)


def hours(value: Any) -> int:
    """A time to keep something, given in hours, at most a year; in ms."""
    return whole_number(0, 24 * 366)(value) * _HOUR_MS


def moment(value: Any) -> int | str:
    """`latest`, or a time in ms since the epoch; a timestamp is in UTC unless it has an offset."""
    if value == LATEST:
        return LATEST
    if isinstance(value, str) and _DAY.fullmatch(value):
        value = f"{value[:4]}-{value[4:6]}-{value[6:]}"  # Python 3.10 wants the hyphens
    if isinstance(value, str) and value.isdecimal():
        value = int(value)  # what Jinja has made of a number
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


COMPACTION = "compact_shard"
_OF_COMPACTIONS: Mapping[str, Callable[[Any], Any]] = {
    "since": moment,
    "encoding": choice(BATCH_ENCODINGS),
    "sort_by": column_names,
    "keep_hours": hours,
    "parts": whole_number(1, MAX_PARTS),
    "max_file_size": parse_size,
}


@dataclass(frozen=True)
class CompactionRequest:
    """Which batches are merged, and how the new one is written; sizes in bytes.

    `since` is a time in ms since the epoch, `latest`, or None for the one that the shard has.
    `encoding` is None for that of the newest batch to be merged, `sort_by` for that of the newest
    sorted one. Files that no batch names are kept for `keep_ms`.
    """

    since: int | str | None = None
    encoding: BatchEncoding | None = None
    sort_by: tuple[str, ...] | None = None
    keep_ms: int = KEPT_MS
    parts: int | None = None
    max_file_size: int = MAX_FILE_SIZE


def parse_compaction(arguments: Mapping[str, Any]) -> CompactionRequest:
    """The request in a run-operation's arguments; raises ConfigError with all problems."""
    problems: list[str] = []
    options = ConfigReader(arguments, problems).all(_OF_COMPACTIONS)
    written = ShardOptions("", max_file_size=options.get("max_file_size", MAX_FILE_SIZE))
    problems += upload_problems(written, in_memory=3, has_part_size=False)
    Problems(COMPACTION, problems).raise_if_any()
    kept = {"keep_ms": options.pop("keep_hours")} if "keep_hours" in options else {}
    return CompactionRequest(**options, **kept)
