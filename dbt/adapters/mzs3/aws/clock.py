"""What time it is where objects get theirs."""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from dbt.adapters.mzs3.aws.location import S3Location

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def s3_now(client: S3Client, location: S3Location) -> int:
    """The time in ms since the epoch by S3's clock, to the second, or by ours where it has none.

    Needs s3:ListBucket; raises what boto3 raises.
    """
    page = client.list_objects_v2(Bucket=location.bucket, Prefix=location.prefix, MaxKeys=1)
    headers = page.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    try:
        return int(parsedate_to_datetime(headers["date"]).timestamp() * 1000)
    except (KeyError, ValueError, TypeError):
        return int(time.time() * 1000)
