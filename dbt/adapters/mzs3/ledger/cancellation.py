"""Whether a user has cancelled a run on a source."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from dbt.adapters.mzs3.errors import SourceError


@dataclass
class Cancellation:
    """Whether the run was cancelled, and what that means for one source.

    `event` may be set from any thread. `committing` says that the commit has begun: whether it
    took effect is then for the metastore to say.
    """

    source: str
    event: threading.Event = field(default_factory=threading.Event)
    committing: bool = False

    @property
    def requested(self) -> bool:
        """Whether the user has cancelled."""
        return self.event.is_set()

    def check(self) -> None:
        """Raises SourceError once the user has cancelled."""
        if self.requested:
            raise self.error()

    def wait(self, seconds: float) -> None:
        """Waits so long, less if the user cancels: then it raises SourceError."""
        self.event.wait(seconds)
        self.check()

    def error(self) -> SourceError:
        """What a cancelled ingestion ends in."""
        if self.committing:
            return SourceError(
                f"{self.source}: cancelled while it was committing; either all of this run is "
                "committed or nothing is, and the next run takes what is missing"
            )
        return SourceError(f"{self.source}: cancelled; nothing of this run is committed")
