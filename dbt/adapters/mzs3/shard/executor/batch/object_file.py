"""A batch's file in S3, of which exactly the ranges that are asked for are fetched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbt.adapters.mzs3.aws.failures import (
    READS_OBJECT,
    AwsFailure,
    describe,
    error_code,
    is_missing,
)
from dbt.adapters.mzs3.errors import ExecutorError
from dbt.adapters.mzs3.objects.object_range import ObjectVersion, ReplacedError
from dbt.adapters.mzs3.objects.random_access import RandomAccessFile

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# Of the end, where the footer is, as much is fetched at once as pyarrow asks for first.
TAIL_BYTES = 64 * 1024
_CHANGED = frozenset({"PreconditionFailed", "412"})


@dataclass(frozen=True)
class StoredFile:
    """A file as the shard's state names it; the size in bytes."""

    key: str
    size: int
    etag: str


def open_file(client: S3Client, bucket: str, file: StoredFile) -> RandomAccessFile:
    """The file, to be read anywhere; ranges come from S3 as they are asked for, the end once.

    Reading raises ExecutorError, which names the object, if it is gone, is another one than the
    state names, or can't be fetched.
    """
    version = ObjectVersion(client, bucket, file.key, file.etag)
    return RandomAccessFile(file.size, _fetch_from(version), tail=TAIL_BYTES)


def _fetch_from(version: ObjectVersion) -> Callable[[int, int], bytes]:
    uri = f"s3://{version.bucket}/{version.key}"

    def fetch(start: int, end: int) -> bytes:
        try:
            return version.part(start, end)
        except (*AwsFailure, ReplacedError, OSError) as exc:
            if isinstance(exc, ReplacedError) or is_missing(exc) or error_code(exc) in _CHANGED:
                raise ExecutorError(
                    f"{uri} is not the file that the shard's state named. If compact_shard has "
                    "removed it since this run began, run again, and have it keep files for more "
                    "hours; else something other than dbt-mzs3 removed or replaced it: restore it"
                ) from exc
            raise ExecutorError(describe(exc, f"reading {uri}", READS_OBJECT)) from exc

    return fetch
