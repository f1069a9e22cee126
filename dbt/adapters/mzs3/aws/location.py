"""Locations in S3: a bucket and a literal prefix, parsed from what users write."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.errors import ConfigError

SCHEME = "s3://"
_ACCESS_POINT = re.compile(r"^(arn:[^:/]+:s3:[^:/]*:[0-9]*:accesspoint)/")
_BUCKET = re.compile(r"[A-Za-z0-9._-]{1,255}")


@dataclass(frozen=True)
class S3Location:
    """A bucket and a prefix, which is empty or ends in one slash."""

    bucket: str
    prefix: str

    @property
    def uri(self) -> str:
        """`s3://bucket/prefix/`."""
        return f"{SCHEME}{self.bucket}/{self.prefix}"

    def key(self, name: str) -> str:
        """The key of the object `name` below this location."""
        return self.prefix + name


def parse_location(text: str) -> S3Location:
    """The location of `s3://bucket/prefix`, with or without its last slash.

    The bucket can be the ARN of an access point, whose name then follows a colon: a slash would
    end the bucket for those who read the URIs of objects. Raises ValueError.
    """
    if not text.startswith(SCHEME):
        raise ValueError(f"must start with {SCHEME}, not {text!r}")
    path = _ACCESS_POINT.sub(r"\1:", text[len(SCHEME) :])
    bucket, _, prefix = path.partition("/")
    if not bucket:
        raise ValueError(f"names no bucket: {text!r}")
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
        raise ValueError(f"has an empty folder name in it: {text!r}")
    return S3Location(bucket, f"{prefix}/" if prefix else "")


def unknown_connection(key: str, name: str, known: Collection[str]) -> str:
    """The problem of a connection that the profile does not have."""
    return f"{key} {name!r} is not in the profile; it has {', '.join(sorted(known))}"


def named_target(
    operation: str, connections: Mapping[str, AwsConnection], name: str, location: str | None
) -> tuple[AwsConnection, S3Location]:
    """What a run-operation is given. Raises ConfigError with the problems of both."""
    problems: list[str] = []
    parsed = named_location(location, problems)
    if name not in connections:
        problems.insert(0, unknown_connection("aws_connection", name, connections))
    if problems or parsed is None:
        raise ConfigError(operation, problems)
    return connections[name], parsed


def named_location(location: str | None, problems: list[str]) -> S3Location | None:
    """The parsed location, or None with one more of `problems`."""
    try:
        return parse_location(location or "")
    except ValueError as exc:
        problems.append(f"location {exc}")
        return None
