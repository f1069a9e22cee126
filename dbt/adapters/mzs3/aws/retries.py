"""How often and how long a client tries again; runs on the driver and on executors alike."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ConnectionError as NoConnection
from botocore.exceptions import HTTPClientError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MAX_ATTEMPTS = 10
_LONGEST_WAIT_S = 20.0
_ATTEMPTS = "attempts"
_TRIED_AGAIN = (429, 500, 502, 503, 504)


def settings(max_attempts: int) -> dict[str, Any]:
    """botocore's `retries`: throttling, 5xx and broken connections, with back-off and jitter."""
    return {"mode": "standard", "total_max_attempts": max_attempts}


def wait_beyond_quota(client: S3Client, max_attempts: int) -> None:
    """Every request gets its `max_attempts`, however many others of the client fail with it.

    botocore gives the retries of a client a quota of 500, of which one takes 5 or 14 and a request
    that succeeds gives it back: a lasting fault rate of 5 % never drains it (that begins at about
    20 %), but a second without S3 does, as 16 requests at once soon have taken 35 retries. The
    work of hours is worth more patience than a web page is, so those wait too.
    """

    def wait(attempts: int, response: Any, caught_exception: Any, **_: Any) -> float | None:
        if caught_exception is not None:
            if not isinstance(caught_exception, (NoConnection, HTTPClientError)):
                return None
            details: Any = caught_exception.kwargs
            details[_ATTEMPTS] = attempts
        elif not response[1].get("ResponseMetadata", {}).get("RetryQuotaReached"):
            return None
        if attempts >= max_attempts:
            return None
        return random.random() * min(2.0 ** (attempts - 1), _LONGEST_WAIT_S)  # noqa: S311

    # Of several answers botocore takes the first, so this one counts where its own says no.
    register: Any = client.meta.events.register_last
    register("needs-retry.s3", wait)


def gave_up_after(exc: Exception) -> int | None:
    """How many attempts failed, the last one so; None for what is not tried again."""
    response = getattr(exc, "response", None)
    if not isinstance(response, dict):
        counted = getattr(exc, "kwargs", {}).get(_ATTEMPTS)
        return int(counted) if counted is not None else None
    answer = response.get("ResponseMetadata", {})
    if int(answer.get("HTTPStatusCode", 0)) not in _TRIED_AGAIN:
        return None
    return int(answer.get("RetryAttempts", 0)) + 1
