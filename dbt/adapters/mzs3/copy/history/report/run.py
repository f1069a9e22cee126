"""One run of an export, as the report sees it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Status = Literal["ok", "error", "cancelled"]
STATUSES: tuple[Status, ...] = ("ok", "error", "cancelled")
WORDS: dict[Status, str] = {"ok": "succeeded", "error": "failed", "cancelled": "cancelled"}


@dataclass(frozen=True)
class ReportedRun:
    """One run of a model; `started` and `ended` know their time zone. Any text is untrusted.

    `rows`, `bytes` and `files` are what the run made visible; None where it made nothing.
    """

    model: str
    location: str
    started: datetime
    ended: datetime | None
    status: Status
    rows: int | None = None
    bytes: int | None = None
    files: int | None = None
    error: str | None = None
    invocation_id: str | None = None
    format: str | None = None
    on_existing: str | None = None
    as_of: int | None = None

    @property
    def seconds(self) -> float | None:
        """How long it took; None where its end is not known, never negative."""
        if self.ended is None:
            return None
        return max(0.0, (self.ended - self.started).total_seconds())
