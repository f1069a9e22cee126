"""Locations: a bucket and a literal prefix, parsed from what users write."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.options.values import has_control_character, text
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.s3 import open_bucket
from dbt.adapters.mzs3.store.store import Store

STORES: Mapping[str, Callable[[AwsConnection, str], Store]] = {
    "s3": open_bucket,
}
"""The functions that open a bucket, by the scheme of its locations. They raise S3Error if the
connection is wrong."""
SCHEME = "s3://"
SCHEMES = tuple(f"{name}://" for name in STORES)
"""The beginnings of locations' URIs."""
_ACCESS_POINT = re.compile(r"^(arn:[^:/]+:s3:[^:/]*:[0-9]*:accesspoint)/")
_URI = re.compile(r"\w+://")
# As in s3a://KEY:SECRET@bucket/ of old Hadoop. Secrets may have slashes; ports are no secrets.
_HAS_LOGIN = re.compile(r"\w+://(?!arn:)(?:[^/@]*@|[^/:]*:(?!\d{1,5}/).*@)", re.DOTALL)
_BUCKET = re.compile(r"[A-Za-z0-9._-]{1,255}")
# Without backslashes and ${...}, whose meaning depends on settings of the session.
_LITERAL = r"'[^'\\$]+'"
_JOINED = re.compile(
    rf"\s*{_LITERAL}(?:\s*\|\|\s*(?:{_LITERAL}|mz_now\(\)))*\s*", re.IGNORECASE | re.ASCII
)
_TEXT = re.compile(r"'([^']+)'|mz_now\(\)", re.IGNORECASE)


@dataclass(frozen=True)
class S3Location:
    """A bucket and a prefix, which is empty or ends in one slash."""

    bucket: str
    prefix: str
    scheme: str = "s3"

    @property
    def uri(self) -> str:
        """`s3://bucket/prefix/`."""
        return self.uri_of(self.prefix)

    def uri_of(self, key: str) -> str:
        """The URI of a key of the bucket."""
        return f"{self.scheme}://{self.bucket}/{key}"

    def key_of(self, uri: str) -> str:
        """The key in an object's URI."""
        return uri.removeprefix(self.uri_of(""))

    def below(self, name: str) -> S3Location:
        """The location of the folder `name` in this location."""
        return replace(self, prefix=self.key(f"{name}/"))

    def key(self, name: str) -> str:
        """The key of the object `name` below this location."""
        return self.prefix + name


def parse_location(text: str) -> S3Location:
    """Parses a location to write to. Raises ValueError as `readable_location` does, and also if
    some readers would change the keys before they request them."""
    location = readable_location(text)
    if has_control_character(text):
        raise ValueError(f"has a control character in it, such as a newline or a tab: {text!r}")
    if dotted := [name for name in location.prefix.split("/") if name in (".", "..")]:
        raise ValueError(
            f"has a folder {dotted[0]!r}, which readers take for the way to another one: {text!r}"
        )
    return location


def readable_location(value: object) -> S3Location:
    """Parses `s3://bucket/prefix`, with or without a final slash. Raises ValueError.

    The bucket can be the ARN of an access point. The slash in the ARN is replaced by a colon, as
    parsers of URIs end the bucket at a slash.
    """
    uri = text(value)
    if _HAS_LOGIN.match(uri):
        raise ValueError(
            "has something before the name of its bucket that may be a key, and is not shown; "
            "keys belong under aws_connections in the profile"
        )
    if not uri.startswith(SCHEMES):
        raise ValueError(f"must start with {' or '.join(SCHEMES)}, not {uri!r}")
    if uri.endswith(("\r", "\n")):
        raise ValueError(
            f"ends in a newline, as a block of YAML does: {uri!r}; write it on the line of its "
            "key, or begin the block with |- or >-"
        )
    scheme, _, path = uri.partition("://")
    path = _ACCESS_POINT.sub(r"\1:", path)
    bucket, _, prefix = path.partition("/")
    if not bucket:
        raise ValueError(f"names no bucket: {uri!r}")
    if bucket.endswith("--x-s3"):
        raise ValueError(
            f"names a directory bucket of S3 Express, {bucket}, which does not list keys in order "
            "or by part of a name, as exports and sources need it; use a general purpose bucket"
        )
    if bucket.startswith("arn:") and ":accesspoint:" not in bucket:
        raise ValueError(
            f"names {path}, which is the ARN of no access point of S3; use the name "
            "of a bucket, or the alias of an access point"
        )
    if not bucket.startswith("arn:") and not _BUCKET.fullmatch(bucket):
        raise ValueError(
            f"names the bucket {bucket!r}, and no bucket has such a name: it has letters, digits, "
            "dots, hyphens and underscores alone"
        )
    prefix = prefix.rstrip("/")
    if prefix.startswith("/") or "//" in prefix:
        raise ValueError(f"has an empty folder name in it: {uri!r}")
    return S3Location(bucket, f"{prefix}/" if prefix else "", scheme)


def joined_texts(expression: str, as_of: int) -> str | None:
    """The value of a SQL expression that only joins literals and mz_now() with ||; None for other
    expressions, which Spark has to evaluate."""
    if _JOINED.fullmatch(expression) is None:
        return None
    return "".join(text or str(int(as_of)) for text in _TEXT.findall(expression))


def option_problems(given: object) -> list[str]:
    """The problems of a model's option `location` that can be found without Spark."""
    if given in (None, ""):
        return [f"location is required: '{SCHEME}bucket/prefix' or a SQL expression for one"]
    if not isinstance(given, str):
        return []  # the option's converter reports this
    if given.startswith(SCHEMES) and "||" in given and not _HAS_LOGIN.match(given):
        return [
            f"location {given!r} is a literal, as it starts with "
            f"{given.partition('//')[0]}//; in a SQL "
            "expression the texts are in quotes of their own: "
            "location=\"'s3://bucket/prefix/' || mz_now()\""
        ]
    # A text that begins as a URI does is not an expression.
    location = given if _URI.match(given) else joined_texts(given, as_of=0)
    try:
        if location is not None:
            parse_location(location)
    except ValueError as exc:
        return [f"location {exc}"]
    return []


def connection_problems(
    name: str, known: Collection[str], key: str = "aws_connection"
) -> Iterator[str]:
    """A problem if the profile has no connection of this name."""
    if name not in known:
        yield f"{key} {name!r} is not in the profile; it has {', '.join(sorted(known))}"


def named_target(
    operation: str, connections: Mapping[str, AwsConnection], name: str, location: str | None
) -> tuple[AwsConnection, S3Location]:
    """The connection and location that a run-operation's arguments name. Raises ConfigError with
    the problems of both."""
    problems = [*connection_problems(name, connections)]
    parsed = named_location(location, problems)
    if problems or parsed is None:
        raise ConfigError(operation, problems)
    return connections[name], parsed


def named_location(location: str | None, problems: list[str]) -> S3Location | None:
    """Parses the location of existing objects; if it is wrong, adds a problem and returns None."""
    try:
        return readable_location(location or "")
    except ValueError as exc:
        problems.append(f"location {exc}")
        return None
