"""Asks S3 for an object, and reads it; runs on the driver and on executors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError

from dbt.adapters.mzs3.store.failures import AwsFailure

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class TransportError(BotoCoreError):
    """A connection failed, in a way that boto3 has no exception of its own for."""

    fmt = "{reason}"


class AnswerError(BotoCoreError):
    """What was answered can't be S3's, as it lacks a header that each answer of it has."""

    fmt = "the answer has no {header}"


@contextlib.contextmanager
def transport() -> Iterator[None]:
    """Raises whatever the block raises as an AwsFailure; it holds nothing but calls of boto3.

    boto3 lets through what urllib3, ssl or the socket raise while a body is read, that of a
    refusal too, and what s3transfer raises.
    """
    try:
        yield
    except (*AwsFailure, MemoryError):
        raise
    except Exception as exc:
        said = filter(None, [type(exc).__name__, str(exc)])
        raise TransportError(reason=": ".join(said)) from exc


class Body:
    """The bytes of an answer: `read` raises AwsFailure, and `close` nothing."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def read(self, size: int | None = None) -> bytes:
        """Up to `size` bytes, or all that are left; b"" at the end."""
        with transport():
            data: bytes = self._raw.read() if size is None else self._raw.read(size)
        return data

    def close(self) -> None:
        """Return the connection to the pool, or give it up; safe to repeat."""
        with contextlib.suppress(Exception):
            self._raw.close()


def get_object(client: S3Client, **request: Any) -> dict[str, Any]:
    """The answer to a GetObject, with a Body and an ETag; raises AwsFailure, and nothing else.

    Nobody else asks for objects: a test holds that.
    """
    with transport():
        answer: Any = client.get_object(**request)
    if "ETag" not in answer:
        Body(answer["Body"]).close()
        raise AnswerError(header="ETag")
    return {**answer, "Body": Body(answer["Body"])}
