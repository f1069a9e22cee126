"""Reports the progress of a task to the driver, in UDP datagrams, which may be lost."""

from __future__ import annotations

import contextlib
import json
import socket
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

_EVERY_S = 0.5
# A host may have IPv4 and IPv6 addresses. The driver listens on one; messages go to all.
_ADDRESSES = 4


@dataclass(frozen=True)
class ProgressTarget:
    """Where the driver listens (IPv6 may be in brackets), and a secret that messages contain."""

    host: str
    port: int
    token: str = field(repr=False)


class ProgressReporter:
    """Counts what a task has written, and reports it to the driver every _EVERY_S; never raises.

    No socket stays open between messages, as a task that fails would not close it.
    """

    def __init__(self, target: ProgressTarget | None, part: int) -> None:
        self._target = target
        self._part = part
        # Distinguishes messages of this task attempt from late messages of an earlier attempt.
        self._attempt = uuid.uuid4().hex[:8]
        self._sent_at: float | None = None
        self._addresses: list[tuple[socket.AddressFamily, Any]] | None = None
        self.rows = 0
        self.bytes = 0

    def add(self, rows: int, written: int) -> None:
        """Adds to the totals, and reports them if _EVERY_S have passed since the last report."""
        self.rows += rows
        self.bytes += written
        now = time.monotonic()
        if self._sent_at is None or now - self._sent_at >= _EVERY_S:
            self._sent_at = now
            self._send(done=False)

    def finish(self) -> None:
        """Reports that the part is done."""
        self._send(done=True)

    def _send(self, *, done: bool) -> None:
        if self._target is None:
            return
        message = {
            "token": self._target.token,
            "part": self._part,
            "attempt": self._attempt,
            "rows": self.rows,
            "bytes": self.bytes,
            "done": done,
        }
        if self._addresses is None:
            self._addresses = self._resolve(self._target)
        for family, address in self._addresses:
            with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.sendto(json.dumps(message).encode(), address)

    @staticmethod
    def _resolve(target: ProgressTarget) -> list[tuple[socket.AddressFamily, Any]]:
        host = target.host.removeprefix("[").removesuffix("]")
        try:
            found = socket.getaddrinfo(host, target.port, type=socket.SOCK_DGRAM)
        except (OSError, ValueError):
            return []
        return list(dict.fromkeys((family, address) for family, *_, address in found))[:_ADDRESSES]
