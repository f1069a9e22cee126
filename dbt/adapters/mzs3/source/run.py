"""A run on one source: where it runs, what is declared, who is told of it and who stops it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass

from pyspark.sql import SparkSession

from dbt.adapters.mzs3.ledger.cancellation import Cancellation
from dbt.adapters.mzs3.source.definition import SourceDefinition
from dbt.adapters.mzs3.source.report import NO_LOG, SourceLog
from dbt.adapters.mzs3.store.connection import AwsConnection


@dataclass(eq=False)
class SourceRun:
    """What all steps of a run on one source share. Once `cancelled` is set, no step begins."""

    spark: SparkSession
    definition: SourceDefinition
    connection: AwsConnection
    _: KW_ONLY
    cancelled: threading.Event | None = None
    log: SourceLog = NO_LOG

    def __post_init__(self) -> None:
        self.cancellation = Cancellation(self.definition.name, self.cancelled or threading.Event())

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """A step of the run, whose begin and end are lines of the log for debugging. Raises
        SourceError if the user has cancelled."""
        self.debug(f"begin {name}")
        self.cancellation.check()
        yield
        self.debug(f"end {name}")

    def debug(self, text: str) -> None:
        """Writes a line to the log for debugging."""
        self.log.debug(f"{self.definition.name}: {text}")
