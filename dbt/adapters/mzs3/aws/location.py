"""A place in S3: a bucket and a literal prefix."""

from __future__ import annotations

import re
from dataclasses import dataclass

SCHEME = "s3://"
_ACCESS_POINT = re.compile(r"^(arn:[^:/]+:s3:[^:/]*:[0-9]*:accesspoint)/")
_DIRECTORY_BUCKET = "--x-s3"


@dataclass(frozen=True)
class S3Location:
    """A bucket and a prefix; the prefix is empty or ends in one slash.

    Listing it with its slash keeps `orders/` apart from `orders2/`.
    """

    bucket: str
    prefix: str

    @property
    def uri(self) -> str:
        """The location as it is shown: `s3://bucket/prefix/`."""
        return f"{SCHEME}{self.bucket}/{self.prefix}"

    def key(self, name: str) -> str:
        """The key of an object `name` below this location."""
        return self.prefix + name


def parse_location(text: str) -> S3Location:
    """The location that `s3://bucket/prefix` names, with or without its last slash.

    The bucket can be the ARN of an access point, whose name then follows a colon, as S3 takes it
    too: a slash in it would end the bucket for those who read the URIs of objects.
    Raises ValueError, whose text names what is wrong with it.
    """
    if not text.startswith(SCHEME):
        raise ValueError(f"must start with {SCHEME}, not {text!r}")
    path = _ACCESS_POINT.sub(r"\1:", text[len(SCHEME) :])
    bucket, _, prefix = path.partition("/")
    if not bucket:
        raise ValueError(f"names no bucket: {text!r}")
    if bucket.endswith(_DIRECTORY_BUCKET):
        raise ValueError(
            f"names a directory bucket of S3 Express, {bucket}, which does not list keys in order "
            "or by part of a name, as exports and sources need it; use a general purpose bucket"
        )
    if bucket.startswith("arn:") and ":accesspoint:" not in bucket:
        raise ValueError(
            f"names {path}, which is the ARN of no access point of S3; use the name "
            "of a bucket, or the alias of an access point"
        )
    prefix = prefix.rstrip("/")
    if prefix.startswith("/") or "//" in prefix:
        raise ValueError(f"has an empty folder name in it: {text!r}")
    return S3Location(bucket, f"{prefix}/" if prefix else "")
