"""What workers have told the driver of an export, added up."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dbt.adapters.mzs3.events import Phase


@dataclass(frozen=True)
class Snapshot:
    """What is known of an export at a moment; no counts where nothing can be known."""

    phase: Phase
    parts_done: int | None
    rows: int | None
    bytes: int | None
    bytes_per_second: float | None


@dataclass
class _Part:
    attempt: str
    rows: int
    bytes: int
    done: bool


class Tally:
    """The latest word of each part. Whatever else arrives changes nothing, and never raises.

    Holds at most one entry for each of `parts`.
    """

    def __init__(self, token: str, parts: int, clock: Callable[[], float]) -> None:
        self.token = token
        self._parts = parts
        self._clock = clock
        self._began: float | None = None
        self._latest: dict[int, _Part] = {}

    def accept(self, datagram: bytes) -> None:
        """Take a worker's message; one of a new attempt replaces what an earlier one told."""
        if self.token.encode() not in datagram:  # cheap, for what strangers send
            return
        try:
            message = json.loads(datagram)
            if not hmac.compare_digest(str(message["token"]).encode(), self.token.encode()):
                return
            part, told = _read(message)
        except (ValueError, TypeError, LookupError, RecursionError):
            return
        if not 0 <= part < self._parts:
            return
        known = self._latest.get(part)
        # Datagrams may overtake each other; within an attempt, counts only grow.
        if known and known.attempt == told.attempt and (known.done or known.rows > told.rows):
            return
        self._latest[part] = told
        if self._began is None:
            self._began = self._clock()

    def begin_again(self) -> None:
        """Forget what was told, as all parts are written anew; from any thread.

        What tasks of the attempt before still say counts until their part is written again.
        """
        self._latest = {}  # not cleared, as another thread may be adding it up
        self._began = None

    def snapshot(self) -> Snapshot:
        """The totals of what was told so far."""
        parts = self._latest.values()
        size = sum(part.bytes for part in parts)
        began = self._began
        seconds = 0.0 if began is None else self._clock() - began
        return Snapshot(
            phase="writing" if parts else "computing",
            parts_done=sum(part.done for part in parts),
            rows=sum(part.rows for part in parts),
            bytes=size,
            bytes_per_second=size / seconds if seconds >= 1 else None,
        )


def _read(message: Any) -> tuple[int, _Part]:
    numbers = [message[key] for key in ("part", "rows", "bytes")]
    if any(type(number) is not int or number < 0 for number in numbers):
        raise ValueError("not a count")
    part, rows, size = numbers
    return part, _Part(str(message["attempt"]), rows, size, done=message["done"] is True)
