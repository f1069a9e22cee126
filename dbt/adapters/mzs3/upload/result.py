"""What a COPY returns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WriteResult:
    """A committed export: everything it names is visible in S3."""

    rows: int
    location: str
    manifest: str
    files: int
    bytes: int
    as_of: int
