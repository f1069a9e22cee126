"""The uploads of a task together: their threads, their memory, and what becomes of them."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from dbt.adapters.mzs3.aws.client import s3_client
from dbt.adapters.mzs3.aws.failures import AwsFailure
from dbt.adapters.mzs3.aws.parts import Parts
from dbt.adapters.mzs3.errors import ExecutorError, S3Error
from dbt.adapters.mzs3.upload.spec import WriteSpec
from dbt.adapters.mzs3.upload.upload import FileUpload

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_THREADS = 16


class Uploader:
    """The uploads of one task: whatever their number, they share one bound on memory.

    At most `spec.bytes_in_flight` bytes wait for S3 at a time, but always one upload part. On a
    failure, whatever was opened here is aborted; what isn't aborted here, the driver sweeps.
    """

    def __init__(self, spec: WriteSpec) -> None:
        self.spec = spec
        self._pool = ThreadPoolExecutor(_THREADS)
        self._waiting: deque[tuple[Future[Any], int]] = deque()
        self._in_flight = 0
        self._files: dict[str, FileUpload] = {}
        self._reported: list[tuple[str, str]] = []
        self.client = None if spec.dry else _client(spec)
        self.parts = None if self.client is None else Parts(self.client, spec.bucket)

    def __enter__(self) -> Uploader:
        return self

    def __exit__(self, failure: object, *_: object) -> None:
        if failure is not None:
            for file in self._files.values():
                file.cancel()
            for file in self._files.values():
                file.abort()
            for key, upload_id in self._reported:
                self.abort(key, upload_id)
        self._pool.shutdown()

    def open(self, key: str, content_type: str) -> FileUpload:
        """Begin a file; S3 hears of it with its first part."""
        file = FileUpload(self, key, content_type)
        self._files[key] = file
        return file

    def reported(self, key: str, upload_id: str, *, ours: bool) -> None:
        """The file is whole in S3; of it, no more is kept than it takes to abort it if `ours`."""
        del self._files[key]
        if ours:
            self._reported.append((key, upload_id))

    def abort(self, key: str, upload_id: str) -> None:
        """Give an upload up, as far as S3 lets us."""
        if self.client is not None:
            with contextlib.suppress(*AwsFailure):
                self.client.abort_multipart_upload(
                    Bucket=self.spec.bucket, Key=key, UploadId=upload_id
                )

    def submit(self, size: int, work: Callable[[], str]) -> Future[str]:
        """Have `work` done by a thread; waits while too many bytes are under way."""
        limit = self.spec.bytes_in_flight
        while self._waiting and (self._waiting[0][0].done() or self._in_flight + size > limit):
            future, done = self._waiting.popleft()
            self._in_flight -= done
            future.result()
        future = self._pool.submit(work)
        self._waiting.append((future, size))
        self._in_flight += size
        return future


def _client(spec: WriteSpec) -> S3Client:
    try:
        return s3_client(spec.connection)
    except S3Error as exc:
        raise ExecutorError(f"on an executor, {exc}") from exc
