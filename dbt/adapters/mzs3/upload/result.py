"""What a job returns that has written files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WriteResult:
    """A committed export, or a shard's batch: its files are visible by way of the `manifest`."""

    rows: int
    location: str
    manifest: str
    files: int
    bytes: int
    as_of: int
