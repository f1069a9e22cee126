"""The driver that `spark-submit` starts, which runs the calls that dbt's process sends.

Its Python may not have dbt; our code is in an archive that is submitted with the job.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from dbt.adapters.mzs3.errors import Mzs3Error, SparkJobError
from dbt.adapters.mzs3.secrets import hide_secrets
from dbt.adapters.mzs3.spark.cursor import CANCELLED
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, readable
from dbt.adapters.mzs3.spark.job import run_job, ship_executor_code
from dbt.adapters.mzs3.spark.session import configure, quieten_pyspark
from dbt.adapters.mzs3.submit.messages import (
    GRACE_S,
    Cancel,
    End,
    Failure,
    Notification,
    Request,
    Result,
    SessionSettings,
)

OpenSession = Callable[[SessionSettings], SparkSession]


def main() -> None:
    """Serves dbt's process; the path of its socket is the first argument of the command."""
    serve(sys.argv[1], _open_session)


def run_submitted(
    spark: SparkSession, *, code: str, name: str, secrets: tuple[str, ...], **provided: Any
) -> Any:
    """Runs a job with `run_job`, with `scrub` among its globals. Returns its result if that is of
    a class of ours, else None, as other objects may not be picklable."""
    result = run_job(spark, code, name, {**provided, "scrub": partial(hide_secrets, secrets)})
    is_ours = type(result).__module__.startswith("dbt.adapters.mzs3.")
    return result if is_ours else None


def serve(address: str, open_session: OpenSession) -> None:
    """Runs the calls that arrive at the socket, each in a session and a thread of its own.

    Returns once dbt's process has sent End and all calls have returned. If that process is gone,
    cancels the calls, lets them clean up for GRACE_S, and removes the folder of the socket.
    """
    try:
        with Client(address, "AF_UNIX") as channel:
            driver = _Driver(channel, partial(open_session, channel.recv()))
            try:
                while not isinstance(message := channel.recv(), End):
                    driver.receive(message)
            except (EOFError, OSError):
                for number in driver.calls:
                    driver.receive(Cancel(number))
                driver.wait(GRACE_S)
                raise
            driver.wait(None)
    except (EOFError, OSError):
        shutil.rmtree(Path(address).parent, ignore_errors=True)  # dbt's process is gone


def _open_session(settings: SessionSettings) -> SparkSession:
    spark = SparkSession._instantiatedSession
    if spark is None:
        quieten_pyspark()
        spark = SparkSession.builder.getOrCreate()  # with the settings of spark-submit
        ship_executor_code()
    return configure(spark.newSession(), settings.parameters, settings.executor_timeout)


@dataclass
class _Run:
    """A call, and its session once it is open."""

    request: Request
    thread: threading.Thread | None = None
    session: SparkSession | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)


class _Driver:
    def __init__(self, channel: Connection, open_session: Callable[[], SparkSession]) -> None:
        self._channel = channel
        self._open_session = open_session
        self.calls: dict[int, _Run] = {}
        self._send_lock = threading.Lock()
        self._open_lock = threading.Lock()

    def receive(self, message: Request | Cancel) -> None:
        """Starts or cancels a call. A repeated Cancel helps: planning can't be interrupted."""
        if isinstance(message, Request):
            run = self.calls[message.number] = _Run(message)
            # A daemon thread, which Python does not wait for when it exits.
            run.thread = threading.Thread(target=self._run, args=(run,), daemon=True)
            run.thread.start()
        elif message.number in self.calls:  # otherwise, the call has not arrived
            run = self.calls[message.number]
            run.cancelled.set()
            if run.session is not None:
                with suppress(Exception):  # of a Spark that is gone
                    run.session.interruptAll()

    def wait(self, seconds: float | None) -> None:
        """Waits until all calls have returned, at most this many seconds."""
        until = None if seconds is None else time.monotonic() + seconds
        for run in self.calls.values():
            if run.thread is not None:
                run.thread.join(None if until is None else max(0.0, until - time.monotonic()))

    def _run(self, run: _Run) -> None:
        number, call = run.request.number, run.request.call
        try:
            session = run.session = self._session_for(run.request.subject)
            if run.cancelled.is_set():
                raise SparkJobError(CANCELLED)
            result = call.run(
                session, run.cancelled, lambda event: self._send(Notification(number, event))
            )
            self._send(Result(number, result))
        except Exception as exc:  # noqa: BLE001 - dbt's process raises it
            self._send(_failed(number, exc))

    def _session_for(self, subject: str) -> SparkSession:
        try:
            with self._open_lock:  # only the first call starts Spark
                return self._open_session()
        except SPARK_FAILURES as exc:
            text = f"{subject}: the job's Spark could not start: {readable(exc)}"
            raise SparkJobError(text) from exc

    def _send(self, message: Result | Failure | Notification) -> None:
        with self._send_lock, suppress(OSError):  # of a process that is gone
            self._channel.send(message)


def _failed(number: int, exc: Exception) -> Failure:
    error = readable(exc) if isinstance(exc, SPARK_FAILURES) else exc
    trace = traceback.format_exc()
    if isinstance(error, Mzs3Error):
        return Failure(number, str(error), trace, of_spark=isinstance(error, SparkJobError))
    text = f"{type(exc).__name__}: {exc}. This is a defect, please report it with the log of dbt"
    return Failure(number, text, trace, of_spark=False)
