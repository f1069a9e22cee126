"""Reports the progress of an export, which a thread receives from the workers."""

from __future__ import annotations

import contextlib
import contextvars
import hmac
import json
import secrets
import selectors
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from dbt.adapters.mzs3.text import bytes_text, count_with_commas, duration_text
from dbt.adapters.mzs3.upload.progress import ProgressTarget

EVERY_S = 5.0
_MAX_DATAGRAM = 1024
_BAR = 16  # characters


def background_thread(
    work: Callable[..., None], *arguments: object, name: str
) -> threading.Thread:
    """A daemon thread, not started yet, with this thread's context variables and its name."""
    return threading.Thread(
        target=contextvars.copy_context().run,
        args=(work, *arguments),
        name=f"{threading.current_thread().name} ({name})",
        daemon=True,
    )


class Progress:
    """Reports the progress of an export every EVERY_S seconds while its `with` block runs.

    `address` is the result of `engine.driver_address`. Workers send messages to `target`; if it is
    None, they can't reach this process. Progress is then the result of `tasks`: how many tasks
    Spark has run, and how many there are. No method raises; the end of the block ends the thread.
    """

    def __init__(
        self,
        tell: Callable[[Snapshot], None],
        parts: int,
        address: tuple[str, str] | None,
        tasks: Callable[[], tuple[int, int] | None] = lambda: None,
    ) -> None:
        self._tell = tell
        self._address = address
        self._tasks = tasks
        self._totals = ProgressTotals(secrets.token_hex(16), parts)
        self._committing = False
        self._open = contextlib.ExitStack()
        self.target: ProgressTarget | None = None

    def note_committing(self) -> None:
        """Sets the phase to `committing`: all files are uploaded."""
        self._committing = True

    def begin_again(self) -> None:
        """Resets the totals, as all parts are uploaded again."""
        self._totals.begin_again()

    def __enter__(self) -> Progress:
        # If no socket or thread can be created, the export reports no progress.
        with contextlib.suppress(OSError, RuntimeError):
            selector = self._open.enter_context(selectors.DefaultSelector())
            listener = self._listen()
            if listener is not None:
                selector.register(listener, selectors.EVENT_READ, listener)
            sender, receiver = map(self._open.enter_context, socket.socketpair())
            selector.register(receiver, selectors.EVENT_READ, None)
            thread = background_thread(self._run, selector, name="progress")
            thread.start()
            # At exit, callbacks run in reverse order: a byte ends the thread, then it is joined.
            # Closing the socket would not end it, as a forked process may keep the socket open.
            self._open.callback(thread.join)
            self._open.callback(sender.send, b".")
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _listen(self) -> socket.socket | None:
        """Opens a socket on the driver's address, and sets `target`; None if that fails."""
        if self._address is None:
            return None
        host, bind = self._address
        bind = bind.removeprefix("[").removesuffix("]")
        try:
            family, *_, where = socket.getaddrinfo(bind, 0, type=socket.SOCK_DGRAM)[0]
            listener = self._open.enter_context(socket.socket(family, socket.SOCK_DGRAM))
            listener.setblocking(False)
            listener.bind(where)
        except (OSError, ValueError):
            return None
        port = listener.getsockname()[1]
        self.target = ProgressTarget(host, port, self._totals.token)
        return listener

    def _run(self, selector: selectors.BaseSelector) -> None:
        next_report = time.monotonic() + EVERY_S
        while True:
            for key, _ in selector.select(max(0.0, next_report - time.monotonic())):
                if key.data is None:
                    return
                with contextlib.suppress(OSError):
                    self._totals.accept(key.data.recv(_MAX_DATAGRAM))
            if time.monotonic() >= next_report:
                progress = self._totals.snapshot() if self.target else self._task_counts()
                if self._committing:
                    progress = replace(progress, phase="committing")
                with contextlib.suppress(Exception):
                    self._tell(progress)
                next_report = time.monotonic() + EVERY_S

    def _task_counts(self) -> Snapshot:
        done, tasks = self._tasks() or (None, None)
        return Snapshot("running", parts=self._totals.parts, tasks_done=done, tasks=tasks)


@dataclass(frozen=True)
class Snapshot:
    """The progress at a moment; only counts of tasks if workers can't reach the driver.

    `phase` is `computing` until the first report, `writing` until the last file is uploaded, then
    `committing`; `running` if there are only counts of tasks. Parts without rows do not report.
    `bytes_per_second` is the mean since the first report.
    """

    phase: str
    parts_done: int | None = None
    parts: int = 1
    rows: int | None = None
    bytes: int | None = None
    bytes_per_second: float | None = None
    tasks_done: int | None = None
    tasks: int | None = None

    def text(self, elapsed: float) -> str:
        """The text for the log, `elapsed` seconds after the start."""
        counts = {
            "computing": "Spark is computing the rows, no part has reported yet",
            "committing": "all files are uploaded and being committed",
            "running": f"Spark has run {self.tasks_done or 0:,} of "
            f"{count_with_commas(self.tasks, 'task')}"
            if self.tasks
            else "COPY is running",
            "writing": f"{self.parts_done} of {count_with_commas(self.parts, 'part')}, "
            f"{count_with_commas(self.rows or 0, 'row')}, {bytes_text(self.bytes or 0)}",
        }[self.phase]
        if self.phase == "writing" and self.bytes_per_second is not None:
            counts = f"{counts}, {bytes_text(self.bytes_per_second)}/s"
        return f"{counts}, {duration_text(elapsed)}"

    @property
    def bar(self) -> str:
        """A progress bar for a terminal: the share of finished parts; empty unless `writing`."""
        full = _BAR * (self.parts_done or 0) // self.parts
        return f"[{'#' * full}{'-' * (_BAR - full)}] " if self.phase == "writing" else ""


@dataclass
class _Message:
    attempt: str
    rows: int
    bytes: int
    done: bool


class ProgressTotals:
    """Adds up the latest message about each part; ignores datagrams that are no messages."""

    def __init__(self, token: str, parts: int) -> None:
        self.token = token
        self.parts = parts
        self._first_report_at: float | None = None
        self._latest: dict[int, _Message] = {}

    def accept(self, datagram: bytes) -> None:
        """Records a worker's message about a part, instead of earlier ones of any task attempt."""
        if self.token.encode() not in datagram:  # a cheap test, before parsing the JSON
            return
        try:
            message = json.loads(datagram)
            if not hmac.compare_digest(str(message["token"]).encode(), self.token.encode()):
                return
            numbers = [message[key] for key in ("part", "rows", "bytes")]
            if any(type(number) is not int or number < 0 for number in numbers):
                return
            part, rows, size = numbers
            latest = _Message(str(message["attempt"]), rows, size, done=message["done"] is True)
        except (ValueError, TypeError, LookupError, RecursionError):
            return
        if part >= self.parts:
            return
        previous = self._latest.get(part)
        # Datagrams may arrive out of order; within a task attempt, counts only grow.
        is_same = previous is not None and previous.attempt == latest.attempt
        if previous and is_same and (previous.done or previous.rows > latest.rows):
            return
        self._latest[part] = latest
        if self._first_report_at is None:
            self._first_report_at = time.monotonic()

    def begin_again(self) -> None:
        """Discards all messages, as all parts are written again; thread-safe.

        Late messages of the earlier tasks are counted until their part reports again.
        """
        self._latest = {}  # not `clear()`: another thread may be reading it
        self._first_report_at = None

    def snapshot(self) -> Snapshot:
        """The totals so far."""
        parts, start = self._latest.values(), self._first_report_at
        size = sum(part.bytes for part in parts)
        seconds = 0.0 if start is None else time.monotonic() - start
        return Snapshot(
            phase="writing" if parts else "computing",
            parts_done=sum(part.done for part in parts),
            parts=self.parts,
            rows=sum(part.rows for part in parts),
            bytes=size,
            bytes_per_second=size / seconds if seconds >= 1 else None,
        )
