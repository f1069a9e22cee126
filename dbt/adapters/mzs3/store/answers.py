"""What boto3 raises for a request to AWS, or to a store like it, as StoreError: here alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, IncompleteReadError
from botocore.exceptions import ConnectionError as NoConnection
from botocore.parsers import ResponseParserError

from dbt.adapters.mzs3.errors import Mzs3Error
from dbt.adapters.mzs3.store.failures import (
    ArchivedError,
    BrokenError,
    ConflictError,
    CredentialsError,
    ExpiredError,
    InvalidPartError,
    MissingBucketError,
    MissingError,
    MissingObjectError,
    MissingQueueError,
    MissingUploadError,
    NoAnswerError,
    NoCredentialsError,
    NotSupportedError,
    PermissionDeniedError,
    PreconditionFailedError,
    StoreError,
    ThrottledError,
    UnreachableError,
    UnreadableError,
    WrongRegionError,
)

ATTEMPTS = "attempts"
"""Under what an exception without an answer has, in its `kwargs`, how many attempts failed."""

_KINDS: dict[type[StoreError], tuple[str, ...]] = {
    PermissionDeniedError: (
        *("AccessDenied", "AccessDeniedException", "403", "Forbidden", "AllAccessDisabled"),
    ),
    MissingObjectError: ("NoSuchKey",),
    MissingBucketError: ("NoSuchBucket",),
    MissingUploadError: ("NoSuchUpload",),
    MissingError: ("404", "NotFound"),
    MissingQueueError: ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"),
    PreconditionFailedError: ("PreconditionFailed", "412"),
    ConflictError: ("ConditionalRequestConflict", "409"),
    NotSupportedError: ("NotImplemented", "501"),
    InvalidPartError: ("InvalidPart",),
    ArchivedError: ("InvalidObjectState",),
    ThrottledError: (
        *("BandwidthLimitExceeded", "RequestLimitExceeded", "RequestThrottled", "SlowDown"),
        *("Throttling", "ThrottlingException", "TooManyRequests", "TooManyRequestsException"),
    ),
    NoCredentialsError: (
        *("CredentialRetrievalError", "NoCredentialsError", "PartialCredentialsError"),
    ),
    ExpiredError: ("ExpiredToken", "ExpiredTokenException"),
    CredentialsError: (
        *("InvalidAccessKeyId", "InvalidClientTokenId", "InvalidToken"),
        *("SignatureDoesNotMatch", "UnrecognizedClientException"),
    ),
    WrongRegionError: (
        *("301", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"),
        "PermanentRedirect",
    ),
    UnreachableError: ("EndpointConnectionError", "ConnectTimeoutError"),
}
_KIND_OF_CODE = {code: kind for kind, codes in _KINDS.items() for code in codes}


@contextlib.contextmanager
def answers() -> Iterator[None]:
    """Raises whatever the block raises as StoreError; it holds nothing but calls of boto3.

    boto3 lets through what urllib3, ssl or the socket raise while a body is read, that of a
    refusal too, and what s3transfer raises.
    """
    try:
        yield
    except (Mzs3Error, StoreError, MemoryError):
        raise
    except Exception as exc:
        raise store_error(exc) from exc


def store_error(exc: Exception) -> StoreError:
    """What an exception of boto3, or of what is below it, means."""
    if isinstance(exc, ClientError):
        return refusal(exc.response, exc.operation_name)
    name, text = type(exc).__name__, " ".join(str(exc).split())
    if isinstance(exc, ResponseParserError):
        text = (str(exc).splitlines() or [name])[0]
        return UnreadableError(f"the answer can't be read: {text}", code=name)
    if not isinstance(exc, BotoCoreError):
        return BrokenError(": ".join(filter(None, [name, text])), code="TransportError")
    kind = _KIND_OF_CODE.get(name, StoreError)
    if isinstance(exc, (HTTPClientError, IncompleteReadError)):
        kind = BrokenError
    elif kind is StoreError and isinstance(exc, NoConnection):
        kind = NoAnswerError
    attempts = int(getattr(exc, "kwargs", {}).get(ATTEMPTS, 0))
    return kind(text, code=name, attempts=attempts)


def refusal(answer: Mapping[str, Any], operation: str) -> StoreError:
    """What an answer means that has an `Error`."""
    error, about = answer.get("Error", {}), answer.get("ResponseMetadata", {})
    code = str(error.get("Code", "Unknown"))
    said = str(error.get("Message", "")).strip() or "no message"
    return _KIND_OF_CODE.get(code, StoreError)(
        f"{code}: {said}",
        code=code,
        operation=operation,
        status=int(about.get("HTTPStatusCode", 0)),
        retries=int(about.get("RetryAttempts", 0)),
        region=error.get("Region") or about.get("HTTPHeaders", {}).get("x-amz-bucket-region"),
        time=time_of(answer),
        is_answer=True,
    )


def time_of(answer: Mapping[str, Any]) -> int | None:
    """The Date header of an answer in ms since the epoch, or None."""
    headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    try:
        return int(parsedate_to_datetime(headers["date"]).timestamp() * 1000)
    except (KeyError, ValueError, TypeError):
        return None
