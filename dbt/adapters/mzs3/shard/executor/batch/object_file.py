"""A batch's file in S3, of which exactly the ranges that are asked for are fetched."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbt.adapters.mzs3.aws.failures import AwsFailure, describe, error_code, is_missing
from dbt.adapters.mzs3.errors import ExecutorError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# Of the end, where the footer is, as much is fetched at once as a footer usually has.
TAIL_BYTES = 32 * 1024
_CHANGED = frozenset({"PreconditionFailed", "412"})


@dataclass(frozen=True)
class StoredFile:
    """A file as the shard's state names it; the size in bytes."""

    key: str
    size: int
    etag: str


class ObjectFile(io.RawIOBase):
    """Reads anywhere in one file; ranges come from S3 as they are asked for, the end once.

    Raises ExecutorError, which names the object, if it is gone, is another one than the state
    names, or can't be fetched.
    """

    def __init__(self, client: S3Client, bucket: str, file: StoredFile) -> None:
        super().__init__()
        self._client = client
        self._bucket = bucket
        self._file = file
        self._position = 0
        self._tail: bytes | None = None

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Have the next read begin elsewhere."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._file.size}
        self._position = base[whence] + offset
        return self._position

    def read(self, size: int = -1, /) -> bytes:
        """Exactly `size` bytes, fewer only at the end."""
        left = max(0, self._file.size - self._position)
        size = left if size is None or size < 0 else min(size, left)
        start, end = self._position, self._position + size
        self._position = end
        return self._bytes(start, end) if size else b""

    def _bytes(self, start: int, end: int) -> bytes:
        tail_start = max(0, self._file.size - TAIL_BYTES)
        if start < tail_start:
            return self._fetch(start, end)
        if self._tail is None:
            self._tail = self._fetch(tail_start, self._file.size)
        return self._tail[start - tail_start : end - tail_start]

    def _fetch(self, start: int, end: int) -> bytes:
        uri = f"s3://{self._bucket}/{self._file.key}"
        try:
            found = self._client.get_object(
                Bucket=self._bucket,
                Key=self._file.key,
                Range=f"bytes={start}-{end - 1}",
                IfMatch=self._file.etag,
            )
            data: bytes = found["Body"].read()
        except AwsFailure as exc:
            if is_missing(exc) or error_code(exc) in _CHANGED:
                raise ExecutorError(
                    f"{uri} is not the file that the shard's state named. If compact_shard has "
                    "removed it since this run began, run again, and have it keep files for more "
                    "hours; else something other than dbt-mzs3 removed or replaced it: restore it"
                ) from exc
            raise ExecutorError(describe(exc, f"reading {uri}", "s3:GetObject")) from exc
        if len(data) != end - start:
            raise ExecutorError(f"{uri} has fewer bytes than the shard's state says")
        return data
