"""What failed requests to a store mean, and what to do; runs on the driver and on executors.

Callers of a store catch StoreError, or a class below it. `answers.py` makes these of what boto3
raises, by the `codes` of the classes.
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
_TRIED_AGAIN = (429, 500, 502, 503, 504)
_UNCERTAIN = (408, 409)  # a time-out, a conflict


class StoreError(Exception):
    """A request to a store failed.

    `code` is the error code of the answer, such as `AccessDenied`; without an answer, it is the
    name of boto3's exception, and the HTTP `status` is 0. `retries` counts how often the request
    was repeated.
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
        is_answer: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code or type(self).__name__
        self.operation = operation
        self.status = status
        self.retries = retries
        self._attempts = attempts
        self.region = region
        self.time = time
        self.is_answer = is_answer

    @property
    def attempts(self) -> int:
        """How many attempts failed; 0 for a failure after which no other attempt is made."""
        return self.retries + 1 if self.status in _TRIED_AGAIN else self._attempts

    @property
    def is_certain_refusal(self) -> bool:
        """Whether the request has had no effect, and will have none.

        Not so where an earlier attempt may have been made or may yet arrive: after a retry,
        after another request for the key, and where nothing was answered, as boto3 can miss its
        keys for a later attempt.
        """
        return 0 < self.status < 500 and self.status not in _UNCERTAIN and not self.retries

    @property
    def permission(self) -> str | None:
        """The permission that the request needs, if we know it."""
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
    """The object has another version than expected."""


class ConflictError(StoreError):
    """A request with a condition came beside another one for the key."""

    codes = ("ConditionalRequestConflict", "409")
    advice = (
        "; another request for the same name is under way: give each model, and each run, a "
        "location of its own, and run again"
    )


class NotSupportedError(StoreError):
    """The store has not done what it does not know: a condition, or a request."""

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
    """A part that was to be completed is not there."""

    codes = ("InvalidPart",)


class ArchivedError(StoreError):
    """The object is in an archive, and has to be restored before it can be read."""

    codes = ("InvalidObjectState",)


class CredentialsError(StoreError):
    """There are no keys, or they are wrong or no longer valid: the request had no effect."""

    codes: tuple[str, ...] = (
        *("InvalidAccessKeyId", "InvalidClientTokenId", "InvalidToken"),
        *("SignatureDoesNotMatch", "UnrecognizedClientException"),
    )
    advice = "; check the keys under aws_connections in the profile"


class NoCredentialsError(CredentialsError):
    """There are no keys."""

    codes = ("CredentialRetrievalError", "NoCredentialsError", "PartialCredentialsError")
    advice = "; give keys under aws_connections in the profile, or set up boto3's own chain"


class ExpiredError(CredentialsError):
    """The keys are no longer valid."""

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


class NoAnswerError(StoreError):
    """No whole answer came; what was asked for may have been done."""


class UnreachableError(NoAnswerError):
    """The store could not be connected to."""

    codes = ("EndpointConnectionError", "ConnectTimeoutError")
    advice = "; check the endpoint and the region under aws_connections in the profile"


class BrokenError(NoAnswerError):
    """The connection broke: the same request may well succeed."""


class UnreadableError(StoreError):
    """What was answered can't be the store's."""

    advice = (
        "; it is not S3's, but a proxy's, say, or of a page for people: check the endpoint under "
        "aws_connections in the profile"
    )


class WrongPartError(StoreError):
    """The store sent another range than it was asked for."""


def _below(kind: type[StoreError]) -> Iterator[type[StoreError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _below(child)


KIND_OF_CODE = {code: kind for kind in _below(StoreError) for code in vars(kind).get("codes", ())}
"""The error of each code."""


def nothing_works(exc: StoreError) -> bool:
    """Whether any request to the same bucket or queue would fail in this way."""
    of_all = (CredentialsError, WrongRegionError, MissingQueueError, MissingBucketError)
    return not exc.is_answer or isinstance(exc, of_all)


def on_condition(request: Callable[..., Answer], **condition: object) -> Answer:
    """The answer to a request with the condition; from a store that knows none, without it."""
    try:
        return request(**condition)
    except NotSupportedError:
        return request()


def describe(exc: StoreError, doing: str, permission: str | None = None) -> str:
    """One line for users: what failed and why, after how many attempts, and what to do.

    `doing` is such as "listing s3://bucket/prefix/"; `permission` is named if access was denied.
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
    """Raises failures of requests in the block as an `error`, whose text is `describe`'s."""
    try:
        yield
    except StoreError as exc:
        raise error(describe(exc, doing, permission)) from exc
