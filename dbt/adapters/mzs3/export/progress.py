"""The progress of an export: a thread receives it from workers, and reports it."""

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

from dbt.adapters.mzs3.text import bytes_text, duration_text, grouped
from dbt.adapters.mzs3.upload.progress import ProgressTarget

EVERY_S = 5.0
_MAX_DATAGRAM = 1024
_BAR = 16


def background_thread(
    work: Callable[..., None], *arguments: object, name: str
) -> threading.Thread:
    """A daemon thread, not started yet, that has the context of this one and is named after it."""
    return threading.Thread(
        target=contextvars.copy_context().run,
        args=(work, *arguments),
        name=f"{threading.current_thread().name} ({name})",
        daemon=True,
    )


class Progress:
    """Reports the progress of an export every EVERY_S seconds while its `with` block runs.

    `address` is `engine.driver_address`, `target` what workers need; it is None if they can't
    reach this process: then `tasks` counts the tasks that Spark has run, and all. No method
    raises; the block's end closes the thread and its sockets.
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
        """Note that all files are uploaded, and the commit begins."""
        self._committing = True

    def begin_again(self) -> None:
        """Note that nothing of what was uploaded is kept."""
        self._totals.begin_again()

    def __enter__(self) -> Progress:
        # Where the machine has no socket or thread to give, an export reports no progress.
        with contextlib.suppress(OSError, RuntimeError):
            selector = self._open.enter_context(selectors.DefaultSelector())
            listener = self._listen()
            if listener is not None:
                selector.register(listener, selectors.EVENT_READ, listener)
            wake, woken = map(self._open.enter_context, socket.socketpair())
            selector.register(woken, selectors.EVENT_READ, None)
            thread = background_thread(self._run, selector, name="progress")
            thread.start()
            # Called first, in reverse order: a byte ends the thread, as a forked process may keep
            # the socket open.
            self._open.callback(thread.join)
            self._open.callback(wake.send, b".")
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _listen(self) -> socket.socket | None:
        """A socket on the driver's address, or None if there can't be one."""
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
        due = time.monotonic() + EVERY_S
        while True:
            for key, _ in selector.select(max(0.0, due - time.monotonic())):
                if key.data is None:
                    return
                with contextlib.suppress(OSError):
                    self._totals.accept(key.data.recv(_MAX_DATAGRAM))
            if time.monotonic() >= due:
                seen = self._totals.snapshot() if self.target else self._by_tasks()
                if self._committing:
                    seen = replace(seen, phase="committing")
                with contextlib.suppress(Exception):
                    self._tell(seen)
                due = time.monotonic() + EVERY_S

    def _by_tasks(self) -> Snapshot:
        done, tasks = self._tasks() or (None, None)
        return Snapshot("running", parts=self._totals.parts, tasks_done=done, tasks=tasks)


@dataclass(frozen=True)
class Snapshot:
    """The progress at a moment; with counts of tasks alone where workers can't reach the driver.

    `phase` is `computing` until a part reports, `writing` until the last file is uploaded, then
    `committing`; `running` where there are no other counts than of tasks. Parts without rows never
    report. `bytes_per_second` is the mean since the first part reported.
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
        """The text of the log after so many seconds."""
        counts = {
            "computing": "Spark is computing the rows, no part has reported yet",
            "committing": "all files are uploaded and being committed",
            "running": f"Spark has run {self.tasks_done or 0:,} of {grouped(self.tasks, 'task')}"
            if self.tasks
            else "COPY is running",
            "writing": f"{self.parts_done} of {grouped(self.parts, 'part')}, "
            f"{grouped(self.rows or 0, 'row')}, {bytes_text(self.bytes or 0)}",
        }[self.phase]
        if self.phase == "writing" and self.bytes_per_second is not None:
            counts = f"{counts}, {bytes_text(self.bytes_per_second)}/s"
        return f"{counts}, {duration_text(elapsed)}"

    @property
    def bar(self) -> str:
        """The share of parts that are done, for a terminal; empty in all phases but `writing`."""
        full = _BAR * (self.parts_done or 0) // self.parts
        return f"[{'#' * full}{'-' * (_BAR - full)}] " if self.phase == "writing" else ""


@dataclass
class _Part:
    attempt: str
    rows: int
    bytes: int
    done: bool


class ProgressTotals:
    """The latest message of each of `parts`; anything else that arrives is ignored."""

    def __init__(self, token: str, parts: int) -> None:
        self.token = token
        self.parts = parts
        self._began: float | None = None
        self._latest: dict[int, _Part] = {}

    def accept(self, datagram: bytes) -> None:
        """Add a worker's message; one of a new attempt replaces those of an earlier one."""
        if self.token.encode() not in datagram:  # cheap, for datagrams that are not a task's
            return
        try:
            message = json.loads(datagram)
            if not hmac.compare_digest(str(message["token"]).encode(), self.token.encode()):
                return
            numbers = [message[key] for key in ("part", "rows", "bytes")]
            if any(type(number) is not int or number < 0 for number in numbers):
                return
            part, rows, size = numbers
            latest = _Part(str(message["attempt"]), rows, size, done=message["done"] is True)
        except (ValueError, TypeError, LookupError, RecursionError):
            return
        if part >= self.parts:
            return
        before = self._latest.get(part)
        # Datagrams may overtake each other; within an attempt, counts only grow.
        same = before is not None and before.attempt == latest.attempt
        if before and same and (before.done or before.rows > latest.rows):
            return
        self._latest[part] = latest
        if self._began is None:
            self._began = time.monotonic()

    def begin_again(self) -> None:
        """Forget all messages, as all parts are written anew; from any thread.

        Late messages of earlier tasks count until their part is written again.
        """
        self._latest = {}  # not cleared: another thread may be adding it up
        self._began = None

    def snapshot(self) -> Snapshot:
        """The totals so far."""
        parts, began = self._latest.values(), self._began
        size = sum(part.bytes for part in parts)
        seconds = 0.0 if began is None else time.monotonic() - began
        return Snapshot(
            phase="writing" if parts else "computing",
            parts_done=sum(part.done for part in parts),
            parts=self.parts,
            rows=sum(part.rows for part in parts),
            bytes=size,
            bytes_per_second=size / seconds if seconds >= 1 else None,
        )
