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

    `rows`, `bytes` and `files` are what the run made visible; None where it made nothing. The
    `error` of a run that succeeded says what it left of the export before it.
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
    def left_old_files(self) -> bool:
        """Whether it succeeded, and could not remove all of what it replaced."""
        return self.status == "ok" and self.error is not None

    @property
    def is_noteworthy(self) -> bool:
        """Whether there is more to say of it than that it succeeded."""
        return self.status != "ok" or self.left_old_files

    @property
    def seconds(self) -> float | None:
        """How long it took; None where its end is not known, never negative."""
        if self.ended is None:
            return None
        return max(0.0, (self.ended - self.started).total_seconds())
