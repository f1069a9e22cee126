"""What time it is where objects get theirs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from dbt.adapters.mzs3.aws.location import S3Location

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def s3_now(client: S3Client, location: S3Location) -> int:
    """The time in ms since the epoch by S3's clock, to the second, or by ours where it has none.

    Needs s3:ListBucket; raises what boto3 raises.
    """
    page = client.list_objects_v2(Bucket=location.bucket, Prefix=location.prefix, MaxKeys=1)
    told = time_of(page)
    return int(time.time() * 1000) if told is None else told


def time_of(answer: Mapping[str, Any]) -> int | None:
    """When S3 gave an answer, in ms since the epoch, to the second; None if it does not say."""
    headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    try:
        return int(parsedate_to_datetime(headers["date"]).timestamp() * 1000)
    except (KeyError, ValueError, TypeError):
        return None
