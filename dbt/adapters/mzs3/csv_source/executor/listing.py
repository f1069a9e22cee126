"""Lists the objects of a source, page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from dbt.adapters.mzs3.aws.client import s3_client
from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.aws.failures import AwsFailure, describe
from dbt.adapters.mzs3.aws.location import S3Location
from dbt.adapters.mzs3.csv_source.executor.pattern import Pattern
from dbt.adapters.mzs3.errors import ExecutorError, S3Error

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

LISTING_SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("etag", pa.string()),
        ("size", pa.int64()),
        ("last_modified", pa.timestamp("us", tz="UTC")),
    ]
)
# What exports leave beside their files, so that one reads back as it was written.
EXPORT_RECORDS = frozenset({"_manifest.json", "_committing.json"})
LISTING_DDL = "`key` string, `etag` string, `size` bigint, `last_modified` timestamp"


@dataclass(frozen=True)
class ObjectInfo:
    """One object as it was listed: the whole key, the ETag without its quotes, size in bytes."""

    key: str
    etag: str
    size: int
    last_modified: datetime


def iter_pages(client: S3Client, location: S3Location, pattern: str) -> Iterator[list[ObjectInfo]]:
    """The matching objects of each page of the listing; pages without any are left out.

    Only keys under the pattern's literal prefix are listed. Folder markers, which are empty and
    end in a slash, are no objects, and neither are the records that `copy_to_s3` leaves in any
    folder, `_manifest.json` and `_committing.json`, whatever the pattern says. Raises S3Error.
    """
    matcher = Pattern(pattern)
    prefix = location.key(matcher.literal_prefix)
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=location.bucket, Prefix=prefix)
    try:
        for page in pages:
            found = [
                ObjectInfo(one["Key"], one["ETag"].strip('"'), one["Size"], one["LastModified"])
                for one in page.get("Contents", [])
                if not (one["Key"].endswith("/") and one["Size"] == 0)
                and one["Key"].rpartition("/")[2] not in EXPORT_RECORDS
                and matcher.matches(one["Key"][len(location.prefix) :])
            ]
            if found:
                yield found
    except AwsFailure as exc:
        doing = f"listing s3://{location.bucket}/{prefix}"
        raise S3Error(describe(exc, doing, "s3:ListBucket")) from exc


def list_objects(
    connection: AwsConnection, location: S3Location, pattern: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For `mapInArrow` over a single row: the matching objects, a batch for each page.

    The rows have `LISTING_SCHEMA`, in Spark `LISTING_DDL`. Lists once for each row of the input;
    holds one page. Raises ExecutorError.
    """

    def list_them(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            for _ in range(batch.num_rows):
                try:
                    for page in iter_pages(s3_client(connection), location, pattern):
                        yield _as_batch(page)
                except S3Error as exc:
                    raise ExecutorError(str(exc)) from exc

    return list_them


def _as_batch(page: list[ObjectInfo]) -> pa.RecordBatch:
    arrays = [
        pa.array([one.key for one in page], pa.string()),
        pa.array([one.etag for one in page], pa.string()),
        pa.array([one.size for one in page], pa.int64()),
        pa.array([one.last_modified for one in page], LISTING_SCHEMA.field("last_modified").type),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=LISTING_SCHEMA)
