"""Aborting the uploads that a failed export, or a lost attempt of a task, has left open."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from dbt.adapters.mzs3.aws.failures import AwsFailure, describe, is_missing
from dbt.adapters.mzs3.aws.location import S3Location

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_PAUSE_S = 0.5
_QUIET_ROUNDS = 2
_MAX_ROUNDS = 20


class Sweeper:
    """Aborts uploads below a location, but for those that were open when it was made.

    Looking for uploads needs s3:ListBucketMultipartUploads, which an export can do without: then
    a sweep says what may be left. It raises nothing, as it runs while another error is on its way.
    """

    def __init__(self, client: S3Client, location: S3Location) -> None:
        self._client = client
        self._location = location
        self._others: frozenset[str] = frozenset()
        self._denied: str | None = None
        try:
            self._others = frozenset(upload_id for _, upload_id in self._open_uploads())
        except AwsFailure as exc:
            self._denied = self._remains(_describe(exc))

    def sweep(self, keep: Collection[str] = ()) -> str | None:
        """Abort what is open now, but for the ids in `keep`; None, or what may be left."""
        if self._denied is not None:
            return self._denied
        try:
            self._abort_open(keep)
        except AwsFailure as exc:
            return self._remains(_describe(exc))
        return None

    def sweep_until_quiet(self) -> str | None:
        """As `sweep`, again and again until no new upload appears.

        A task that has just been cancelled may still be opening one.
        """
        if self._denied is not None:
            return self._denied
        quiet = 0
        pause = threading.Event()
        try:
            for _ in range(_MAX_ROUNDS):
                quiet = 0 if self._abort_open() else quiet + 1
                if quiet >= _QUIET_ROUNDS:
                    return None
                pause.wait(_PAUSE_S)
        except AwsFailure as exc:
            return self._remains(_describe(exc))
        return self._remains("tasks of the export are still opening uploads")

    def _abort_open(self, keep: Collection[str] = ()) -> int:
        """How many uploads it aborted."""
        found = [
            (key, upload_id)
            for key, upload_id in self._open_uploads()
            if upload_id not in self._others and upload_id not in keep
        ]
        for key, upload_id in found:
            try:
                self._client.abort_multipart_upload(
                    Bucket=self._location.bucket, Key=key, UploadId=upload_id
                )
            except AwsFailure as exc:
                if not is_missing(exc):  # its own task may have aborted it first
                    raise
        return len(found)

    def _open_uploads(self) -> Iterator[tuple[str, str]]:
        pages = self._client.get_paginator("list_multipart_uploads").paginate(
            Bucket=self._location.bucket, Prefix=self._location.prefix
        )
        for page in pages:
            for upload in page.get("Uploads", []):
                yield upload["Key"], upload["UploadId"]

    def _remains(self, reason: str) -> str:
        bucket, prefix = self._location.bucket, self._location.prefix
        return (
            f"{reason}. Open uploads may be left, which cost storage but are not visible: "
            f"`aws s3api list-multipart-uploads --bucket {bucket} --prefix {prefix}` shows them, "
            "`aws s3api abort-multipart-upload` removes them"
        )


def _describe(exc: Exception) -> str:
    return describe(
        exc,
        "looking for open uploads to abort",
        "s3:ListBucketMultipartUploads and s3:AbortMultipartUpload",
    )
