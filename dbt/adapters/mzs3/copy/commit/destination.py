"""The location of an export: evaluated, and proved to be empty and writable before any data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dbt.adapters.mzs3.aws.failures import AwsFailure, describe
from dbt.adapters.mzs3.aws.location import SCHEME, S3Location, parse_location
from dbt.adapters.mzs3.errors import ConfigError, LocationError, S3Error

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MANIFEST = "_manifest.json"
COMMITTING = "_committing.json"


def resolve_location(spark: SparkSession, node: str, text: str, as_of: int) -> S3Location:
    """The location that a literal `s3://…` or a SQL scalar expression gives.

    `mz_now()` in the expression is `as_of`, in ms since the epoch.
    Raises ConfigError when the expression fails, or gives no S3 location.
    """
    value: Any = text
    if not text.startswith(SCHEME):
        try:
            spark.sql(
                "CREATE OR REPLACE TEMPORARY FUNCTION mz_now() RETURNS BIGINT "
                f"RETURN {int(as_of)}L"
            )
            row = spark.sql(f"SELECT ({text}) AS location").first()
        except PySparkException as exc:
            reason = str(exc).splitlines()[0]
            raise ConfigError(
                node,
                [
                    f"location {text!r} is neither a literal {SCHEME}… nor a SQL expression that "
                    f"Spark can evaluate: {reason}"
                ],
            ) from exc
        value = row[0] if row is not None else None
    if not isinstance(value, str):
        what = "NULL" if value is None else f"{value!r}, which is no text"
        raise ConfigError(node, [f"location {text!r} evaluates to {what}"])
    try:
        return parse_location(value)
    except ValueError as exc:
        raise ConfigError(node, [f"location {exc}"]) from exc


def list_location(client: S3Client, location: S3Location) -> tuple[str, ...]:
    """The keys of the first page of objects below a location; raises S3Error."""
    try:
        page = client.list_objects_v2(Bucket=location.bucket, Prefix=location.prefix)
    except AwsFailure as exc:
        raise S3Error(describe(exc, f"listing {location.uri}", "s3:ListBucket")) from exc
    return tuple(entry["Key"] for entry in page.get("Contents", []))


def require_empty(client: S3Client, location: S3Location, *, but_for: str | None = None) -> None:
    """Raises LocationError if there is any object below the location but the key `but_for`."""
    keys = [key for key in list_location(client, location) if key != but_for]
    if keys:
        count = "1 object" if len(keys) == 1 else f"{len(keys)} or more objects"
        raise LocationError(
            f"{location.uri} is not empty: it holds {count}, such as "
            f"s3://{location.bucket}/{keys[0]}. Remove what is there, or export to a new location "
            f"for each run, such as '{location.uri}' || mz_now()"
        )


@contextmanager
def proof_of_writing(client: S3Client, location: S3Location) -> Iterator[str]:
    """Opens an upload and aborts it: nothing is left. Its id while it is open.

    Raises S3Error, which names the missing permission.
    """
    target: Any = {"Bucket": location.bucket, "Key": location.key(MANIFEST)}
    try:
        opened = client.create_multipart_upload(**target)
    except AwsFailure as exc:
        raise S3Error(
            describe(exc, f"opening an upload at {location.uri}", "s3:PutObject")
        ) from exc
    try:
        yield opened["UploadId"]
    finally:
        try:
            client.abort_multipart_upload(**target, UploadId=opened["UploadId"])
        except AwsFailure as exc:
            text = describe(
                exc, f"aborting an upload at {location.uri}", "s3:AbortMultipartUpload"
            )
            raise S3Error(
                f"{text}; without it a failed export could not be cleaned up, and the upload "
                f"{opened['UploadId']} of s3://{location.bucket}/{location.key(MANIFEST)} stays "
                "open"
            ) from exc
