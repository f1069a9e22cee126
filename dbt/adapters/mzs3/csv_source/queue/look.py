"""What S3 has under the keys that a queue told of: it, and no message, says what is there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING

from dbt.adapters.mzs3.aws.failures import AwsFailure, describe, error_code, is_denied, is_missing
from dbt.adapters.mzs3.csv_source.executor.listing import ObjectInfo
from dbt.adapters.mzs3.errors import S3Error

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

THREADS = 16
# So many are asked for between two looks at whether the user has cancelled.
_AT_A_TIME = 64


def look_up(
    client: S3Client, bucket: str, keys: Iterable[str], check: Callable[[], None]
) -> Iterator[tuple[str, ObjectInfo | None]]:
    """Every key with the object that is there now, None if there is none; in the keys' order.

    One HEAD for each, `THREADS` at a time; `check` is called every so often and may raise. Raises
    S3Error for what is neither there nor missing, and where the whole bucket is missing.
    """

    def look(key: str) -> tuple[str, ObjectInfo | None]:
        return key, _head(client, bucket, key)

    waiting = iter(keys)
    bucket_seen = False
    with ThreadPoolExecutor(THREADS) as pool:
        while some := list(islice(waiting, _AT_A_TIME)):
            check()
            for key, found in pool.map(look, some):
                if found is None and not bucket_seen:
                    _require_bucket(client, bucket, key)
                    bucket_seen = True
                yield key, found


def _require_bucket(client: S3Client, bucket: str, key: str) -> None:
    """A HEAD does not tell a missing key from a missing bucket; the answer to a GET does."""
    try:
        client.get_object(Bucket=bucket, Key=key)["Body"].close()
    except AwsFailure as exc:
        if error_code(exc) == "NoSuchBucket":
            doing = f"looking for s3://{bucket}/{key}"
            raise S3Error(
                f"{describe(exc, doing)}. The messages that announced its objects stay in the "
                "queue; check the bucket, and the endpoint of the AWS connection"
            ) from exc


def _head(client: S3Client, bucket: str, key: str) -> ObjectInfo | None:
    try:
        answer = client.head_object(Bucket=bucket, Key=key)
    except AwsFailure as exc:
        if is_missing(exc):
            return None
        text = describe(exc, f"looking for s3://{bucket}/{key}", "s3:GetObject")
        if is_denied(exc):
            text += (
                ". If the object is gone, this needs s3:ListBucket too: without it S3 does not "
                "tell what is missing from what is denied"
            )
        raise S3Error(text) from exc
    return ObjectInfo(
        key, answer["ETag"].strip('"'), answer["ContentLength"], answer["LastModified"]
    )
