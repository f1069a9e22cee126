"""`_committing.json`, the intent of a commit: what it will make visible, and its state.

`docs/commit.md` explains the states, what each run may do in them, and why late runs do no harm.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, get_args

from dbt.adapters.mzs3.export.commit.failures import UnansweredError
from dbt.adapters.mzs3.store.conditions import record_conditional_writes
from dbt.adapters.mzs3.store.failures import (
    ConflictError,
    MissingError,
    NotSupportedError,
    PreconditionFailedError,
    StoreError,
    on_condition,
)
from dbt.adapters.mzs3.store.prefix import Prefix
from dbt.adapters.mzs3.upload.names import NO_NAMES, UsedNames
from dbt.adapters.mzs3.upload.pending import PendingFile
from dbt.adapters.mzs3.upload.reaper import UnknownClaimError

COMMITTING = "_committing.json"
State = Literal["open", "forward", "back", "closed"]

_ETAG_OF_NONE = '"0"'  # an ETag that no object has


@dataclass(frozen=True)
class PendingExport:
    """All data of a commit, so that any run can finish it.

    `replaces` is the ETag of the old manifest, or None; `stale` are the keys that only the old
    manifest names. If there is one new file, which replaces an old file of the same name,
    `in_place` is the ETag of the old file.
    """

    files: tuple[PendingFile, ...]
    manifest: Mapping[str, Any]
    replaces: str | None = None
    stale: tuple[str, ...] = ()
    in_place: str | None = None


@dataclass(frozen=True)
class CommitIntent:
    """One version of `_committing.json`.

    `run_id` is the id of the commit and its run, `written_by` that of the run that wrote this
    version: the commit's own, or one that recovers it. `shared`: another run has taken over, so
    that several may delete files. `used` are names of earlier files; `pending` is None if closed.
    """

    state: State
    run_id: str
    written_by: str
    shared: bool = False
    used: UsedNames = NO_NAMES
    pending: PendingExport | None = None

    def to_json(self) -> bytes:
        """The content of the object in S3."""
        document = {**vars(self)}
        pending = document.pop("pending")
        document |= vars(pending) if pending else {}
        return (json.dumps(document, ensure_ascii=False, default=vars) + "\n").encode()

    @classmethod
    def from_json(cls, content: bytes) -> CommitIntent:
        """Parses the result of `to_json`; raises ValueError for any other content."""
        try:
            values: Mapping[str, Any] = json.loads(content)
            state, used = values["state"], values["used"]
            if state not in get_args(State):
                raise ValueError(f"its state is {state!r}")
            intent = cls(
                state,
                str(values["run_id"]),
                str(values["written_by"]),
                bool(values["shared"]),
                UsedNames(int(used["next_number"]), tuple(used["retired"])),
            )
            if state == "closed":
                return intent
            pending = PendingExport(
                tuple(map(PendingFile.from_dict, values["files"])),
                values["manifest"],
                values["replaces"],
                tuple(values["stale"]),
                values["in_place"],
            )
            return replace(intent, pending=pending)
        except (KeyError, TypeError, AttributeError) as exc:
            raise ValueError(f"it lacks {exc}") from exc


@dataclass(frozen=True)
class Version:
    """An intent as it is in S3, with its ETag. `has_md5`: the ETag is the MD5 of the content.

    Then, other ETags in this bucket are MD5s, too, if the encryption is the same.
    """

    intent: CommitIntent
    etag: str
    has_md5: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, intent: CommitIntent, body: bytes, etag: str) -> Version:
        """The version of an intent whose content in S3 is `body`."""
        md5 = hashlib.md5(body, usedforsecurity=False).hexdigest()
        return cls(intent, etag, etag.strip('"') == md5)


class ChangedError(Exception):
    """Another run has changed or removed the intent; `found` is the version there now, if any."""

    def __init__(self, found: Version | None) -> None:
        self.found = found
        super().__init__(
            "another run to this location has ended this commit; give each model, and each run, a "
            "location of its own"
        )


def read_intent(prefix: Prefix) -> Version | None:
    """The intent at a location, if any. Raises StoreError, and ValueError for wrong content."""
    found = prefix.read_version(COMMITTING)
    if found is None:
        return None
    intent = CommitIntent.from_json(found[0])
    if (pending := intent.pending) is not None:
        if "run_id" not in pending.manifest or "meta" not in pending.manifest:
            raise ValueError("its manifest is none of an export")
        keys = [*(file.key for file in pending.files), *pending.stale]
        urls = [str(entry.get("url")) for entry in pending.manifest.get("entries", ())]
        # The object may have been copied from another location.
        if not all(key.startswith(prefix.location.prefix) for key in keys) or not all(
            url.startswith(prefix.uri) for url in urls
        ):
            raise ValueError("it names files elsewhere")
    return Version.of(intent, *found)


def claimed_uploads(prefix: Prefix, keep: Collection[str]) -> frozenset[str]:
    """The ids of uploads that a commit may be about to complete; see `upload.reaper.Claimed`.

    If the intent can't be read, raises UnknownClaimError; but if there are uploads to `keep`,
    assumes that the intent is this run's.
    """
    try:
        version = read_intent(prefix)
    except (StoreError, ValueError) as exc:
        # An export works without the permission to read; and there may be no intent.
        key = prefix.key(COMMITTING)
        if keep or prefix.find(key) is None:
            return frozenset()
        raise UnknownClaimError(
            f"{prefix.uri_of(key)}, which may name open uploads of another run, could not be "
            f"read: {exc}"
        ) from exc
    pending = version.intent.pending if version else None
    return frozenset(file.upload_id for file in pending.files) if pending else frozenset()


def put_intent(prefix: Prefix, intent: CommitIntent, expected_version: Version | None) -> Version:
    """Writes the intent if the object still is the `expected_version`, or is absent if None.

    Raises ChangedError if the object is another one; after other failures, StoreError if the
    intent was not written, and UnansweredError if it may have been.
    """
    body = intent.to_json()
    etag = expected_version.etag if expected_version else None
    try:
        write = partial(prefix.write, COMMITTING, body)
        written = on_condition(write, if_absent=etag is None, if_version=etag)
        return Version.of(intent, body, written)
    except StoreError as exc:
        # After a retry, S3 may refuse the change because the first attempt has made it.
        was_refused = isinstance(exc, (PreconditionFailedError, ConflictError, MissingError))
        if not was_refused and exc.is_certain_refusal:
            raise
        try:
            found = prefix.read_version(COMMITTING)
        except StoreError as reading_failure:
            raise UnansweredError(reading_failure) from exc
        if found is not None and found[0] == body:
            return Version.of(intent, *found)
        if not was_refused or (found and expected_version and found[1] == expected_version.etag):
            raise  # the intent has not changed: each attempt conflicted with another request
        changed = None
        with contextlib.suppress(ValueError):  # something else has written the object
            changed = Version.of(CommitIntent.from_json(found[0]), *found) if found else None
        raise ChangedError(changed) from exc


def probe_conditional_writes(prefix: Prefix, version: Version) -> bool:
    """Tests whether the store supports conditional writes, with two writes that it must refuse.

    Both write the content that is there already. On a store that accepts them, the last of two
    runs that claim the location wins. A certain result is kept for this process.
    """
    body, outcomes = version.intent.to_json(), list[StoreError | None]()
    for condition in ({"if_absent": True}, {"if_version": _ETAG_OF_NONE}):
        try:
            prefix.write(COMMITTING, body, **condition)
        except StoreError as exc:
            outcomes.append(exc)
        else:
            outcomes.append(None)
    # If no response came, or If-Match is denied, assume that the store supports conditions.
    is_unsupported = any(isinstance(outcome, NotSupportedError) for outcome in outcomes)
    has_conditional_writes = not is_unsupported and None not in outcomes
    # The first write may succeed because another run has removed the intent meanwhile.
    is_refuted = outcomes[1] is None or is_unsupported
    if is_refuted or all(isinstance(outcome, PreconditionFailedError) for outcome in outcomes):
        record_conditional_writes(prefix, has_conditional_writes)
    return has_conditional_writes


def close_intent(
    prefix: Prefix,
    version: Version,
    writer: str,
    used: UsedNames,
    *,
    has_conditional_deletes: bool,
) -> None:
    """Frees the location for the next commit; raises ChangedError or StoreError.

    Deletes the object if no `used` names have to be kept and the store has conditional deletes,
    which spare a later run's intent. Else sets the state to `closed`.
    """
    if has_conditional_deletes and used == NO_NAMES:
        try:
            prefix.delete(prefix.key(COMMITTING), if_version=version.etag)
        except (PreconditionFailedError, MissingError):
            return  # deleted by our own first attempt; or it is another run's intent by now
        except StoreError:
            pass
        else:
            return
    closed = replace(version.intent, state="closed", pending=None, written_by=writer, used=used)
    put_intent(prefix, closed, version)
