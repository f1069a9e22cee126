"""The report that a run of a source logs, and the commands that its errors suggest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from dbt.adapters.mzs3.text import bytes_text, count_noun, operation_command


@dataclass(frozen=True)
class IngestReport:
    """What a run committed: new objects, their rows and rejected records; and the seconds it took.

    `objects` does not count those that were skipped for their header. `waiting_objects` and
    `waiting_bytes` are left for later runs, about `waiting_runs` of them.
    """

    source: str
    objects: int = 0
    rows: int = 0
    rejected: int = 0
    seconds: float = 0.0
    skipped: int = 0
    waiting_objects: int = 0
    waiting_bytes: int = 0
    waiting_runs: int = 1

    def line(self) -> str:
        """The line for the log: `lake.orders: COPY 1234 (3 new objects, 0 rejected) in 2.1s`."""
        new = count_noun(self.objects, "new object")
        skipped = f"{self.skipped} skipped, " if self.skipped else ""
        line = (
            f"{self.source}: COPY {self.rows} ({new}, {skipped}"
            f"{self.rejected} rejected) in {self.seconds:.1f}s"
        )
        if self.waiting_objects:
            text = (
                f"{count_noun(self.waiting_objects, 'object')} ({bytes_text(self.waiting_bytes)})"
            )
            verb = "waits" if self.waiting_objects == 1 else "wait"
            line += f"; {text} {verb}"
            more = self.waiting_runs
            line += " for the next run" if more == 1 else f": about {more} more runs"
        return line


def objects_hint(operation: str, source: str, objects: Sequence[str]) -> str:
    """The command that runs the operation on these objects of a source."""
    listed = ", ".join(json.dumps(name, ensure_ascii=False) for name in objects)
    return operation_command(operation, f"source: {source}, objects: [{listed}]")


def reset_hint(source: str) -> str:
    """The command that drops all that was ingested of a source."""
    return operation_command("reset_s3_source", f"source: {source}, confirm: true")
