"""Making an export visible: all of its files, or none."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from dbt.adapters.mzs3.aws.failures import AwsFailure, describe, is_missing
from dbt.adapters.mzs3.aws.location import S3Location
from dbt.adapters.mzs3.copy.commit.claim import Claim, read_claim
from dbt.adapters.mzs3.copy.commit.destination import COMMITTING, MANIFEST, require_empty
from dbt.adapters.mzs3.copy.commit.manifest import to_json
from dbt.adapters.mzs3.copy.commit.pending import PendingFile
from dbt.adapters.mzs3.errors import CopyError, LocationError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_THREADS = 16


class CommitError(CopyError):
    """A commit that was refused, with what of it could not be taken back."""

    def __init__(self, reason: str, remains: Sequence[str]) -> None:
        self.remains = tuple(remains)
        super().__init__(reason)


class Commit:
    """The one commit point of an export.

    The location is claimed, with the pending set; every upload is completed; `_manifest.json` is
    written last. A refusal in between takes everything back; a crash in between is finished by
    the next run, which finds the claim.
    """

    def __init__(self, client: S3Client, location: S3Location, claim: Claim) -> None:
        self._client = client
        self._location = location
        self._claim = claim

    def run(self) -> None:
        """Everything is visible afterwards; on an exception nothing is, or the error says what.

        Uploads that are still open after an exception are the caller's to abort.
        """
        self._take_claim()
        try:
            self._require_nothing_else()
            self._complete_all()
            self._write_manifest()
        except LocationError as exc:
            try:
                self._claim.release()
            except AwsFailure as second:
                doing = f"removing {self._uri(self._claim.key)}"
                left = [describe(second, doing, "s3:DeleteObject")]
                raise CommitError(str(exc), left) from exc
            raise
        except BaseException as exc:
            left = self.take_back()
            if not isinstance(exc, Exception):
                raise
            raise CommitError(self._reason(exc), left) from exc
        self._drop_claim()

    def roll_forward(self) -> bool:
        """Finish a commit that was cut off; False if it can't be, as uploads of it are gone."""
        try:
            self._complete_all()
        except AwsFailure as exc:
            if is_missing(exc):
                return False
            raise
        if not self._claim.is_standing():
            return False  # its own run lives, and has turned back
        self._write_manifest()
        self._drop_claim()
        return True

    def take_back(self) -> list[str]:
        """Abort what is open, delete what has become visible; what could not be, and why."""
        problems: list[str] = []

        def attempt(action: Callable[[], object], doing: str, permission: str) -> None:
            try:
                action()
            except AwsFailure as exc:
                if not is_missing(exc):
                    problems.append(describe(exc, doing, permission))

        attempt(self._claim.turn_back, "marking the commit as taken back", "s3:PutObject")
        for file in self._claim.files:
            attempt(
                partial(abort_upload, self._client, self._location, file),
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
            delete = partial(self._client.delete_object, Bucket=self._location.bucket, Key=key)
            attempt(delete, f"removing {self._uri(key)}", "s3:DeleteObject")
        return problems

    def _take_claim(self) -> None:
        try:
            self._claim.take()
        except LocationError:
            raise
        except Exception as exc:
            left = []
            try:
                self._claim.release_if_ours()  # it may have been written all the same
            except AwsFailure as second:
                doing = f"looking for {self._uri(self._claim.key)}, which may have been written"
                left = [describe(second, doing, "s3:GetObject and s3:DeleteObject")]
            raise CommitError(self._reason(exc), left) from exc

    def _require_nothing_else(self) -> None:
        """Looked at after claiming, so that no other run can have committed in between."""
        require_empty(self._client, self._location, but_for=self._claim.key)

    def _complete_all(self) -> None:
        """In parallel; waits for all, then raises the first failure."""
        with ThreadPoolExecutor(_THREADS) as pool:
            outcomes = [pool.submit(self._complete, file) for file in self._claim.files]
        for outcome in outcomes:
            outcome.result()

    def _complete(self, file: PendingFile) -> None:
        """Complete an upload; one that has been completed already is as good."""
        parts = [
            {"PartNumber": number, "ETag": etag} for number, etag in enumerate(file.etags, start=1)
        ]
        try:
            self._client.complete_multipart_upload(
                Bucket=self._location.bucket,
                Key=file.key,
                UploadId=file.upload_id,
                MultipartUpload={"Parts": parts},  # type: ignore[typeddict-item]
            )
        except AwsFailure as exc:
            if not is_missing(exc) or self._size_of(file.key) != file.bytes:
                raise

    def _size_of(self, key: str) -> int | None:
        page = self._client.list_objects_v2(Bucket=self._location.bucket, Prefix=key, MaxKeys=1)
        sizes = [entry["Size"] for entry in page.get("Contents", []) if entry["Key"] == key]
        return sizes[0] if sizes else None

    def _write_manifest(self) -> None:
        self._client.put_object(
            Bucket=self._location.bucket,
            Key=self._location.key(MANIFEST),
            Body=to_json(self._claim.manifest),
            ContentType="application/json",
        )

    def _visible(self) -> list[str]:
        """The keys of this export that are objects now: the manifest first, the claim last."""
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._location.bucket, Prefix=self._location.prefix
        )
        there = {entry["Key"] for page in pages for entry in page.get("Contents", [])}
        files = [file.key for file in self._claim.files]
        mine = [self._location.key(MANIFEST), *files, self._claim.key]
        return [key for key in mine if key in there]

    def _drop_claim(self) -> None:
        """Beside a manifest, a claim that can't be removed does no harm."""
        with contextlib.suppress(*AwsFailure):
            self._claim.release()

    def _reason(self, exc: Exception) -> str:
        doing = f"committing {self._location.uri}"
        if isinstance(exc, AwsFailure):
            return describe(exc, doing, "s3:PutObject")
        return f"{doing} failed: {exc}"

    def _uri(self, key: str) -> str:
        return f"s3://{self._location.bucket}/{key}"


def abort_upload(client: S3Client, location: S3Location, file: PendingFile) -> None:
    """Give an upload up; raises AwsFailure."""
    client.abort_multipart_upload(Bucket=location.bucket, Key=file.key, UploadId=file.upload_id)


def finish_interrupted(client: S3Client, location: S3Location, keys: Sequence[str]) -> str | None:
    """Finish the commit that a run before this one left half-way at `location`, if there is one.

    `keys` are the objects there. Completed if it can be, else taken back. Returns what was
    completed, for the user to read, or None. Raises CopyError if neither could be done.
    """
    if location.key(COMMITTING) not in keys or location.key(MANIFEST) in keys:
        return None
    try:
        claim, forward = read_claim(client, location)
        commit = Commit(client, location, claim)
        if forward and commit.roll_forward():
            return (
                f"an earlier run was cut off while it committed to {location.uri}; its export has "
                f"been completed now: {claim.manifest['meta']['record_count']} rows, "
                f"{location.uri}{MANIFEST}"
            )
        problems = commit.take_back()
    except AwsFailure as exc:
        doing = f"finishing the interrupted commit at {location.uri}"
        raise CopyError(describe(exc, doing, "s3:GetObject and s3:PutObject")) from exc
    except ValueError as exc:
        raise CopyError(
            f"{location.uri}{COMMITTING} is not what an export writes ({exc}); remove it"
        ) from exc
    if problems:
        listed = "".join(f"\n  - {problem}" for problem in problems)
        raise CopyError(
            f"what an earlier run left at {location.uri} could not be taken back; remove it by "
            f"hand:{listed}"
        )
    return None
