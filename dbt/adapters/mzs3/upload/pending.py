"""Files as multipart uploads that are not completed, and their completion."""

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
)
from dbt.adapters.mzs3.store.prefix import Prefix
from dbt.adapters.mzs3.store.store import ListedObject, Traits

_MD5 = re.compile("[0-9a-f]{32}")
# The pauses before a completion is sent again that conflicts with another request for the key.
# That may be this run's own, whose connection broke; S3 may take a minute to join many parts.
_PAUSES_S = (2.0, 5.0, 10.0, 20.0, 30.0)


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
    """An object that is not the file has the file's name, `key`; it stays."""

    def __init__(self, prefix: Prefix, key: str) -> None:
        self.key = key
        super().__init__(
            f"{prefix.uri_of(key)} is there, which this run was about to write: another run is "
            "committing, or something else writes to this location, or to one above or below it. "
            "Give each model, and each run, a location of its own"
        )


class KnownEtags:
    """What is known of the ETags that a store gives to completed uploads, under one encryption.

    `numbered`: they end with the number of parts, as on Amazon S3. `are_md5s`: those of objects
    that are put at once are MD5s, so that on Amazon S3 those of parts are. `by_key` were answered
    to this run. `instead_of` is the ETag of the old object that the one file replaces, if any.
    """

    def __init__(self, traits: Traits, instead_of: str | None = None) -> None:
        self.traits = traits
        self.instead_of = instead_of
        self.numbered = traits.numbers_etags
        self.are_md5s = False
        self.by_key: dict[str, str] = {}
        self._were_seen_to_follow: bool | None = None

    @property
    def follow(self) -> bool:
        """Whether they are S3's formula of the parts' ETags: as was seen, else as S3 has it.

        Other stores have formulas of their own, also where they answer MD5s to what is put.
        """
        seen = self._were_seen_to_follow
        return (self.traits.numbers_etags and self.are_md5s) if seen is None else seen

    def note(self, file: PendingFile, answered: str) -> None:
        """Learn from the answer to a completion, which is empty where the store says none."""
        if etag := answered.strip('"'):
            self.by_key[file.key] = etag
            self.numbered |= _is_numbered(etag, file)
            self._were_seen_to_follow = etag == multipart_etag(file.etags)


def is_file(found: ListedObject | None, file: PendingFile, known: KnownEtags) -> bool | None:
    """Whether an object that has the file's name is the file's completed upload; None if unknown.

    The only judge of that. `docs/commit.md` says why each piece of evidence holds.
    """
    if found is None or found.size != file.bytes:
        return False
    etag, formula = found.etag.strip('"'), multipart_etag(file.etags)
    if etag in {formula, known.by_key.get(file.key)}:
        return True
    if found.etag == known.instead_of:
        return False
    if not _is_numbered(etag, file):
        return False if known.numbered else None
    return False if known.follow and formula is not None else None


def _is_numbered(etag: str, file: PendingFile) -> bool:
    return etag.endswith(f"-{len(file.etags)}")


def find_file(
    prefix: Prefix, file: PendingFile, known: KnownEtags
) -> tuple[ListedObject | None, bool | None]:
    """The object with the file's name, and `is_file` of it.

    Where its ETag does not decide, an upload that is still open does: it was not completed.
    Raises StoreError.
    """
    found = prefix.find(file.key)
    verdict = is_file(found, file, known)
    if verdict is None and _is_open(prefix, file):
        verdict = False
    return found, verdict


def _is_open(prefix: Prefix, file: PendingFile) -> bool:
    """Whether the upload is surely not completed; False where the run may not ask."""
    try:
        prefix.store.parts(file.key, file.upload_id)
    except (MissingError, PermissionDeniedError):
        return False
    return True


def complete(prefix: Prefix, file: PendingFile, known: KnownEtags) -> str | None:
    """Complete the upload, idempotently: the object's ETag, or None if the upload is gone.

    It replaces only an object whose ETag is `known.instead_of`, if the store heeds conditions.
    The ETag is empty if the object is there already, or may be: see `is_file`. Raises TakenError,
    and StoreError, whose `operation` says whether the completion itself was refused.
    """
    conditions: list[dict[str, Any]] = [{"if_absent": True}, {"if_absent": True}]
    if not known.traits.heeds_conditions:
        conditions.append({})  # see below
    if known.instead_of is not None:
        conditions.insert(0, {"if_version": known.instead_of})
    for condition in conditions:
        try:
            answered = _complete_once_free(prefix, file, condition)
        except StoreError as exc:
            refused = exc
        else:
            known.note(file, answered)
            return answered
        is_unmet = isinstance(refused, PreconditionFailedError)
        if isinstance(refused, MissingObjectError) and "if_version" in condition:
            continue  # what was to be replaced is gone, so the name is free
        # A store may say so of an upload that another run is completing or aborting just now.
        if not is_unmet and not isinstance(refused, (MissingError, InvalidPartError)):
            raise refused
        found, verdict = find_file(prefix, file, known)
        if verdict is not False:
            return ""
        if found is not None and (is_unmet or found.etag != known.instead_of):
            raise TakenError(prefix, file.key) from refused
        if not is_unmet:
            return None
        # Nothing is there. It was removed just now; or the store, which is not Amazon S3, takes a
        # name that was deleted for one that is in use, and says so once more.
    raise refused


def _complete_once_free(prefix: Prefix, file: PendingFile, condition: Mapping[str, Any]) -> str:
    """The ETag of the completed upload; waits while another request for the key is under way."""
    for pause in _PAUSES_S:
        try:
            return prefix.complete(file.key, file.upload_id, file.etags, **condition)
        except ConflictError:
            Event().wait(pause)
    return prefix.complete(file.key, file.upload_id, file.etags, **condition)


def multipart_etag(etags: Sequence[str]) -> str | None:
    """The ETag that S3 gives to an object of such parts; None if the ETags are no MD5s.

    It is the MD5 of the parts' MD5s, and their number.
    """
    digests = [etag.strip('"') for etag in etags]
    if not all(map(_MD5.fullmatch, digests)):
        return None
    whole = hashlib.md5(bytes.fromhex("".join(digests)), usedforsecurity=False).hexdigest()
    return f"{whole}-{len(etags)}"
