"""Turns the exceptions of boto3 into StoreError."""

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
    KIND_OF_CODE,
    BrokenError,
    NoResponseError,
    StoreError,
    UnreadableError,
)

ATTEMPTS = "attempts"
"""A key that `client.py` adds to the `kwargs` of a botocore exception: the number of attempts."""

# Defects of our code or of the installation, which are not failed requests.
_MISTAKES = (ImportError, NameError, TypeError)


@contextlib.contextmanager
def as_store_errors() -> Iterator[None]:
    """Raises failed requests of the block as StoreError. The block may only call boto3 and read
    its responses.

    This includes exceptions that boto3 does not wrap: those of s3transfer, and those of urllib3,
    ssl or sockets while the body of any response is read.
    """
    try:
        yield
    except (Mzs3Error, StoreError, MemoryError, *_MISTAKES):
        raise
    except KeyError as exc:
        raise UnreadableError(f"the answer has no {exc.args[0]}", code="AnswerError") from exc
    except Exception as exc:
        raise store_error(exc) from exc


def store_error(exc: Exception) -> StoreError:
    """The StoreError for an exception of boto3, or of a library that boto3 calls."""
    if isinstance(exc, ClientError):
        return refusal(exc.response, exc.operation_name)
    name, text = type(exc).__name__, " ".join(str(exc).split())
    if isinstance(exc, ResponseParserError):
        text = (str(exc).splitlines() or [name])[0]
        return UnreadableError(f"the answer can't be read: {text}", code=name)
    if not isinstance(exc, BotoCoreError):
        return BrokenError(": ".join(filter(None, [name, text])), code="TransportError")
    kind = KIND_OF_CODE.get(name, StoreError)
    if isinstance(exc, (HTTPClientError, IncompleteReadError)):
        kind = BrokenError
    elif kind is StoreError and isinstance(exc, NoConnection):
        kind = NoResponseError
    attempts = int(getattr(exc, "kwargs", {}).get(ATTEMPTS, 0))
    return kind(text, code=name, attempts=attempts)


def refusal(answer: Mapping[str, Any], operation: str) -> StoreError:
    """The StoreError for a response that has an `Error`."""
    error, metadata = answer.get("Error", {}), answer.get("ResponseMetadata", {})
    code = str(error.get("Code", "Unknown"))
    message = str(error.get("Message", "")).strip() or "no message"
    return KIND_OF_CODE.get(code, StoreError)(
        f"{code}: {message}",
        code=code,
        operation=operation,
        status=int(metadata.get("HTTPStatusCode", 0)),
        retries=int(metadata.get("RetryAttempts", 0)),
        region=error.get("Region") or metadata.get("HTTPHeaders", {}).get("x-amz-bucket-region"),
        time=time_of(answer),
        has_response=True,
    )


def time_of(answer: Mapping[str, Any]) -> int | None:
    """The Date header of a response in ms since the epoch, or None."""
    headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    try:
        return int(parsedate_to_datetime(headers["date"]).timestamp() * 1000)
    except (KeyError, ValueError, TypeError):
        return None
