"""Files as multipart uploads that are not completed, and their completion."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.mzs3.aws.failures import (
    UNMET_CODES,
    AwsFailure,
    error_code,
    is_denied,
    is_missing,
)
from dbt.adapters.mzs3.errors import LocationError
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


class TakenError(LocationError):
    """The name of a file is taken by an object that is not the file; nothing has replaced it."""

    def __init__(self, prefix: Prefix, key: str) -> None:
        super().__init__(
            f"{prefix.uri_of(key)} is there, which this run was about to write: another run is "
            "committing, or something else writes to this location, or to one above or below it. "
            "Give each model, and each run, a location of its own"
        )


def complete(prefix: Prefix, file: PendingFile, *, instead_of: str | None = None) -> str | None:
    """Complete the upload, idempotently: the object's ETag, or None if the upload is gone.

    It replaces nothing but an object whose ETag is `instead_of`, as far as the store heeds
    conditions. The ETag is empty if the upload was completed before: see `is_completed`. Raises
    TakenError, and AwsFailure.
    """
    replaced = {"IfNoneMatch": "*"} if instead_of is None else {"IfMatch": instead_of}
    try:
        return prefix.complete(file.key, file.upload_id, file.etags, **replaced)
    except AwsFailure as exc:
        if error_code(exc) in UNMET_CODES:
            if not _is_made_of(prefix, file):
                raise TakenError(prefix, file.key) from exc
            return ""  # by an earlier request, of this run or another one
        if instead_of is not None and error_code(exc) == "NoSuchKey":
            return complete(prefix, file)  # what was to be replaced is gone, so the name is free
        # A store may say so of an upload that another run is completing or aborting just now.
        if not is_missing(exc) and error_code(exc) != "InvalidPart":
            raise
        return "" if is_completed(prefix, file, instead_of=instead_of) else None


def _is_made_of(prefix: Prefix, file: PendingFile) -> bool:
    """Whether the object that has the file's name is the file's completed upload.

    Its ETag tells, where the store follows S3's formula; else that the upload is gone, or where a
    run may not ask for that, the number of parts.
    """
    found = prefix.find(file.key)
    if found is None or found.size != file.bytes:
        return False
    etag = found.etag.strip('"')
    if etag == multipart_etag(file.etags):
        return True
    try:
        prefix.parts_of(file.key, file.upload_id)
    except AwsFailure as exc:
        if is_denied(exc):
            return etag.endswith(f"-{len(file.etags)}")
        if not is_missing(exc):
            raise
        return True
    return False


def is_completed(prefix: Prefix, file: PendingFile, *, instead_of: str | None = None) -> bool:
    """Whether the upload, which is gone, was completed, as far as the object's size tells.

    Where it was to replace an object, whose ETag is `instead_of`, another ETag tells too.
    """
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
