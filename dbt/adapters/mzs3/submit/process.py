"""Starts a job of `spark-submit` as a process, sends calls to its driver, and ends it."""

from __future__ import annotations

import itertools
import os
import queue
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

from dbt.adapters.mzs3.errors import Mzs3Error, SparkJobError
from dbt.adapters.mzs3.secrets import hide_secrets
from dbt.adapters.mzs3.spark.cursor import CANCELLED
from dbt.adapters.mzs3.spark.java import java_output, output_hint
from dbt.adapters.mzs3.spark.job import Call, Tell
from dbt.adapters.mzs3.submit.command import PROPERTIES, command, environment
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
from dbt.adapters.mzs3.submit.options import KEY, SubmitOptions
from dbt.adapters.mzs3.text import count_noun

T = TypeVar("T")

_POLL_S = 0.2
# How long to wait until a driver without calls has stopped Spark and exited.
_END_S = 30.0
_TERM_S = 5.0
_LAST_LINES = 20
# Matches lines of stack traces of Java and Python, which are left out of errors.
_FRAME = re.compile(r"\s|Traceback \(most recent call last\)")
# Some systems limit the path of a socket to 104 bytes.
_LONGEST_FOLDER = 90


@dataclass(frozen=True)
class SubmitPlan:
    """How jobs are submitted: the profile's options; more Spark `settings`, which the options
    override; and those of sessions. `secrets` are hidden in the job's log and errors."""

    options: SubmitOptions
    _: KW_ONLY
    settings: Mapping[str, str] = field(repr=False)
    session: SessionSettings
    secrets: Sequence[str] = field(default=(), repr=False)


class Submission:
    """A job of `spark-submit` that runs during the `with` block; thread-safe.

    Its driver is a process on this machine, in its own process group, and exits when this process
    is gone. Raises SparkJobError if there is no `spark-submit`.
    """

    def __init__(self, plan: SubmitPlan) -> None:
        self._plan = plan
        self._outbox: list[Any] = [plan.session]
        self._numbers = itertools.count()
        self._inboxes: dict[int, queue.SimpleQueue[Notification | Result | Failure | None]] = {}
        self._channel: Connection | None = None
        self._is_over = False
        self._lock = threading.Lock()
        self._last_lines: deque[str] = deque(maxlen=_LAST_LINES)

    def __enter__(self) -> Submission:
        self._folder = Path(tempfile.mkdtemp(prefix="mzs3-"))  # which is private
        if len(os.fsencode(self._folder)) > _LONGEST_FOLDER:
            self._folder.rmdir()
            self._folder = Path(tempfile.mkdtemp(prefix="mzs3-", dir="/tmp"))
        try:
            self._start()
        except BaseException:
            shutil.rmtree(self._folder)
            raise
        return self

    def _start(self) -> None:
        options, address = self._plan.options, self._folder / "socket"
        arguments = command(options, self._plan.settings, self._folder, address)
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(address))
        self._server.listen(1)
        self._server.settimeout(_POLL_S)
        self._process = subprocess.Popen(
            arguments,
            env=environment(options),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C only reaches dbt, which then cancels the calls
        )
        self._threads = [
            threading.Thread(target=run, daemon=True) for run in (self._listen, self._keep_log)
        ]
        for thread in self._threads:
            thread.start()

    def run(self, call: Call[T], cancelled: threading.Event, tell: Tell, *, subject: str) -> T:
        """Sends the call to the driver and returns its result; errors name the `subject`.

        Calls `tell` in this thread. Once `cancelled` is set, the driver interrupts the call.
        Raises an Mzs3Error: the call's own, or one that says why the job ended without a result.
        """
        number, inbox = next(self._numbers), queue.SimpleQueue[Any]()
        with self._lock:
            self._inboxes[number] = inbox
            if self._is_over:
                inbox.put(None)
        self._send(Request(number, call, subject))
        timeout = self._plan.options.timeout
        until = time.monotonic() + timeout if timeout else None
        reason: str | None = None
        while True:
            with suppress(queue.Empty):
                message = inbox.get(timeout=_POLL_S)
                if isinstance(message, Notification):
                    tell(message.what)
                    continue
                if isinstance(message, Result):
                    result: T = message.result
                    return result
                raise self._error(message, reason, subject)
            now = time.monotonic()
            if reason is None and (cancelled.is_set() or (until is not None and now >= until)):
                reason = CANCELLED
                if not cancelled.is_set():
                    reason = (
                        f"it did not end in {count_noun(timeout, 'second')}, {KEY}.timeout of the "
                        "profile, its start included, and was ended; give it more time, or make "
                        "less of it at a time"
                    )
                until = now + GRACE_S
                if self._channel is None:
                    self._kill()  # the driver has not connected, and runs no call yet
                else:
                    self._send(Cancel(number))
            elif reason is not None and until is not None and now >= until:
                self._kill()
                until = None

    def cancel(self) -> None:
        """Interrupts all calls; may be repeated."""
        for number in list(self._inboxes):
            self._send(Cancel(number))

    def _error(self, failed: Failure | None, reason: str | None, subject: str) -> Mzs3Error:
        if failed is None:
            return SparkJobError(f"{subject}: {reason or self._how_it_ended()}")
        error = failed.error(self._plan.secrets)
        timed_out = reason not in (None, CANCELLED)
        return SparkJobError(f"{subject}: {reason}\n{error}") if timed_out else error

    def _how_it_ended(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        self._threads[1].join(_TERM_S)
        log = "".join(f"\n  {line}" for line in self._last_lines) or " nothing"
        return (
            f"the job of spark-submit ended without an answer, with exit code "
            f"{self._process.poll()}. The end of its log, of which {output_hint()} has more:{log}"
        )

    def _send(self, message: Request | Cancel | End) -> None:
        with self._lock:
            if self._channel is None:
                self._outbox.append(message)
                return
            with suppress(OSError):  # the driver is gone, which `_listen` handles
                self._channel.send(message)

    def _listen(self) -> None:
        """Puts the driver's messages into the inboxes of their calls, until the driver exits."""
        try:
            channel = self._accepted()
            (self._folder / PROPERTIES).unlink()  # secrets may be in it
            with self._lock:
                for message in self._outbox:
                    channel.send(message)
                self._channel = channel
            while True:
                message = channel.recv()
                self._inboxes[message.number].put(message)
        except (EOFError, OSError):
            pass
        except Exception as exc:  # noqa: BLE001 - a message that this Python can't unpickle
            self._last_lines.append(f"its answer can't be read: {type(exc).__name__}: {exc}")
            channel.close()  # the driver then exits
        finally:
            with self._lock:
                self._is_over = True
                for inbox in self._inboxes.values():
                    inbox.put(None)

    def _accepted(self) -> Connection:
        """Waits for the driver's connection. Raises EOFError if its process ends before."""
        while True:
            with suppress(TimeoutError):
                accepted, _ = self._server.accept()
                accepted.setblocking(True)
                return Connection(accepted.detach())
            if self._process.poll() is not None:
                raise EOFError

    def _keep_log(self) -> None:
        assert self._process.stdout is not None
        with java_output() as file, self._process.stdout as output:
            for line in output:
                masked = hide_secrets(self._plan.secrets, line.decode(errors="replace"))
                if not _FRAME.match(masked):
                    self._last_lines.append(masked.rstrip())
                if not isinstance(file, int | None):
                    with suppress(OSError):
                        file.write(masked.encode())
                        file.flush()

    def _kill(self) -> None:
        for number, seconds in ((signal.SIGTERM, _TERM_S), (signal.SIGKILL, None)):
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.cancel()  # after Ctrl-C in the thread that waits for a result, calls still run
        self._send(End())
        try:
            if self._channel is not None:
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(_END_S)
            if self._process.poll() is None or not self._is_over:
                self._kill()
        finally:
            self._server.close()
            for thread in self._threads:
                thread.join(_TERM_S)
            if self._channel is not None:
                self._channel.close()
            shutil.rmtree(self._folder, ignore_errors=True)
