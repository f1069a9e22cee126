"""Uploads that an interrupted run left open, and whether they are what is wanted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

NOTE_PART = 10_000
"""The part that says what an upload was opened with; no completion lists it, so it is dropped."""


def note_of(properties: Mapping[str, str]) -> bytes:
    """What that part holds: short, and the same for uploads that were opened with the same."""
    document = json.dumps(dict(properties), sort_keys=True).encode()
    return f"dbt-mzs3 {hashlib.sha256(document).hexdigest()}".encode()


@dataclass(frozen=True)
class OpenUpload:
    """A multipart upload and the parts S3 has of it: part number to (ETag, size in bytes)."""

    upload_id: str
    parts: Mapping[int, tuple[str, int]] = field(default_factory=dict)

    def was_opened_with(self, properties: Mapping[str, str]) -> bool:
        """Whether its object would have these properties: S3 tells none of an upload's ACL,
        encryption and tags, so the run that opened it has left a note in it."""
        return self.etag_if_equal(NOTE_PART, note_of(properties)) is not None

    def etag_if_equal(self, number: int, body: bytes) -> str | None:
        """The ETag of a part that S3 already has with exactly these bytes, or None.

        S3's ETag of a part is the MD5 of its bytes, but for some kinds of encryption; there no
        part is ever taken for equal, and all are sent again.
        """
        etag, size = self.parts.get(number, ("", -1))
        if size != len(body):
            return None
        md5 = hashlib.md5(body, usedforsecurity=False).hexdigest()
        return etag if etag.strip('"') == md5 else None
