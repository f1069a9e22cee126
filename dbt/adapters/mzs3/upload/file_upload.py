"""Uploads the files of a task as multipart uploads, which the driver completes."""

from __future__ import annotations

import builtins
import contextlib
import hashlib
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from dbt.adapters.mzs3.errors import ExecutorError, S3Error
from dbt.adapters.mzs3.options.groups import MAX_UPLOAD_PARTS
from dbt.adapters.mzs3.store.failures import StoreError, explained
from dbt.adapters.mzs3.store.opened import shared_store
from dbt.adapters.mzs3.store.prefix import Prefix
from dbt.adapters.mzs3.store.store import NewUpload
from dbt.adapters.mzs3.upload.spec import NOTE_PART, WriteSpec, note_of

# With `single_file`, the size of parts doubles after every 2000 parts.
_PARTS_OF_ONE_SIZE = 2_000

_THREADS = 16

Answer = TypeVar("Answer")


class FileUpload:
    """Appends bytes to a multipart upload, in parts of exactly `part_size` until the last.

    The upload is opened when the first part is sent. If an interrupted run left an upload of the
    same key and properties open, that upload is continued: parts that S3 already has, byte for
    byte, are not sent again. The upload stays open until the driver completes it.
    """

    def __init__(self, uploader: Uploader, key: str, content_type: str) -> None:
        self._uploader = uploader
        self._spec = uploader.spec
        self.key = key
        self.uri = uploader.prefix.uri_of(key)
        self._properties = {"ContentType": content_type, **self._spec.properties}
        note = note_of(self._properties)
        self._resumed = next(
            (up for up in self._spec.reusable.get(key, ()) if up.etag_if_equal(NOTE_PART, note)),
            None,
        )
        self._opened: Future[NewUpload] | None = None
        self._chunks: deque[memoryview] = deque()
        self._buffered = 0
        self._etags: list[Future[str]] = []
        self._sha256 = hashlib.sha256()
        self.bytes = 0

    def append(self, data: memoryview) -> None:
        """Adds bytes to the file; sends full parts, and waits if too many bytes are in flight."""
        self._sha256.update(data)
        self.bytes += len(data)
        if self._spec.dry:
            return
        self._chunks.append(data)
        self._buffered += len(data)
        while self._buffered >= (size := self._next_part_size()):
            self._send(self._take(size))

    def finish(self) -> None:
        """Sends the remaining bytes as the last part, without waiting for S3."""
        if not self._spec.dry and (self._buffered or not self._etags):
            self._send(self._take(self._buffered))

    def report(self) -> Mapping[str, object]:
        """What the driver needs to complete the upload; waits until S3 has all parts."""
        return {
            "key": self.key,
            "upload_id": self._opened.result().id if self._opened else "",
            "etags": [etag.result() for etag in self._etags],
            "bytes": self.bytes,
            "sha256": self._sha256.hexdigest(),
        }

    def _next_part_size(self) -> int:
        size = self._spec.part_size
        if self._spec.single_file is None:
            return size
        doubled = size << (len(self._etags) // _PARTS_OF_ONE_SIZE)
        return max(size, min(doubled, self._spec.max_bytes_in_memory // 4))

    def _take(self, size: int) -> builtins.bytes:
        """Removes exactly `size` bytes from the buffer and returns them, copied once."""
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

    def _send(self, body: builtins.bytes) -> None:
        number = len(self._etags) + 1
        if number > MAX_UPLOAD_PARTS:
            raise ExecutorError(
                f"{self.uri} needs more than {MAX_UPLOAD_PARTS} upload parts; raise part_size"
            )
        if self._opened is None:
            # Queued before the parts, which wait for it, so that they can't occupy all threads.
            self._opened = self._uploader.submit(0, self._open)
        opened = self._opened
        self._etags.append(
            self._uploader.submit(len(body), lambda: self._upload(opened.result(), number, body))
        )

    def _open(self) -> NewUpload:
        if self._resumed is not None:
            return NewUpload(self._resumed.upload_id, False, self._resumed.has_sha256)
        open_upload = self._uploader.prefix.store.open_upload
        with explained(f"opening an upload of {self.uri}", "s3:PutObject", ExecutorError):
            upload = open_upload(self.key, self._properties, with_sha256=self._spec.with_sha256)
        self._uploader.opened.append((self.key, upload.id))
        return upload

    def _upload(self, upload: NewUpload, number: int, body: builtins.bytes) -> str:
        etag = self._resumed.etag_if_equal(number, body) if self._resumed else None
        if etag is not None:
            return etag
        store = self._uploader.prefix.store
        put = partial(store.put_part, self.key, upload.id, with_sha256=upload.has_sha256)
        with explained(f"uploading part {number} of {self.uri}", "s3:PutObject", ExecutorError):
            if number == 2 and self._spec.resumable and self._resumed is None:
                put(NOTE_PART, note_of(self._properties))
            return put(number, body)


class Uploader:
    """Runs the requests of all uploads of one task in threads, within one limit on memory.

    At most `spec.bytes_in_flight` bytes, or one upload part, are in flight at a time. On a
    failure, the uploads that this task opened are aborted; the driver's reaper aborts the rest.
    """

    def __init__(self, spec: WriteSpec) -> None:
        self.spec = spec
        self._pool = ThreadPoolExecutor(_THREADS)
        self._waiting: deque[tuple[Future[Any], int]] = deque()
        self._in_flight = 0
        # The key and id of each upload that this task has opened. Not those of an interrupted run,
        # which another attempt of the task may continue, too.
        self.opened: list[tuple[str, str]] = []
        try:
            store = shared_store(spec.connection, spec.location)
        except S3Error as exc:
            raise ExecutorError(f"on an executor, {exc}") from exc
        self.prefix = Prefix(store, spec.location)

    def __enter__(self) -> Uploader:
        return self

    def __exit__(self, failure: object, *_: object) -> None:
        self._pool.shutdown(cancel_futures=failure is not None)
        if failure is not None:
            for upload in self.opened:
                with contextlib.suppress(StoreError):
                    self.prefix.abort(*upload)

    def submit(self, size: int, work: Callable[[], Answer]) -> Future[Answer]:
        """Runs `work`, which sends `size` bytes, in a thread; waits if too many are in flight."""
        limit = self.spec.bytes_in_flight
        while self._waiting and (self._waiting[0][0].done() or self._in_flight + size > limit):
            future, sent = self._waiting.popleft()
            self._in_flight -= sent
            future.result()
        future = self._pool.submit(work)
        self._waiting.append((future, size))
        self._in_flight += size
        return future
