"""`_committing.json`: what a commit is to make visible, and whether that is decided.

`docs/commit.md` has the states, who may do what in each, and why a late run is harmless.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from dbt.adapters.mzs3.aws.failures import (
    AwsFailure,
    describe,
    error_code,
    is_missing,
    permission_of,
)
from dbt.adapters.mzs3.errors import CopyError
from dbt.adapters.mzs3.objects.prefix import Prefix
from dbt.adapters.mzs3.upload.names import NO_NAMES, UsedNames
from dbt.adapters.mzs3.upload.pending import PendingFile
from dbt.adapters.mzs3.upload.reaper import UnknownClaimError

COMMITTING = "_committing.json"
State = Literal["open", "forward", "back", "closed"]

_OTHER_CODES = ("PreconditionFailed", "412")
REFUSED_CODES = (*_OTHER_CODES, "ConditionalRequestConflict", "409")
_CONFLICT = 409
NO_CONDITIONS_CODES = ("NotImplemented", "501")


@dataclass(frozen=True)
class CommitIntent:
    """One version of `_committing.json`.

    `run_id` is the commit's own, `written_by` that of the run that wrote this version: another
    one, where it recovers the commit. `shared` says that another run has taken over the clean-up,
    so that more than one may be deleting. `used` are names that were there before this commit. A
    closed intent has no `pending`, and only tells which names are used.
    """

    run_id: str
    state: State
    pending: PendingExport | None
    written_by: str
    used: UsedNames = NO_NAMES
    shared: bool = False

    def to_json(self) -> bytes:
        """The content of the object, which no two versions have in common."""
        document = {
            "state": self.state,
            "run_id": self.run_id,
            "written_by": self.written_by,
            "shared": self.shared,
            "used": asdict(self.used),
            **(asdict(self.pending) if self.pending else {}),
        }
        return (json.dumps(document, ensure_ascii=False) + "\n").encode()

    @classmethod
    def from_json(cls, content: bytes) -> CommitIntent:
        """What `to_json` wrote; raises ValueError for anything else."""
        try:
            values: Mapping[str, Any] = json.loads(content)
            state, used = values["state"], values["used"]
            if state not in get_args(State):
                raise ValueError(f"its state is {state!r}")
            return cls(
                str(values["run_id"]),
                state,
                PendingExport.from_dict(values) if state != "closed" else None,
                str(values["written_by"]),
                UsedNames(int(used["next_number"]), tuple(used["retired"])),
                bool(values["shared"]),
            )
        except (KeyError, TypeError, AttributeError) as exc:
            raise ValueError(f"it lacks {exc}") from exc


@dataclass(frozen=True)
class Version:
    """An intent as it is in S3, and the ETag that a change of it has to name."""

    intent: CommitIntent
    etag: str


class ChangedError(Exception):
    """Somebody else has changed or removed the intent; `found` is what is there now, if any."""

    def __init__(self, found: Version | None) -> None:
        self.found = found
        super().__init__(
            "another run to this location has ended this commit; give each model, and each run, a "
            "location of its own"
        )


class UnansweredError(Exception):
    """S3 has not said whether a change was made, nor can it be read; `cause` is why."""

    def __init__(self, cause: Exception) -> None:
        self.cause = cause
        super().__init__(str(cause))


class CommitError(CopyError):
    """A commit that failed. `remains` says what is left for the next run to finish or remove.

    `spared` are the URIs of objects that have names of its files, and may be somebody else's.
    """

    def __init__(
        self, reason: str, remains: Sequence[str] = (), spared: Sequence[str] = ()
    ) -> None:
        self.remains = tuple(remains)
        self.spared = tuple(spared)
        super().__init__(reason)


class StaleFilesError(CopyError):
    """The export is committed and its manifest true, but files of the old one are still there."""


def read_intent(prefix: Prefix) -> Version | None:
    """The intent at a location, or None.

    Raises AwsFailure, or ValueError if the object is not what a commit writes there.
    """
    found = prefix.read_version(COMMITTING)
    if found is None:
        return None
    intent = CommitIntent.from_json(found[0])
    if intent.pending is not None:
        _require_keys_below(prefix, intent.pending)
    return Version(intent, found[1])


def claimed_uploads(prefix: Prefix, keep: Collection[str]) -> frozenset[str]:
    """The uploads that a commit may be about to complete; raises UnknownClaimError, AwsFailure.

    A run that may not read takes the claim to be its own still, if it has made one: then it keeps
    uploads.
    """
    try:
        version = read_intent(prefix)
    except (*AwsFailure, ValueError) as exc:
        # An export can do without the right to read. Without an intent nothing is lost by it.
        key = prefix.key(COMMITTING)
        if keep or prefix.find(key) is None:
            return frozenset()
        raise UnknownClaimError(
            f"{prefix.uri_of(key)}, which may name open uploads of another run, could not be "
            f"read: {exc}"
        ) from exc
    pending = version.intent.pending if version else None
    return frozenset(file.upload_id for file in pending.files) if pending else frozenset()


def put_intent(prefix: Prefix, intent: CommitIntent, instead_of: Version | None) -> Version:
    """Compare and set: the intent is there now, in the place of `instead_of`, or of nothing.

    Raises ChangedError if something else was there, AwsFailure if S3 has not made the change, and
    UnansweredError if that is not known.
    """
    body = intent.to_json()
    condition = {"IfMatch": instead_of.etag} if instead_of else {"IfNoneMatch": "*"}
    try:
        return Version(intent, prefix.write(COMMITTING, body, **condition))
    except AwsFailure as exc:
        if error_code(exc) in NO_CONDITIONS_CODES:
            return Version(intent, prefix.write(COMMITTING, body))
        # A change that S3 has made may be refused all the same, as boto3 has asked for it twice.
        was_refused = error_code(exc) in REFUSED_CODES or is_missing(exc)
        if not was_refused and was_surely_refused(exc):
            raise
        try:
            found = prefix.read_version(COMMITTING)
        except AwsFailure as second:
            raise UnansweredError(second) from exc
        if found is not None and found[0] == body:
            return Version(intent, found[1])
        if not was_refused or (found and instead_of and found[1] == instead_of.etag):
            raise  # nobody has changed it: S3 had another request for it at each attempt
        raise ChangedError(_version(*found) if found else None) from exc


def close_intent(
    prefix: Prefix, version: Version, writer: str, used: UsedNames, *, deletes: bool
) -> None:
    """The location is free for the next commit; raises ChangedError or AwsFailure.

    The object is removed where the store compares before it deletes (`deletes`), and no name has
    to be remembered. Otherwise it stays, closed: a deletion without a condition could meet the
    intent of a later run.
    """
    if deletes and used == NO_NAMES:
        try:
            prefix.delete(prefix.key(COMMITTING), IfMatch=version.etag)
        except AwsFailure as exc:
            if error_code(exc) in _OTHER_CODES or is_missing(exc):
                return  # removed by us, asked for twice; or another run's by now
        else:
            return
    closed = replace(version.intent, state="closed", pending=None, written_by=writer, used=used)
    put_intent(prefix, closed, version)


def _version(content: bytes, etag: str) -> Version | None:
    """The intent that stands there; None for what no commit writes."""
    with contextlib.suppress(ValueError):
        return Version(CommitIntent.from_json(content), etag)
    return None


def _has_no_answer(exc: Exception) -> bool:
    """Whether a request may have taken effect although it failed."""
    answer = getattr(exc, "response", None) or {}
    status = int(answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 500))
    return status >= 500 or status == _CONFLICT


def describe_failure(exc: BaseException, doing: str) -> str:
    """What went wrong with `doing`, in a line that names the permission that was missing."""
    cause = exc.cause if isinstance(exc, UnansweredError) else exc
    if isinstance(cause, AwsFailure):
        return describe(cause, doing, permission_of(cause))
    return f"{doing} failed: {exc}"


def was_surely_refused(exc: Exception) -> bool:
    """Whether S3 has said no at once, so that no attempt of the request can take effect."""
    answer = getattr(exc, "response", None) or {}
    about = answer.get("ResponseMetadata", {})
    return not _has_no_answer(exc) and int(about.get("RetryAttempts", 0)) == 0


def _require_keys_below(prefix: Prefix, pending: PendingExport) -> None:
    """Raises ValueError for an intent of another location, which somebody has copied here."""
    keys = [*(file.key for file in pending.files), *pending.stale]
    if "run_id" not in pending.manifest or "meta" not in pending.manifest:
        raise ValueError("its manifest is none of an export")
    urls = [str(entry.get("url")) for entry in pending.manifest.get("entries", ())]
    if not all(key.startswith(prefix.location.prefix) for key in keys) or not all(
        url.startswith(prefix.uri) for url in urls
    ):
        raise ValueError("it names files elsewhere")


@dataclass(frozen=True)
class PendingExport:
    """Everything a commit needs, so that any run can finish it.

    `replaces` is the ETag of the manifest that `manifest` takes the place of, None where there is
    none; `stale` are the keys that only the old manifest names. `in_place` is set if the one
    file has the name of one that the old manifest names: to that one's ETag.
    """

    files: tuple[PendingFile, ...]
    manifest: Mapping[str, Any]
    replaces: str | None = None
    stale: tuple[str, ...] = ()
    in_place: str | None = None

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PendingExport:
        """The export that an intent's JSON describes; KeyError or TypeError for anything else."""
        return cls(
            files=tuple(PendingFile.from_dict(file) for file in values["files"]),
            manifest=values["manifest"],
            replaces=values.get("replaces"),
            stale=tuple(values.get("stale", ())),
            in_place=values.get("in_place"),
        )
