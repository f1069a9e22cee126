"""Files as multipart uploads that are not completed, and their completion."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.mzs3.aws.failures import AwsFailure, error_code, is_missing
from dbt.adapters.mzs3.objects.prefix import Prefix

_MD5 = re.compile("[0-9a-f]{32}")


@dataclass(frozen=True)
class PendingFile:
    """A file's open multipart upload with all of its parts; sizes in bytes."""

    part: int
    number: int
    key: str
    upload_id: str
    etags: tuple[str, ...]
    rows: int
    bytes: int
    sha256: str
    folder: str = ""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PendingFile:
        """The file that `asdict` made a mapping of, or that a worker reported."""
        return cls(**{**values, "etags": tuple(values["etags"])})


def complete(prefix: Prefix, file: PendingFile, *, instead_of: str | None = None) -> str | None:
    """Complete the upload, idempotently: the object's ETag, or None if the upload is gone.

    The ETag is empty if the upload was completed before, which is known by the object's size, and
    where it replaces an object, whose ETag is `instead_of`, by another ETag too. Raises
    AwsFailure.
    """
    try:
        return prefix.complete(file.key, file.upload_id, file.etags)
    except AwsFailure as exc:
        # A store may say so of an upload that another run is completing or aborting just now.
        if not is_missing(exc) and error_code(exc) != "InvalidPart":
            raise
        return "" if is_completed(prefix, file, instead_of=instead_of) else None


def is_completed(prefix: Prefix, file: PendingFile, *, instead_of: str | None = None) -> bool:
    """Whether the upload was completed, as far as the object's size tells: see `complete`."""
    found = prefix.find(file.key)
    if found is None or found.size != file.bytes:
        return False
    return found.etag != instead_of or found.etag.strip('"') == multipart_etag(file.etags)


def multipart_etag(etags: Sequence[str]) -> str | None:
    """The ETag that S3 gives to an object of such parts; None if the ETags are no MD5s.

    It is the MD5 of the parts' MD5s, and their number.
    """
    digests = [etag.strip('"') for etag in etags]
    if not all(map(_MD5.fullmatch, digests)):
        return None
    whole = hashlib.md5(bytes.fromhex("".join(digests)), usedforsecurity=False).hexdigest()
    return f"{whole}-{len(etags)}"
