"""A place in S3: a bucket and a literal prefix."""

from __future__ import annotations

from dataclasses import dataclass

SCHEME = "s3://"


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

    Raises ValueError, whose text names what is wrong with it.
    """
    if not text.startswith(SCHEME):
        raise ValueError(f"must start with {SCHEME}, not {text!r}")
    bucket, _, prefix = text[len(SCHEME) :].partition("/")
    if not bucket:
        raise ValueError(f"names no bucket: {text!r}")
    prefix = prefix.rstrip("/")
    if prefix.startswith("/") or "//" in prefix:
        raise ValueError(f"has an empty folder name in it: {text!r}")
    return S3Location(bucket, f"{prefix}/" if prefix else "")
