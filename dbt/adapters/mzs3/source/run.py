"""A run on one source: where it runs, what is declared, who is told of it and who stops it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field

from pyspark.sql import SparkSession

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.source.definition import SourceDefinition
from dbt.adapters.mzs3.source.report import NO_LOG, SourceLog
from dbt.adapters.mzs3.store.connection import AwsConnection

OnStep = Callable[[str], None]
"""Told the name of each step as it begins (`begin plan`) and ends (`end plan`)."""


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


@dataclass(eq=False)
class SourceRun:
    """What all steps of a run on one source share. Once `cancelled` is set, no step begins."""

    spark: SparkSession
    definition: SourceDefinition
    connection: AwsConnection
    _: KW_ONLY
    cancelled: threading.Event | None = None
    on_step: OnStep = lambda step: None
    log: SourceLog = NO_LOG

    def __post_init__(self) -> None:
        self.cancellation = Cancellation(self.definition.name, self.cancelled or threading.Event())

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """A step of the run, which is told of. Raises SourceError if the user has cancelled."""
        self.on_step(f"begin {name}")
        self.cancellation.check()
        yield
        self.on_step(f"end {name}")
