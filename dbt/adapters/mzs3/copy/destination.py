"""The location of an export: evaluated, and proved to be empty and writable before any data."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True)
class Contents:
    """What a listing of a location found: its first keys."""

    keys: tuple[str, ...]
    more: bool

    def describe(self, location: S3Location) -> str:
        """How many objects there are, and one of them by name."""
        count = f"at least {len(self.keys)}" if self.more else str(len(self.keys))
        noun = "object" if count == "1" else "objects"
        return f"it holds {count} {noun}, such as s3://{location.bucket}/{self.keys[0]}"


def list_location(client: S3Client, location: S3Location) -> Contents:
    """The first page of the objects below a location; raises S3Error."""
    try:
        page = client.list_objects_v2(Bucket=location.bucket, Prefix=location.prefix)
    except AwsFailure as exc:
        raise S3Error(describe(exc, f"listing {location.uri}", "s3:ListBucket")) from exc
    keys = tuple(entry["Key"] for entry in page.get("Contents", []))
    return Contents(keys, bool(page.get("IsTruncated")))


def require_empty(client: S3Client, location: S3Location) -> None:
    """Raises LocationError if there is any object below the location."""
    contents = list_location(client, location)
    if contents.keys:
        raise LocationError(
            f"{location.uri} is not empty: {contents.describe(location)}. Remove what is there, "
            f"or export to a new location for each run, such as '{location.uri}' || mz_now()"
        )


def prove_writable(client: S3Client, location: S3Location) -> None:
    """Opens an upload and aborts it: nothing is left.

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
        client.abort_multipart_upload(**target, UploadId=opened["UploadId"])
    except AwsFailure as exc:
        text = describe(exc, f"aborting an upload at {location.uri}", "s3:AbortMultipartUpload")
        raise S3Error(
            f"{text}; without it a failed export could not be cleaned up, and the upload "
            f"{opened['UploadId']} of s3://{location.bucket}/{location.key(MANIFEST)} stays open"
        ) from exc
