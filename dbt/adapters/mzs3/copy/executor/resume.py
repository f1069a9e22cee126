"""Uploads that an interrupted run left open, and whether their parts are what is wanted."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class OpenUpload:
    """A multipart upload and the parts S3 has of it: part number to (ETag, size in bytes)."""

    upload_id: str
    parts: Mapping[int, tuple[str, int]] = field(default_factory=dict)

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
