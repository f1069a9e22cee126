"""What failed requests to AWS mean, and what to do; runs on the driver and on executors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from dbt.adapters.mzs3.errors import S3Error

Answer = TypeVar("Answer")

DENIED_CODES = frozenset(
    {"AccessDenied", "AccessDeniedException", "403", "Forbidden", "AllAccessDisabled"}
)
MISSING_CODES = frozenset({"404", "NoSuchKey", "NotFound", "NoSuchBucket", "NoSuchUpload"})
UNMET_CODES = frozenset({"PreconditionFailed", "412"})
"""Of a request whose condition does not hold."""
CONFLICT_CODES = frozenset({"ConditionalRequestConflict", "409"})
"""Of a request with a condition that came beside another one for the key."""
UNKNOWN_CONDITION_CODES = frozenset({"NotImplemented", "501"})
"""Of a store that does not know the condition of a request, and so has not done it."""
QUEUE_MISSING_CODES = frozenset({"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"})
_THROTTLED = frozenset(
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
_WITHOUT_KEYS = frozenset(
    {"CredentialRetrievalError", "NoCredentialsError", "PartialCredentialsError"}
)
_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException"})
# What AWS answers to keys that are wrong or no longer valid, and what boto3 says without any.
REFUSED_CODES = frozenset(
    {
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidToken",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
        *_EXPIRED,
        *_WITHOUT_KEYS,
    }
)
_OF_OTHER_REGION = frozenset(
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
"""The permission for `describe` to name for objects that may be missing."""

_PERMISSIONS = {
    "AbortMultipartUpload": "s3:AbortMultipartUpload",
    "CompleteMultipartUpload": "s3:PutObject; with If-Match also s3:GetObject",
    "DeleteObject": "s3:DeleteObject",
    "GetObject": "s3:GetObject",
    "ListMultipartUploads": "s3:ListBucketMultipartUploads",
    "ListObjectsV2": "s3:ListBucket",
    "ListParts": "s3:ListMultipartUploadParts",
    "PutObject": "s3:PutObject; with If-Match also s3:GetObject",
}

ATTEMPTS = "attempts"
"""Under what an exception without an answer has, in its `kwargs`, how many attempts failed."""
_TRIED_AGAIN = (429, 500, 502, 503, 504)

# What to do, by the codes; the first that has the code counts.
_ADVICE = {
    _THROTTLED: (
        ". The store asks for fewer requests: run fewer tasks at a time, or run again later "
        "when less else uses the bucket"
    ),
    _WITHOUT_KEYS: (
        "; give keys under aws_connections in the profile, or set up boto3's own chain"
    ),
    _EXPIRED: (
        "; a session_token can't be renewed: give a new one, or keys without one, or an "
        "assume_role_arn, whose credentials are renewed while a run lasts"
    ),
    frozenset({"NoSuchBucket"}): (
        "; check the name of the bucket, and the endpoint and keys under aws_connections in "
        "the profile, or make the bucket: dbt-mzs3 makes none"
    ),
    frozenset({"NoSuchUpload"}): (
        "; another run to this location, or a lifecycle rule of the bucket, has aborted the "
        "upload: give each model a location of its own, and run again"
    ),
    frozenset({"EndpointConnectionError", "ConnectTimeoutError"}): (
        "; check the endpoint and the region under aws_connections in the profile"
    ),
    frozenset({"ResponseParserError", "AnswerError"}): (
        "; it is not S3's, but a proxy's, say, or of a page for people: check the endpoint under "
        "aws_connections in the profile"
    ),
    CONFLICT_CODES: (
        "; another request for the same name is under way: give each model, and each run, a "
        "location of its own, and run again"
    ),
    REFUSED_CODES: "; check the keys under aws_connections in the profile",
}

AwsFailure = (ClientError, BotoCoreError, ResponseParserError)
"""All that boto3 raises for a request, to catch."""


class RoleError(BotoCoreError):
    """The role of a connection could not be assumed; any request may raise it."""

    fmt = "{reason}"


def error_code(exc: Exception) -> str:
    """The error code of the answer, such as `AccessDenied`, or the exception's class name."""
    if isinstance(exc, ClientError):
        return str(exc.response.get("Error", {}).get("Code", "Unknown"))
    return type(exc).__name__


def is_denied(exc: Exception) -> bool:
    """Whether a permission is missing."""
    return error_code(exc) in DENIED_CODES


def permission_of(exc: Exception) -> str | None:
    """The permission that the failed request to S3 needs, or None if it is not known."""
    return _PERMISSIONS.get(getattr(exc, "operation_name", ""))


def is_missing(exc: Exception) -> bool:
    """Whether the bucket, key or upload does not exist."""
    return error_code(exc) in MISSING_CODES


def nothing_works(exc: BaseException) -> bool:
    """Whether any request to the same bucket or queue would fail in this way."""
    codes = REFUSED_CODES | _OF_OTHER_REGION | QUEUE_MISSING_CODES | {"NoSuchBucket"}
    return not isinstance(exc, ClientError) or error_code(exc) in codes


def on_condition(request: Callable[..., Answer], **condition: str) -> Answer:
    """The answer to a request with the condition; without it, from a store that knows none."""
    try:
        return request(**condition)
    except AwsFailure as exc:
        if error_code(exc) not in UNKNOWN_CONDITION_CODES:
            raise
    return request()


def reason_of(exc: Exception) -> str:
    """The answer's `code: message`, or boto3's text in one line where there was no answer."""
    if isinstance(exc, ResponseParserError):
        return f"the answer can't be read: {(str(exc).splitlines() or [type(exc).__name__])[0]}"
    if not isinstance(exc, ClientError):
        return " ".join(str(exc).split())
    said = str(exc.response.get("Error", {}).get("Message", "")).strip() or "no message"
    return f"{error_code(exc)}: {said}"


def describe(exc: Exception, doing: str, permission: str | None = None) -> str:
    """One line for users: what failed and why, after how many attempts, and what to do.

    `doing` is such as "listing s3://bucket/prefix/"; `permission` is named if access was denied.
    """
    text = f"{doing} failed: {reason_of(exc)}"
    if is_denied(exc) and permission:
        text += f" (needs {permission})"
    attempts = _failed_attempts(exc)
    if attempts > 1:
        text = f"{text.rstrip('.')}; gave up after {attempts} attempts"
    advice = _advice(exc)
    return f"{text.rstrip('.')}{advice}" if advice else text


def _failed_attempts(exc: Exception) -> int:
    """How many attempts failed, the last one so; 0 for what is not tried again."""
    if not isinstance(exc, ClientError):
        return int(getattr(exc, "kwargs", {}).get(ATTEMPTS, 0))
    answer = exc.response.get("ResponseMetadata", {})
    if int(answer.get("HTTPStatusCode", 0)) not in _TRIED_AGAIN:
        return 0
    return int(answer.get("RetryAttempts", 0)) + 1


def _advice(exc: Exception) -> str:
    code = error_code(exc)
    if code not in _OF_OTHER_REGION:
        return next((advice for codes, advice in _ADVICE.items() if code in codes), "")
    answer: Any = getattr(exc, "response", {})
    headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    region = answer.get("Error", {}).get("Region") or headers.get("x-amz-bucket-region")
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
