"""Where work for Spark is done: in sessions of dbt's process, or in a job of `spark-submit`."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Any, TypeVar

from dbt_common.exceptions import env_secrets
from pyspark.sql import SparkSession

from dbt.adapters.mzs3.connections import session_of
from dbt.adapters.mzs3.credentials import Mzs3Credentials, require_spark
from dbt.adapters.mzs3.spark.call import Call, Tell
from dbt.adapters.mzs3.spark.engine import engine_of
from dbt.adapters.mzs3.spark.session import DEFAULTS
from dbt.adapters.mzs3.submit.command import secret_settings
from dbt.adapters.mzs3.submit.messages import SessionSettings
from dbt.adapters.mzs3.submit.process import Submission, SubmitPlan

T = TypeVar("T")


class Runner(ABC):
    """Does work, several at a time, from the begin of a block to its end; safe for threads."""

    def __enter__(self) -> Runner:
        return self

    @abstractmethod
    def __exit__(self, *failure: Any) -> None:
        """End what still runs, and give back what Spark holds."""

    @abstractmethod
    def run(
        self,
        work: Call[T],
        subject: str,
        *,
        cancelled: threading.Event | None = None,
        tell: Tell = lambda what: None,
    ) -> T:
        """The result of the work, in a session of its own; `subject` is what it is about.

        Raises an Mzs3Error, one that says so if the profile runs SQL only, and in this process
        also what Spark raises.
        """

    @abstractmethod
    def interrupt(self) -> None:
        """Interrupt what Spark does for all work; what of it begins later needs another call."""


def runner_for(credentials: Mzs3Credentials) -> Runner:
    """Where the profile says; nothing starts before there is work."""
    return _Sessions(credentials) if credentials.has_session else _Job(credentials)


class _Sessions(Runner):
    """A session of this process for each work, until it is done."""

    def __init__(self, credentials: Mzs3Credentials) -> None:
        self._credentials = credentials
        self._open: list[SparkSession] = []

    def __exit__(self, *failure: Any) -> None:
        pass

    def run(
        self,
        work: Call[T],
        subject: str,
        *,
        cancelled: threading.Event | None = None,
        tell: Tell = lambda what: None,
    ) -> T:
        session = session_of(self._credentials)
        self._open.append(session)
        try:
            return work.run(session, cancelled or threading.Event(), tell)
        finally:
            self._open.remove(session)
            engine_of(session).close(session)

    def interrupt(self) -> None:
        for session in list(self._open):
            with suppress(Exception):  # of one that was just given back
                session.interruptAll()


class _Job(Runner):
    """One job for all the work, submitted with the first, as the start of Spark takes seconds."""

    def __init__(self, credentials: Mzs3Credentials) -> None:
        self._credentials = credentials
        self._lock = threading.Lock()
        self._submission: Submission | None = None

    def __exit__(self, *failure: Any) -> None:
        if self._submission is not None:
            self._submission.__exit__(*failure)

    def run(
        self,
        work: Call[T],
        subject: str,
        *,
        cancelled: threading.Event | None = None,
        tell: Tell = lambda what: None,
    ) -> T:
        require_spark(self._credentials, subject)
        with self._lock:
            if self._submission is None:
                plan = submit_plan(self._credentials, f"dbt-mzs3 {subject}")
                self._submission = Submission(plan).__enter__()
        return self._submission.run(work, cancelled or threading.Event(), tell, subject=subject)

    def interrupt(self) -> None:
        if self._submission is not None:
            self._submission.cancel()


def submit_plan(credentials: Mzs3Credentials, name: str) -> SubmitPlan:
    """How a job of this name is submitted; the profile must have `spark_submit`."""
    options, connections = credentials.submit_options, credentials.connections.values()
    assert options is not None
    parameters = {**credentials.server_side_parameters, **options.conf}
    return SubmitPlan(
        options,
        settings={**DEFAULTS, "spark.app.name": name},
        session=SessionSettings(parameters, credentials.executor_timeout),
        secrets=[
            *env_secrets(),
            *(secret for connection in connections for secret in connection.secrets),
            *secret_settings(options.conf),
        ],
    )
