"""The messages between dbt's process and the driver of a submitted job.

They are pickled, and sent through a socket in a folder that only this user can open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.mzs3.errors import Mzs3Error, SparkJobError
from dbt.adapters.mzs3.secrets import hide_secrets
from dbt.adapters.mzs3.spark.job import Call

GRACE_S = 60.0
"""How long a cancelled call may clean up before the job is killed."""


@dataclass(frozen=True)
class SessionSettings:
    """To the driver, as the first message: the settings of its sessions."""

    parameters: Mapping[str, str] = field(repr=False)
    executor_timeout: int


@dataclass(frozen=True)
class Request:
    """To the driver: run this call. All messages about the call carry its number."""

    number: int
    call: Call[Any]
    subject: str


@dataclass(frozen=True)
class Cancel:
    """To the driver: interrupt the call."""

    number: int


@dataclass(frozen=True)
class End:
    """To the driver: no more calls will come."""


@dataclass(frozen=True)
class Notification:
    """From the driver: an event of the call."""

    number: int
    what: Any


@dataclass(frozen=True)
class Result:
    """From the driver: what the call returned."""

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
        """The error to raise, with the secrets hidden."""
        error = (SparkJobError if self.of_spark else Mzs3Error)(hide_secrets(secrets, self.text))
        # dbt shows the cause in its debug log.
        error.__cause__ = RuntimeError(hide_secrets(secrets, self.trace))
        return error
