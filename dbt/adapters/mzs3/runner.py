"""Runs calls that need Spark: in sessions of dbt's process, or in a job of `spark-submit`."""

from __future__ import annotations

import threading
from typing import Any, TypeVar

from pyspark.sql import SparkSession

from dbt.adapters.mzs3.connections import session_of
from dbt.adapters.mzs3.credentials import Mzs3Credentials, require_spark
from dbt.adapters.mzs3.errors import Mzs3Error
from dbt.adapters.mzs3.secrets import hide_in_error
from dbt.adapters.mzs3.spark import engine
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, readable
from dbt.adapters.mzs3.spark.interrupt import at_once
from dbt.adapters.mzs3.spark.job import Call, Tell
from dbt.adapters.mzs3.spark.settings import DEFAULTS
from dbt.adapters.mzs3.submit.messages import SessionSettings
from dbt.adapters.mzs3.submit.process import Submission, SubmitPlan

T = TypeVar("T")


class Runner:
    """Runs calls in this process, each in a new session, during a `with` block. Thread-safe."""

    def __init__(self, credentials: Mzs3Credentials) -> None:
        self._credentials = credentials
        self._sessions: list[SparkSession] = []

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *failure: Any) -> None:
        """Does nothing here; a subclass ends its job."""

    def run(
        self,
        call: Call[T],
        subject: str,
        *,
        cancelled: threading.Event | None = None,
        tell: Tell = lambda what: None,
    ) -> T:
        """Runs a call in a new session and returns its result; errors name the `subject`.

        Raises an Mzs3Error, with the profile's secrets hidden: the call's own, one with Spark's
        message, or one that says that the profile can only run SQL.
        """
        require_spark(self._credentials, subject)
        try:
            try:
                return self._run(call, subject, cancelled or threading.Event(), tell)
            except SPARK_FAILURES as exc:
                raise readable(exc) from exc
        except Mzs3Error as exc:
            hide_in_error(self._credentials.secrets, exc)
            raise

    def interrupt(self) -> None:
        """Interrupts the running Spark jobs of all calls."""
        at_once([session.interruptAll for session in [*self._sessions]])

    def _run(self, call: Call[T], subject: str, cancelled: threading.Event, tell: Tell) -> T:
        session = session_of(self._credentials)
        self._sessions.append(session)
        try:
            engine.keep_plans_secret(session)
            return call.run(session, cancelled, tell)
        finally:
            self._sessions.remove(session)
            engine.close(session)


class _JobRunner(Runner):
    """Runs all calls in one job of `spark-submit`, which the first call submits."""

    def __init__(self, credentials: Mzs3Credentials) -> None:
        super().__init__(credentials)
        self._lock = threading.Lock()
        self._submission: Submission | None = None

    def __exit__(self, *failure: Any) -> None:
        if self._submission is not None:
            self._submission.__exit__(*failure)

    def _run(self, call: Call[T], subject: str, cancelled: threading.Event, tell: Tell) -> T:
        with self._lock:
            if self._submission is None:
                plan = submit_plan(self._credentials, f"dbt-mzs3 {subject}")
                self._submission = Submission(plan).__enter__()
        return self._submission.run(call, cancelled, tell, subject=subject)

    def interrupt(self) -> None:
        if self._submission is not None:
            self._submission.cancel()


def submit_plan(credentials: Mzs3Credentials, name: str) -> SubmitPlan:
    """The plan to submit a job of this name; the profile must have `spark_submit`."""
    options = credentials.submit_options
    assert options is not None
    parameters = {**credentials.server_side_parameters, **options.conf}
    return SubmitPlan(
        options,
        settings={**DEFAULTS, "spark.app.name": name},
        session=SessionSettings(parameters, credentials.executor_timeout),
        secrets=credentials.secrets,
    )


def runner_for(credentials: Mzs3Credentials) -> Runner:
    """The runner for the profile; it starts Spark with the first call."""
    return Runner(credentials) if credentials.has_session else _JobRunner(credentials)
