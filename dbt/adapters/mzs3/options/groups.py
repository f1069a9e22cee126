"""Options that features share: the sizes of uploads, and the properties of objects."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from dbt.adapters.mzs3.options.option import option
from dbt.adapters.mzs3.options.values import choice, format_size, parse_size, text

# S3's limits for objects, upload parts and tags (see "Categorizing your objects using tags").
MAX_OBJECT_SIZE = 5 << 40
MAX_UPLOAD_PARTS = 10_000
MIN_PART_SIZE, MAX_PART_SIZE = 5 << 20, 5 << 30
MAX_TAGS = 10
MAX_TAG_NAME, MAX_TAG_VALUE = 128, 256
_RESERVED = "aws:"
_ENCRYPTIONS = ("AES256", "aws:kms", "aws:kms:dsse")
_STORAGE_CLASSES = (
    *("STANDARD", "STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER_IR", "GLACIER"),
    *("DEEP_ARCHIVE", "REDUCED_REDUNDANCY"),
)
_ACLS = (
    *("private", "public-read", "public-read-write", "authenticated-read", "aws-exec-read"),
    *("bucket-owner-read", "bucket-owner-full-control"),
)


@dataclass(frozen=True)
class UploadSizes:
    """Sizes in bytes for uploads; a worker must be able to hold `parts_in_memory` parts."""

    max_file_size: int = option(parse_size, 256 << 20, spell=format_size)
    """How large a file may grow: bytes, or a number with one of `B kB MB GB TB`, in steps of
    1024."""
    part_size: int = option(parse_size, 8 << 20, spell=format_size)
    """The size of one S3 upload part, at least `5MB`."""
    max_multi_part_bytes_in_memory: int = option(parse_size, 100 << 20, spell=format_size)
    """How much one worker buffers in upload parts, at least twice `part_size`; of a shard three
    times."""
    parts_in_memory: int = 2

    def problems(self, _: Mapping[str, Any]) -> Iterator[str]:
        """What S3 would refuse, or what would not fit into a worker's memory."""
        times = {2: "twice", 3: "three times"}[self.parts_in_memory]
        part_size, shown = self.part_size, format_size(self.part_size)
        if part_size < MIN_PART_SIZE:
            yield f"part_size must be at least 5MB, which is the least that S3 takes, not {shown}"
        elif part_size > MAX_PART_SIZE:
            yield f"part_size can be 5GB at most, not {shown}"
        largest = format_size(self.max_file_size)
        if self.max_file_size > MAX_OBJECT_SIZE:
            yield f"max_file_size can be 5TB at most, which is what S3 takes, not {largest}"
        elif self.max_file_size > max(part_size, MIN_PART_SIZE) * MAX_UPLOAD_PARTS:
            yield (
                f"max_file_size {largest} needs more than {MAX_UPLOAD_PARTS} upload parts of "
                f"{shown}; lower it, or raise part_size"
            )
        if self.max_multi_part_bytes_in_memory < self.parts_in_memory * part_size:
            yield (
                f"max_multi_part_bytes_in_memory must be at least {times} part_size, which is "
                f"{shown}; it is {format_size(self.max_multi_part_bytes_in_memory)}"
            )


def _tag_mapping(value: Any) -> Mapping[str, str]:
    """Converts tags, which must be a mapping of texts to texts; raises ValueError."""
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a mapping of tag to text, not {value!r}")
    wrong = [k for k, v in value.items() if not isinstance(k, str) or not isinstance(v, str)]
    if wrong:
        raise ValueError(f"must map texts to texts; {wrong[0]!r} does not")
    return dict(value)


@dataclass(frozen=True)
class ObjectProperties:
    """Encryption, storage class, tags and canned ACL of objects; None is the bucket's default."""

    encryption: str | None = option(choice(_ENCRYPTIONS), None)
    """`AES256` (SSE-S3), `aws:kms` or `aws:kms:dsse`. Without it, the bucket's."""
    kms_key_id: str | None = option(text, None)
    """The key of `aws:kms` or `aws:kms:dsse`."""
    storage_class: str | None = option(choice(_STORAGE_CLASSES), None)
    """As S3 names it, such as `STANDARD_IA`. Without it, the bucket's. The manifest is always
    `STANDARD`."""
    object_tags: Mapping[str, str] = option(_tag_mapping, {})
    """At most ten S3 object tags, as a mapping. (dbt has a config `tags` of its own.)"""
    acl: str | None = option(choice(_ACLS), None)
    """A canned ACL, such as `bucket-owner-full-control`."""

    def for_files(self) -> dict[str, str]:
        """The arguments of CreateMultipartUpload."""
        storage = {"StorageClass": self.storage_class} if self.storage_class else {}
        return {**self.for_notes(), **storage}

    def for_notes(self) -> dict[str, str]:
        """The arguments of PutObject for the manifest, without a storage class."""
        given = {
            "ServerSideEncryption": self.encryption,
            "SSEKMSKeyId": self.kms_key_id,
            "Tagging": urlencode(self.object_tags) or None,
            "ACL": self.acl,
        }
        return {name: value for name, value in given.items() if value is not None}

    def problems(self, _: Mapping[str, Any]) -> Iterator[str]:
        """Options that can't be combined, and values that S3 would refuse."""
        if self.kms_key_id is not None and not (self.encryption or "").startswith("aws:kms"):
            yield "kms_key_id needs encryption to be aws:kms or aws:kms:dsse"
        yield from tag_problems("object_tags", self.object_tags)


def tag_problems(subject: str, tags: Mapping[str, str]) -> Iterator[str]:
    """What S3 would refuse as an object's tags."""
    if len(tags) > MAX_TAGS:
        yield f"{subject} has {len(tags)} tags; S3 takes {MAX_TAGS} for an object"
    for name, value in tags.items():
        is_valid = all(map(_is_tag_character, name + value))
        if not (is_valid and 0 < _units(name) <= MAX_TAG_NAME and _units(value) <= MAX_TAG_VALUE):
            yield (
                f"{subject} {name!r}: {value!r} is no tag for S3: up to {MAX_TAG_NAME} "
                f"characters for the name, {MAX_TAG_VALUE} for the value, of letters, digits, "
                "spaces and + - = . _ : / @"
            )
        elif name.startswith(_RESERVED):
            yield f"{subject} {name!r}: {value!r}: names that begin with {_RESERVED} are AWS's own"


def _is_tag_character(character: str) -> bool:
    return character in "+-=._:/@" or unicodedata.category(character)[0] in "LNZ"


def _units(text: str) -> int:
    """The length of a tag's text as S3 counts it: in units of UTF-16."""
    return len(text.encode("utf-16-le")) // 2
