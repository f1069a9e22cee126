"""What dbt's process and the driver of a submitted job tell each other.

They are pickled, and cross a socket in a folder that only this user can open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.mzs3.errors import Mzs3Error, SparkJobError
from dbt.adapters.mzs3.spark.call import Call

GRACE_S = 60.0
"""For so long work that was cancelled may put things in order, before it is killed."""


@dataclass(frozen=True)
class SessionSettings:
    """The first message: what holds for every session of the driver."""

    parameters: Mapping[str, str] = field(repr=False)
    executor_timeout: int


@dataclass(frozen=True)
class Request:
    """To the driver: make this call, whose number is in all that is said of it."""

    number: int
    call: Call[Any]
    subject: str


@dataclass(frozen=True)
class Cancel:
    """To the driver: interrupt the call, and begin no more of its work."""

    number: int


@dataclass(frozen=True)
class End:
    """To the driver: no more calls will come."""


@dataclass(frozen=True)
class Notification:
    """From the driver: what the call has told."""

    number: int
    what: Any


@dataclass(frozen=True)
class Result:
    """From the driver: what the call has returned."""

    number: int
    result: Any


@dataclass(frozen=True)
class Failure:
    """From the driver: the error of the call, with the stack trace for the log."""

    number: int
    text: str
    trace: str
    of_spark: bool

    def error(self, secrets: Iterable[str]) -> Mzs3Error:
        """The error to raise, without the secrets."""
        error = (SparkJobError if self.of_spark else Mzs3Error)(without(secrets, self.text))
        error.__cause__ = RuntimeError(without(secrets, self.trace))  # for dbt's log of debugging
        return error


def without(secrets: Iterable[str], text: str) -> str:
    """The text with each secret replaced."""
    for secret in secrets:
        text = text.replace(secret, "*****")
    return text
