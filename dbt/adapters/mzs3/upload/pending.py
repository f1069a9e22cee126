"""Files whose multipart uploads are still open, and their completion."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any

from dbt.adapters.mzs3.errors import LocationError
from dbt.adapters.mzs3.store.failures import (
    ConflictError,
    InvalidPartError,
    MissingError,
    MissingObjectError,
    PermissionDeniedError,
    PreconditionFailedError,
    StoreError,
    UnreadableError,
)
from dbt.adapters.mzs3.store.prefix import Prefix
from dbt.adapters.mzs3.store.store import SHA256_AFTER, ListedObject

_MD5 = re.compile("[0-9a-f]{32}")
# The pauses before retries of a completion that conflicts with another request for the key: maybe
# this run's own, whose connection broke. S3 may take a minute to join many parts.
_PAUSES_S = (2.0, 5.0, 10.0, 20.0, 30.0)


@dataclass(frozen=True)
class PendingFile:
    """A file whose parts are all uploaded, but whose upload is not completed yet."""

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
        """Parses the result of `asdict`, or a worker's report."""
        return cls(**{**values, "etags": tuple(values["etags"])})


class TakenError(LocationError):
    """Another object has the `key` of a file; the object is not changed."""

    def __init__(self, prefix: Prefix, key: str) -> None:
        self.key = key
        super().__init__(
            f"{prefix.uri_of(key)} is there, which this run was about to write: another run is "
            "committing, or something else writes to this location, or to one above or below it. "
            "Give each model, and each run, a location of its own"
        )


class KnownEtags:
    """What is known about the ETags of objects in a store, with one kind of encryption.

    `numbered`: those of completed uploads end with the number of parts, as on Amazon S3.
    `are_md5s`: those of PUTs are MD5s, as on Amazon S3 those of parts then are, too. `by_key` has
    those that completions returned to this run. `replaced_etag` is that of the file to replace, if
    any.
    """

    def __init__(self, replaced_etag: str | None = None, *, is_amazon_s3: bool) -> None:
        self.is_amazon_s3 = is_amazon_s3
        self.replaced_etag = replaced_etag
        self.numbered = is_amazon_s3
        self.are_md5s = False
        self.by_key: dict[str, str] = {}
        self._has_followed: bool | None = None

    @property
    def follow_formula(self) -> bool:
        """Whether ETags of completed uploads are `multipart_etag`: as seen last, else as on S3.

        Other stores have their own formulas, even if the ETags of PUTs are MD5s.
        """
        seen = self._has_followed
        return (self.is_amazon_s3 and self.are_md5s) if seen is None else seen

    def note(self, file: PendingFile, answered: str) -> None:
        """Records the ETag in the response to a completion; empty if the response had none."""
        if etag := answered.strip('"'):
            self.by_key[file.key] = etag
            self.numbered |= _is_numbered(etag, file)
            self._has_followed = etag == multipart_etag(file.etags)


def is_file(found: ListedObject | None, file: PendingFile, known: KnownEtags) -> bool | None:
    """Whether the object with the file's key is the file's completed upload; None if unknown.

    Nothing else in the code decides this. `docs/commit.md` explains the evidence.
    """
    if found is None or found.size != file.bytes:
        return False
    etag, formula = found.etag.strip('"'), multipart_etag(file.etags)
    if etag in {formula, known.by_key.get(file.key)}:
        return True
    if found.etag == known.replaced_etag:
        return False
    if not _is_numbered(etag, file):
        return False if known.numbered else None
    return False if known.follow_formula and formula is not None else None


def _is_numbered(etag: str, file: PendingFile) -> bool:
    return etag.endswith(f"-{len(file.etags)}")


def find_file(
    prefix: Prefix, file: PendingFile, known: KnownEtags
) -> tuple[ListedObject | None, bool | None]:
    """Returns the object with the file's key, and whether it is the file, as `is_file` does.

    If the ETag does not decide, but the upload is still open, the object is not the file.
    Raises StoreError.
    """
    found = prefix.find(file.key)
    verdict = is_file(found, file, known)
    if verdict is None and _is_open(prefix, file):
        verdict = False
    return found, verdict


def _is_open(prefix: Prefix, file: PendingFile) -> bool:
    """Whether the upload is still open; False if the permission to list parts is missing."""
    try:
        prefix.store.parts(file.key, file.upload_id)
    except (MissingError, PermissionDeniedError):
        return False
    return True


def complete(prefix: Prefix, file: PendingFile, known: KnownEtags) -> str | None:
    """Completes the upload, idempotently. Returns the ETag, or None if the upload is gone.

    If the store supports conditional writes, only an object whose ETag is `known.replaced_etag` is
    replaced. Returns "" if the object is the completed file already, or may be: see `is_file`.
    Raises TakenError, and StoreError, whose `operation` is that of the request that failed.
    """
    conditions: list[dict[str, Any]] = [{"if_absent": True}, {"if_absent": True}]
    if not known.is_amazon_s3:
        conditions.append({})  # the end of the loop says why
    if known.replaced_etag is not None:
        conditions.insert(0, {"if_version": known.replaced_etag})
    for condition in conditions:
        try:
            etag = _complete_once_free(prefix, file, condition)
        except StoreError as exc:
            failure = exc
        else:
            known.note(file, etag)
            if etag:
                return etag
            failure = UnreadableError("the answer has no ETag")
        is_unmet = isinstance(failure, PreconditionFailedError)
        if isinstance(failure, MissingObjectError) and "if_version" in condition:
            continue  # the old object is gone, so the key is free
        # Stores may return the first two while another run completes or aborts the upload.
        expected = (MissingError, InvalidPartError, UnreadableError)
        if not is_unmet and not isinstance(failure, expected):
            raise failure
        found, verdict = find_file(prefix, file, known)
        if verdict is not False:
            return ""
        if found is not None and (is_unmet or found.etag != known.replaced_etag):
            raise TakenError(prefix, file.key) from failure
        if isinstance(failure, UnreadableError):
            raise failure
        if not is_unmet:
            return None
        # The key has no object: it was removed just now; or the store, which is not Amazon S3,
        # takes a deleted key for existing, and only accepts an attempt without a condition.
    raise failure


def _complete_once_free(prefix: Prefix, file: PendingFile, condition: Mapping[str, Any]) -> str:
    """Completes the upload; returns the ETag. Retries while other requests for the key run."""
    for pause in _PAUSES_S:
        try:
            return prefix.complete(file.key, file.upload_id, file.etags, **condition)
        except ConflictError:
            Event().wait(pause)
    return prefix.complete(file.key, file.upload_id, file.etags, **condition)


def multipart_etag(etags: Sequence[str]) -> str | None:
    """The ETag that S3 gives to an object with parts of these ETags; None if they are no MD5s.

    It is the MD5 of the concatenated MD5s of the parts, a hyphen, and the number of parts.
    """
    digests = [etag.partition(SHA256_AFTER)[0].strip('"') for etag in etags]
    if not all(map(_MD5.fullmatch, digests)):
        return None
    whole = hashlib.md5(bytes.fromhex("".join(digests)), usedforsecurity=False).hexdigest()
    return f"{whole}-{len(etags)}"
