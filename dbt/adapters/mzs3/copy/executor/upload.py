"""One file of an export as a multipart upload that is never completed here."""

from __future__ import annotations

import contextlib
import hashlib
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from dbt.adapters.mzs3.aws.failures import AwsFailure, describe
from dbt.adapters.mzs3.errors import ExecutorError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MAX_UPLOAD_PARTS = 10_000


class FileUpload:
    """Appends bytes to one multipart upload in parts of exactly `part_size`, the last shorter.

    At most `in_flight` parts wait for S3 at a time, so memory is bounded by
    `(in_flight + 2) * part_size` whatever the size of the file. The upload stays open: `finish`
    returns its parts' ETags, and completing it is the driver's decision.
    """

    def __init__(
        self,
        client: S3Client,
        pool: ThreadPoolExecutor,
        *,
        bucket: str,
        key: str,
        part_size: int,
        in_flight: int,
        content_type: str,
    ) -> None:
        self._client = client
        self._pool = pool
        self._bucket = bucket
        self.key = key
        self._part_size = part_size
        self._in_flight = in_flight
        self._chunks: deque[memoryview] = deque()
        self._buffered = 0
        self._waiting: deque[Future[str]] = deque()
        self._etags: list[str] = []
        self._sent = 0
        self._sha256 = hashlib.sha256()
        self.bytes = 0
        try:
            opened = client.create_multipart_upload(
                Bucket=bucket, Key=key, ContentType=content_type
            )
        except AwsFailure as exc:
            raise ExecutorError(
                describe(exc, f"opening an upload of {self.uri}", "s3:PutObject")
            ) from exc
        self.upload_id = opened["UploadId"]

    @property
    def uri(self) -> str:
        """The object this upload becomes once it is completed."""
        return f"s3://{self._bucket}/{self.key}"

    @property
    def sha256(self) -> str:
        """Of all bytes so far, in hexadecimal."""
        return self._sha256.hexdigest()

    def append(self, data: memoryview) -> None:
        """Take `data`, sending full parts; waits while too many are under way.

        The buffer behind `data` must not change afterwards.
        """
        self._sha256.update(data)
        self._chunks.append(data)
        self._buffered += len(data)
        self.bytes += len(data)
        while self._buffered >= self._part_size:
            self._send(self._take(self._part_size))

    def finish(self) -> tuple[str, ...]:
        """Send what remains and wait for S3; the ETags in order of the parts."""
        if self._buffered or self._sent == 0:
            self._send(self._take(self._buffered))
        while self._waiting:
            self._collect()
        return tuple(self._etags)

    def abort(self) -> None:
        """Give the upload up; whatever can't be aborted here, the driver sweeps."""
        for future in self._waiting:
            future.cancel()
        for future in self._waiting:
            with contextlib.suppress(Exception):
                if not future.cancelled():
                    future.result()
        with contextlib.suppress(*AwsFailure):
            self._client.abort_multipart_upload(
                Bucket=self._bucket, Key=self.key, UploadId=self.upload_id
            )

    def _take(self, size: int) -> bytes:
        """Exactly `size` buffered bytes, in one copy."""
        pieces: list[memoryview] = []
        missing = size
        while missing:
            chunk = self._chunks.popleft()
            if len(chunk) > missing:
                self._chunks.appendleft(chunk[missing:])
                chunk = chunk[:missing]
            pieces.append(chunk)
            missing -= len(chunk)
        self._buffered -= size
        return b"".join(pieces)

    def _send(self, body: bytes) -> None:
        while len(self._waiting) >= self._in_flight:
            self._collect()
        self._sent += 1
        if self._sent > MAX_UPLOAD_PARTS:
            raise ExecutorError(
                f"{self.uri} needs more than {MAX_UPLOAD_PARTS} upload parts; raise part_size"
            )
        self._waiting.append(self._pool.submit(self._upload, self._sent, body))

    def _upload(self, number: int, body: bytes) -> str:
        return self._client.upload_part(
            Bucket=self._bucket,
            Key=self.key,
            UploadId=self.upload_id,
            PartNumber=number,
            Body=body,
        )["ETag"]

    def _collect(self) -> None:
        try:
            self._etags.append(self._waiting.popleft().result())
        except AwsFailure as exc:
            number = len(self._etags) + 1
            raise ExecutorError(
                describe(exc, f"uploading part {number} of {self.uri}", "s3:PutObject")
            ) from exc
