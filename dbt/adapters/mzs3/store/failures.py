"""The errors of requests to a store, with advice for users; used on driver and executors.

Callers of a store catch StoreError or a subclass. `boto_errors.py` creates them from the
exceptions of boto3, by the `codes` of the classes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TypeVar

from dbt.adapters.mzs3.errors import S3Error

Answer = TypeVar("Answer")

READS_OBJECT = (
    "s3:GetObject; or there is no such object, which S3 says only where s3:ListBucket is allowed"
)
"""The `permission` that `describe` gets when an object is read that may not exist."""

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
_RETRIED = (429, 500, 502, 503, 504)  # that boto3 retries, 429 by its error code
_UNCERTAIN = (408, 409)  # a time-out, a conflict


class StoreError(Exception):
    """A request to a store failed.

    `code` is the error code of the response, such as `AccessDenied`. Without a response, it is the
    name of boto3's exception, and the HTTP `status` is 0. `has_response`: a response came.
    """

    advice = ""
    """What users can do; `describe` appends it."""
    codes: tuple[str, ...] = ()
    """The codes that mean this error."""

    def __init__(
        self,
        message: str = "",
        *,
        code: str = "",
        operation: str = "",
        status: int = 0,
        retries: int = 0,
        attempts: int = 0,
        region: str | None = None,
        time: int | None = None,
        has_response: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code or type(self).__name__
        self.operation = operation
        self.status = status
        self.retries = retries
        self._attempts = attempts
        self.region = region
        self.time = time
        self.has_response = has_response

    @property
    def attempts(self) -> int:
        """How many attempts failed; 0 if failures of this kind are not retried."""
        return self.retries + 1 if self.status in _RETRIED else self._attempts

    @property
    def is_certain_refusal(self) -> bool:
        """Whether the request has certainly had no effect, and will have none.

        False if an attempt may have had an effect, or may still arrive: after retries, a time-out
        or a conflict with another request for the key; and without a response. Missing credentials
        count as no response, as boto3 may have lost them after a first attempt.
        """
        return 0 < self.status < 500 and self.status not in _UNCERTAIN and not self.retries

    @property
    def permission(self) -> str | None:
        """The permission that the request needs, if it is known."""
        return _PERMISSIONS.get(self.operation)


class MissingError(StoreError):
    """The bucket, object or upload does not exist."""

    codes: tuple[str, ...] = ("404", "NotFound")


class MissingObjectError(MissingError):
    """The object does not exist."""

    codes = ("NoSuchKey",)


class MissingBucketError(MissingError):
    """The bucket does not exist."""

    codes = ("NoSuchBucket",)
    advice = (
        "; check the name of the bucket, and the endpoint and keys under aws_connections in "
        "the profile, or make the bucket: dbt-mzs3 makes none"
    )


class MissingUploadError(MissingError):
    """The multipart upload is completed, aborted, or was never opened."""

    codes = ("NoSuchUpload",)
    advice = (
        "; another run to this location, or a lifecycle rule of the bucket, has aborted the "
        "upload: give each model a location of its own, and run again"
    )


class MissingQueueError(StoreError):
    """The queue does not exist."""

    codes = ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")


class PreconditionFailedError(StoreError):
    """The condition of the request does not hold."""

    codes = ("PreconditionFailed", "412")


class ReplacedError(PreconditionFailedError):
    """The object's version is not the expected one."""


class ConflictError(StoreError):
    """A conditional request conflicted with another request for the same key."""

    codes = ("ConditionalRequestConflict", "409")
    advice = (
        "; another request for the same name is under way: give each model, and each run, a "
        "location of its own, and run again"
    )


class NotSupportedError(StoreError):
    """The store does not support the condition, or the request, and has done nothing."""

    codes = ("NotImplemented", "501")


class PermissionDeniedError(StoreError):
    """A permission is missing."""

    codes = ("AccessDenied", "AccessDeniedException", "403", "Forbidden", "AllAccessDisabled")


class ThrottledError(StoreError):
    """The store asks for fewer requests."""

    codes = (
        *("BandwidthLimitExceeded", "RequestLimitExceeded", "RequestThrottled", "SlowDown"),
        *("Throttling", "ThrottlingException", "TooManyRequests", "TooManyRequestsException"),
    )
    advice = (
        ". The store asks for fewer requests: run fewer tasks at a time, or run again later "
        "when less else uses the bucket"
    )


class InvalidPartError(StoreError):
    """A part of the upload to complete does not exist."""

    codes = ("InvalidPart",)


class ArchivedError(StoreError):
    """The object is in an archive, and has to be restored before it can be read."""

    codes = ("InvalidObjectState",)


class CredentialsError(StoreError):
    """There are no credentials, or they are wrong or expired."""

    codes: tuple[str, ...] = (
        *("InvalidAccessKeyId", "InvalidClientTokenId", "InvalidToken"),
        *("SignatureDoesNotMatch", "UnrecognizedClientException"),
    )
    advice = "; check the keys under aws_connections in the profile"


class NoCredentialsError(CredentialsError):
    """There are no credentials."""

    codes = ("CredentialRetrievalError", "NoCredentialsError", "PartialCredentialsError")
    advice = "; give keys under aws_connections in the profile, or set up boto3's own chain"


class ExpiredError(CredentialsError):
    """The credentials have expired."""

    codes = ("ExpiredToken", "ExpiredTokenException")
    advice = (
        "; a session_token can't be renewed: give a new one, or keys without one, or an "
        "assume_role_arn, whose credentials are renewed while a run lasts"
    )


class RoleError(CredentialsError):
    """The role of a connection could not be assumed; any request may raise it."""

    advice = ""


class WrongRegionError(StoreError):
    """The bucket is in another region."""

    codes = (
        *("301", "PermanentRedirect"),
        *("AuthorizationHeaderMalformed", "IllegalLocationConstraintException"),
    )

    @property
    def advice(self) -> str:  # type: ignore[override]
        """Where the bucket is."""
        where = f"in {self.region}" if self.region else "in another region"
        return f"; the bucket is {where}: set region under aws_connections in the profile"


class NoResponseError(StoreError):
    """No complete response came; the request may have had an effect."""


class UnreachableError(NoResponseError):
    """The store could not be connected to."""

    codes = ("EndpointConnectionError", "ConnectTimeoutError")
    advice = "; check the endpoint and the region under aws_connections in the profile"


class BrokenError(NoResponseError):
    """The connection broke; a retry may succeed."""


class UnreadableError(StoreError):
    """The response is not in the form of a store's responses."""

    advice = (
        "; it is not S3's, but a proxy's, say, or of a page for people: check the endpoint under "
        "aws_connections in the profile"
    )


class WrongRangeError(StoreError):
    """The store sent another range of bytes than was requested."""


def _below(kind: type[StoreError]) -> Iterator[type[StoreError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _below(child)


KIND_OF_CODE = {code: kind for kind in _below(StoreError) for code in vars(kind).get("codes", ())}
"""The class of each error code."""


def nothing_works(exc: StoreError) -> bool:
    """Whether every request to the same bucket or queue would fail like this one."""
    general = (CredentialsError, WrongRegionError, MissingQueueError, MissingBucketError)
    return not exc.has_response or isinstance(exc, general)


def on_condition(request: Callable[..., Answer], **condition: object) -> Answer:
    """Sends the request with the condition, or without it if the store does not support it."""
    try:
        return request(**condition)
    except NotSupportedError:
        return request()


def describe(exc: StoreError, doing: str, permission: str | None = None) -> str:
    """One line for users: what failed and why, after how many attempts, and what to do.

    `doing` is, for example, "listing s3://bucket/prefix/"; `permission` is shown if it is denied.
    """
    text = f"{doing} failed: {exc}"
    if isinstance(exc, PermissionDeniedError) and permission:
        text += f" (needs {permission})"
    if exc.attempts > 1:
        text = f"{text.rstrip('.')}; gave up after {exc.attempts} attempts"
    return f"{text.rstrip('.')}{exc.advice}" if exc.advice else text


@contextlib.contextmanager
def explained(
    doing: str, permission: str | None = None, error: type[Exception] = S3Error
) -> Iterator[None]:
    """Raises any StoreError of the block as an `error` with the text of `describe`."""
    try:
        yield
    except StoreError as exc:
        raise error(describe(exc, doing, permission)) from exc
