"""Which folders there are below a prefix: where a listing can be cut before anything is known."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from dbt.adapters.mzs3.aws.failures import AwsFailure
from dbt.adapters.mzs3.csv_source.executor.listing import listing_failed

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MAX_REQUESTS = 16


def folders_after(
    client: S3Client,
    bucket: str,
    prefix: str,
    after: str,
    wanted: int,
    *,
    deep: bool,
    max_requests: int = MAX_REQUESTS,
) -> list[str]:
    """Folders below the prefix that begin after a key, in order: `wanted` of them, about.

    Each ends in a slash. With `deep` folders in folders too, where there are not enough. There may
    be more of which nothing is known: at most `max_requests` requests are made. Raises S3Error.
    """
    found: set[str] = set()
    # Level by level, as those of a level are about as large as each other.
    waiting: deque[tuple[str, str | None]] = deque([(prefix, None)])
    for _ in range(max_requests):
        if not waiting or len(found) >= wanted:
            break
        folder, token = waiting.popleft()
        # Not every store shows the folder in which the listing begins, whose folders are wanted.
        start = None if deep else after
        names, token = _folders(client, bucket, folder, start, token)
        if token is not None:
            waiting.appendleft((folder, token))
        found.update(name for name in names if name > after)
        if deep:
            waiting.extend((name, None) for name in names)
    return sorted(found)


def _folders(
    client: S3Client, bucket: str, folder: str, after: str | None, token: str | None
) -> tuple[list[str], str | None]:
    """One page of the folders that are directly in this one, and how to ask for the next page."""
    request: dict[str, Any] = {"Bucket": bucket, "Prefix": folder, "Delimiter": "/"}
    if after is not None:
        request["StartAfter"] = after
    if token is not None:
        request["ContinuationToken"] = token
    try:
        page = client.list_objects_v2(**request)
    except AwsFailure as exc:
        raise listing_failed(exc, bucket, folder) from exc
    names = [one["Prefix"] for one in page.get("CommonPrefixes", [])]
    return names, page.get("NextContinuationToken") if page.get("IsTruncated") else None
