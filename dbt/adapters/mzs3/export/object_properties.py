"""Properties of the objects that an export writes, as S3 names them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from dbt.adapters.mzs3.config.values import choice, text

_ENCRYPTIONS = ("AES256", "aws:kms", "aws:kms:dsse")
_STORAGE_CLASSES = (
    "STANDARD",
    "STANDARD_IA",
    "ONEZONE_IA",
    "INTELLIGENT_TIERING",
    "GLACIER_IR",
    "GLACIER",
    "DEEP_ARCHIVE",
    "REDUCED_REDUNDANCY",
)
_ACLS = (
    "private",
    "public-read",
    "public-read-write",
    "authenticated-read",
    "aws-exec-read",
    "bucket-owner-read",
    "bucket-owner-full-control",
)
# Limits of S3's object tags.
_MAX_TAGS = 10
_MAX_TAG_KEY = 128
_MAX_TAG_VALUE = 256


def _tag_mapping(value: Any) -> Mapping[str, str]:
    """Tags as a mapping of texts to texts; raises ValueError."""
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a mapping of tag to text, not {value!r}")
    wrong = [k for k, v in value.items() if not isinstance(k, str) or not isinstance(v, str)]
    if wrong:
        raise ValueError(f"must map texts to texts; {wrong[0]!r} does not")
    return dict(value)


PROPERTIES: Mapping[str, Callable[[Any], Any]] = {
    "encryption": choice(_ENCRYPTIONS),
    "kms_key_id": text,
    "storage_class": choice(_STORAGE_CLASSES),
    "object_tags": _tag_mapping,
    "acl": choice(_ACLS),
}
"""The options of models, with what converts their values."""


@dataclass(frozen=True)
class ObjectProperties:
    """Encryption, storage class, tags and canned ACL of objects; None is the bucket's default."""

    encryption: str | None = None
    """`AES256` (SSE-S3), `aws:kms` or `aws:kms:dsse`. Without it, the bucket's."""
    kms_key_id: str | None = None
    """The key of `aws:kms` or `aws:kms:dsse`."""
    storage_class: str | None = None
    """As S3 names it, such as `STANDARD_IA`. Without it, the bucket's. The manifest is always
    `STANDARD`."""
    object_tags: Mapping[str, str] = field(default_factory=dict)
    """At most ten S3 object tags, as a mapping. (dbt has a config `tags` of its own.)"""
    acl: str | None = None
    """A canned ACL, such as `bucket-owner-full-control`."""

    def for_files(self) -> dict[str, str]:
        """The arguments of CreateMultipartUpload."""
        storage = {"StorageClass": self.storage_class} if self.storage_class else {}
        return {**self.for_notes(), **storage}

    def for_notes(self) -> dict[str, str]:
        """The arguments of PutObject for the manifest, whose storage class is the bucket's."""
        given = {
            "ServerSideEncryption": self.encryption,
            "SSEKMSKeyId": self.kms_key_id,
            "Tagging": urlencode(self.object_tags) or None,
            "ACL": self.acl,
        }
        return {name: value for name, value in given.items() if value is not None}

    def problems(self) -> list[str]:
        """What is wrong with the properties, in words."""
        problems = []
        if self.kms_key_id is not None and not (self.encryption or "").startswith("aws:kms"):
            problems.append("kms_key_id needs encryption to be aws:kms or aws:kms:dsse")
        if len(self.object_tags) > _MAX_TAGS:
            problems.append(f"object_tags has {len(self.object_tags)} tags; S3 takes {_MAX_TAGS}")
        for key, value in self.object_tags.items():
            if not 0 < len(key) <= _MAX_TAG_KEY or len(value) > _MAX_TAG_VALUE:
                problems.append(
                    f"object_tags has the tag {key!r}; S3 takes keys of 1 to {_MAX_TAG_KEY} "
                    f"characters and values of up to {_MAX_TAG_VALUE}"
                )
        return problems
