"""What one run did for one source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class IngestReport:
    """Committed by this run: new objects, their rows, rejected records; seconds it took.

    Objects that were skipped, as their header is another, are not among `objects`.
    """

    source: str
    objects: int
    rows: int
    rejected: int
    seconds: float
    skipped: int = 0

    def line(self) -> str:
        """The line of the log: `lake.orders: COPY 1234 (3 new objects, 0 rejected) in 2.1s`."""
        noun = "object" if self.objects == 1 else "objects"
        skipped = f"{self.skipped} skipped, " if self.skipped else ""
        return (
            f"{self.source}: COPY {self.rows} ({self.objects} new {noun}, {skipped}"
            f"{self.rejected} rejected) in {self.seconds:.1f}s"
        )
