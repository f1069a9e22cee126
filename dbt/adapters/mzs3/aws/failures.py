"""What a failed request to AWS means to a user; runs on the driver and on executors alike."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from botocore.exceptions import BotoCoreError, ClientError

from dbt.adapters.mzs3.aws.retries import gave_up_after
from dbt.adapters.mzs3.errors import S3Error

DENIED_CODES = frozenset(
    {"AccessDenied", "AccessDeniedException", "403", "Forbidden", "AllAccessDisabled"}
)
MISSING_CODES = frozenset({"404", "NoSuchKey", "NotFound", "NoSuchBucket", "NoSuchUpload"})
QUEUE_MISSING_CODES = frozenset({"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"})
THROTTLED_CODES = frozenset(
    {
        "BandwidthLimitExceeded",
        "RequestLimitExceeded",
        "RequestThrottled",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequests",
        "TooManyRequestsException",
    }
)
# What AWS answers to keys that are wrong or no longer valid, and what boto3 says without any.
REFUSED_CODES = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidToken",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
        "CredentialRetrievalError",
        "NoCredentialsError",
        "PartialCredentialsError",
    }
)
OTHER_REGION_CODES = frozenset(
    {
        "301",
        "AuthorizationHeaderMalformed",
        "IllegalLocationConstraintException",
        "PermanentRedirect",
    }
)

READS_OBJECT = (
    "s3:GetObject; or there is no such object, which S3 says only where s3:ListBucket is allowed"
)
"""For `describe`, of objects that may be missing: their permission, and why it may not be that."""

_PERMISSIONS = {
    "AbortMultipartUpload": "s3:AbortMultipartUpload",
    "CompleteMultipartUpload": "s3:PutObject",
    "DeleteObject": "s3:DeleteObject",
    "GetObject": "s3:GetObject",
    "ListMultipartUploads": "s3:ListBucketMultipartUploads",
    "ListObjectsV2": "s3:ListBucket",
    "PutObject": "s3:PutObject; with If-Match also s3:GetObject",
}

AwsFailure = (ClientError, BotoCoreError)
"""What boto3 raises: `except AwsFailure as exc`."""


class RoleError(BotoCoreError):
    """The role of a connection could not be assumed; raised in the place of any request."""

    fmt = "{reason}"


def error_code(exc: Exception) -> str:
    """The code of AWS's answer such as `AccessDenied`, or the exception's class name."""
    if isinstance(exc, ClientError):
        return str(exc.response.get("Error", {}).get("Code", "Unknown"))
    return type(exc).__name__


def is_denied(exc: Exception) -> bool:
    """Whether AWS refused for want of a permission."""
    return error_code(exc) in DENIED_CODES


def permission_of(exc: Exception) -> str | None:
    """The permission that the request to S3 needs which failed so; None for any other."""
    return _PERMISSIONS.get(getattr(exc, "operation_name", ""))


def is_missing(exc: Exception) -> bool:
    """Whether the bucket, key or upload does not exist."""
    return error_code(exc) in MISSING_CODES


def nothing_works(exc: BaseException) -> bool:
    """Whether every other request to that bucket or queue would fail in the same way."""
    codes = REFUSED_CODES | OTHER_REGION_CODES | QUEUE_MISSING_CODES | {"NoSuchBucket"}
    return not isinstance(exc, ClientError) or error_code(exc) in codes


def reason_of(exc: Exception) -> str:
    """What AWS said, `code: message`, or what boto3 says where there was no answer."""
    if not isinstance(exc, ClientError):
        return str(exc)
    said = str(exc.response.get("Error", {}).get("Message", "")).strip() or "no message"
    return f"{error_code(exc)}: {said}"


def describe(exc: Exception, doing: str, permission: str | None = None) -> str:
    """One line: what was being done, what AWS said, how often it was tried, what to do.

    `doing` names the action and its object, such as "listing s3://bucket/prefix/"; `permission`
    is named where AWS denied it.
    """
    text = f"{doing} failed: {reason_of(exc)}"
    if is_denied(exc) and permission:
        text += f" (needs {permission})"
    attempts = gave_up_after(exc)
    if attempts is not None and attempts > 1:
        text = f"{text.rstrip('.')}; gave up after {attempts} attempts"
    advice = _advice(exc)
    return f"{text.rstrip('.')}{advice}" if advice else text


def _advice(exc: Exception) -> str:
    code = error_code(exc)
    if code in THROTTLED_CODES:
        return (
            ". The store asks for fewer requests: run fewer tasks at a time, or run again later "
            "when less else uses the bucket"
        )
    if code in OTHER_REGION_CODES:
        return _region_advice(exc)
    if code in {"NoCredentialsError", "CredentialRetrievalError", "PartialCredentialsError"}:
        return "; give keys under aws_connections in the profile, or set up boto3's own chain"
    if code in {"ExpiredToken", "ExpiredTokenException"}:
        return (
            "; a session_token can't be renewed: give a new one, or keys without one, or an "
            "assume_role_arn, whose credentials are renewed while a run lasts"
        )
    if code == "NoSuchBucket":
        return (
            "; check the name of the bucket, and the endpoint and keys under aws_connections in "
            "the profile, or make the bucket: dbt-mzs3 makes none"
        )
    if code == "NoSuchUpload":
        return (
            "; another run to this location, or a lifecycle rule of the bucket, has aborted the "
            "upload: give each model a location of its own, and run again"
        )
    if code in {"EndpointConnectionError", "ConnectTimeoutError"}:
        return "; check the endpoint and the region under aws_connections in the profile"
    if code in REFUSED_CODES:
        return "; check the keys under aws_connections in the profile"
    return ""


def _region_advice(exc: Exception) -> str:
    region = None
    if isinstance(exc, ClientError):
        headers = exc.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        named: object = exc.response.get("Error", {}).get("Region")
        region = named or headers.get("x-amz-bucket-region")
    where = f"in {region}" if region else "in another region"
    return f"; the bucket is {where}: set region under aws_connections in the profile"


@contextlib.contextmanager
def explained(
    doing: str, permission: str | None = None, error: type[Exception] = S3Error
) -> Iterator[None]:
    """Raises failures of requests in the block as an `error`, whose text is `describe`'s."""
    try:
        yield
    except AwsFailure as exc:
        raise error(describe(exc, doing, permission)) from exc
