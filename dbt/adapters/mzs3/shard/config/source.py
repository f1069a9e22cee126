"""A source that reads a shard, as its `external` declares it."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any

from dbt.adapters.mzs3.aws.connection import DEFAULT_NAME
from dbt.adapters.mzs3.aws.location import S3Location, named_location, unknown_connection
from dbt.adapters.mzs3.config.values import ConfigReader, flag, text, whole_number
from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.text import did_you_mean

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
    validate: bool = False
    """Whether both encodings of each row are decoded and compared."""
    keep_hours: int = 24
    """How long the rows of earlier reads stay, for queries that still use them."""


_KNOWN = tuple(key.name for key in fields(External))
KEPT_MS = External.keep_hours * _HOUR_MS


@dataclass(frozen=True)
class ShardSource:
    """A shard to read as of a time in ms since the epoch, or of its last one if `as_of` is None.

    `columns` are the names of those to read; none is all. `keep_ms` is `keep_hours`.
    """

    name: str
    location: S3Location
    aws_connection: str = External.aws_connection
    as_of: int | None = None
    validate: bool = External.validate
    columns: tuple[str, ...] = ()
    keep_ms: int = KEPT_MS


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
    as_of = read("as_of", moment)
    validate = read("validate", flag) or False
    keep_ms = read("keep_hours", hours)
    if problems or location is None:
        raise ConfigError(f"source {name}", problems)
    return ShardSource(
        name,
        location,
        connection,
        as_of if isinstance(as_of, int) else None,
        validate,
        tuple(columns),
        KEPT_MS if keep_ms is None else keep_ms,
    )


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
