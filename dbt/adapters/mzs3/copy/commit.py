"""Making an export visible: all of its files, or none."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from dbt.adapters.mzs3.aws.failures import AwsFailure, describe, error_code, is_missing
from dbt.adapters.mzs3.aws.location import S3Location
from dbt.adapters.mzs3.copy.destination import COMMITTING, MANIFEST, require_empty
from dbt.adapters.mzs3.copy.manifest import to_json
from dbt.adapters.mzs3.copy.pending import PendingFile
from dbt.adapters.mzs3.errors import CopyError, LocationError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_THREADS = 16
_COMMITTING_STATE = "committing"
_JSON = "application/json"


class CommitError(CopyError):
    """A commit that was refused, with what of it could not be taken back."""

    def __init__(self, reason: str, remains: Sequence[str]) -> None:
        self.remains = tuple(remains)
        super().__init__(reason)


class Commit:
    """The one commit point of an export.

    The pending set is written as `_committing.json`, every upload is completed, and
    `_manifest.json` is written last. A refusal in between takes everything back; a crash in
    between is finished by the next run, which finds the pending set.
    """

    def __init__(
        self,
        client: S3Client,
        location: S3Location,
        files: Sequence[PendingFile],
        manifest: Mapping[str, Any],
    ) -> None:
        self._client = client
        self._location = location
        self._files = tuple(files)
        self._manifest = dict(manifest)

    def run(self) -> None:
        """Everything is visible afterwards; on an exception nothing is, or the error says what."""
        require_empty(self._client, self._location)
        try:
            self._claim()
            _for_each(self._files, self._complete)
            self._put(MANIFEST, self._manifest)
        except LocationError:
            raise
        except Exception as exc:
            doing = f"committing {self._location.uri}"
            known = isinstance(exc, AwsFailure)
            reason = describe(exc, doing, "s3:PutObject") if known else f"{doing} failed: {exc}"
            raise CommitError(reason, self.take_back()) from exc
        self._forget_pending()

    def _claim(self) -> None:
        """Write the pending set, unless another run has written its own in the meantime."""
        document = {
            "state": _COMMITTING_STATE,
            "files": [file.as_dict() for file in self._files],
            "manifest": self._manifest,
        }
        try:
            self._put(COMMITTING, document, IfNoneMatch="*")
        except AwsFailure as exc:
            if error_code(exc) in ("PreconditionFailed", "412", "ConditionalRequestConflict"):
                if self._is_claimed_with(document):
                    return
                raise LocationError(
                    f"another run is committing an export to {self._location.uri} at this moment; "
                    "give each model, and each run, a location of its own"
                ) from exc
            if error_code(exc) not in ("NotImplemented", "501"):
                raise
            self._put(COMMITTING, document)  # a store without conditional writes

    def _is_claimed_with(self, document: Mapping[str, Any]) -> bool:
        """Whether the pending set there is this run's: its answer was lost, and it was retried."""
        try:
            found = self._client.get_object(
                Bucket=self._location.bucket, Key=self._location.key(COMMITTING)
            )
            return found["Body"].read() == to_json(document)
        except AwsFailure:
            return False

    def roll_forward(self) -> None:
        """Finish a commit that was cut off: complete what is still open, write the manifest.

        Raises the client's error for an upload that is gone and has not become its object.
        """
        _for_each(self._files, self._complete_if_open)
        self._put(MANIFEST, self._manifest)
        self._forget_pending()

    def take_back(self) -> list[str]:
        """Abort what is open, delete what is visible; what could not be removed, and why."""
        problems: list[str] = []

        def attempt(action: Callable[[], object], doing: str, permission: str) -> None:
            try:
                action()
            except AwsFailure as exc:
                if not is_missing(exc):
                    problems.append(describe(exc, doing, permission))

        # Says that this commit must not be rolled forward, should the process die in here.
        attempt(
            lambda: self._put(COMMITTING, {"state": "taking back", "files": self._as_dicts()}),
            "marking the commit as taken back",
            "s3:PutObject",
        )
        for file in self._files:
            attempt(
                partial(self._abort, file),
                f"aborting the upload of {self._uri(file.key)}",
                "s3:AbortMultipartUpload",
            )
        visible: list[str] = []
        attempt(
            lambda: visible.extend(self._visible()),
            f"listing {self._location.uri}",
            "s3:ListBucket",
        )
        for key in visible:
            attempt(partial(self._delete, key), f"removing {self._uri(key)}", "s3:DeleteObject")
        return problems

    def _visible(self) -> list[str]:
        """The keys of this export that are objects now: the manifest first, the claim last."""
        manifest, claim = self._location.key(MANIFEST), self._location.key(COMMITTING)
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._location.bucket, Prefix=self._location.prefix
        )
        there = {entry["Key"] for page in pages for entry in page.get("Contents", [])}
        mine = [manifest, *(file.key for file in self._files), claim]
        return [key for key in mine if key in there]

    def _uri(self, key: str) -> str:
        return f"s3://{self._location.bucket}/{key}"

    def _as_dicts(self) -> list[dict[str, Any]]:
        return [file.as_dict() for file in self._files]

    def _complete(self, file: PendingFile) -> None:
        self._client.complete_multipart_upload(
            Bucket=self._location.bucket,
            Key=file.key,
            UploadId=file.upload_id,
            MultipartUpload={
                "Parts": [
                    {"PartNumber": number, "ETag": etag}
                    for number, etag in enumerate(file.etags, start=1)
                ]
            },
        )

    def _complete_if_open(self, file: PendingFile) -> None:
        try:
            self._complete(file)
        except AwsFailure as exc:
            # Completed before the crash: the object is there, in full.
            if not is_missing(exc) or self._size_of(file.key) != file.bytes:
                raise

    def _size_of(self, key: str) -> int | None:
        page = self._client.list_objects_v2(Bucket=self._location.bucket, Prefix=key, MaxKeys=1)
        sizes = [entry["Size"] for entry in page.get("Contents", []) if entry["Key"] == key]
        return sizes[0] if sizes else None

    def _abort(self, file: PendingFile) -> None:
        self._client.abort_multipart_upload(
            Bucket=self._location.bucket, Key=file.key, UploadId=file.upload_id
        )

    def _delete(self, key: str) -> None:
        self._client.delete_object(Bucket=self._location.bucket, Key=key)

    def _forget_pending(self) -> None:
        """The manifest is what counts now: a pending set that can't be removed does no harm."""
        with contextlib.suppress(*AwsFailure):
            self._delete(self._location.key(COMMITTING))

    def _put(self, name: str, document: Mapping[str, Any], **condition: str) -> None:
        put: Any = self._client.put_object
        put(
            Bucket=self._location.bucket,
            Key=self._location.key(name),
            Body=to_json(document),
            ContentType=_JSON,
            **condition,
        )


def finish_interrupted(client: S3Client, location: S3Location, keys: Sequence[str]) -> str | None:
    """Finish the commit that a run before this one left half-way at `location`, if there is one.

    `keys` are the objects there. Completed if it can be, else taken back. Returns what was
    completed, for the user to read, or None. Raises CopyError if neither could be done.
    """
    if location.key(COMMITTING) not in keys or location.key(MANIFEST) in keys:
        return None
    try:
        body = client.get_object(Bucket=location.bucket, Key=location.key(COMMITTING))["Body"]
        document = json.loads(body.read())
        files = [PendingFile.from_dict(file) for file in document["files"]]
        commit = Commit(client, location, files, document.get("manifest", {}))
        if document["state"] == _COMMITTING_STATE and _rolled_forward(commit):
            rows = document["manifest"]["meta"]["record_count"]
            return (
                f"an earlier run was cut off while it committed to {location.uri}; its export has "
                f"been completed now: {rows} rows, {location.uri}{MANIFEST}"
            )
        problems = commit.take_back()
    except AwsFailure as exc:
        doing = f"finishing the interrupted commit at {location.uri}"
        raise CopyError(describe(exc, doing, "s3:GetObject and s3:PutObject")) from exc
    except (ValueError, KeyError, TypeError) as exc:
        raise CopyError(
            f"{location.uri}{COMMITTING} is not what an export writes ({exc}); remove it"
        ) from exc
    if problems:
        raise CommitError(
            f"what an earlier run left at {location.uri} could not be taken back: "
            + "; ".join(problems),
            problems,
        )
    return None


def _rolled_forward(commit: Commit) -> bool:
    """Whether the commit could be finished; it can't be where its uploads have been aborted."""
    try:
        commit.roll_forward()
    except AwsFailure as exc:
        if is_missing(exc):
            return False
        raise
    return True


def _for_each(files: Sequence[PendingFile], action: Callable[[PendingFile], None]) -> None:
    """In parallel; waits for all, then raises the first failure."""
    with ThreadPoolExecutor(_THREADS) as pool:
        outcomes = [pool.submit(action, file) for file in files]
    for outcome in outcomes:
        outcome.result()
