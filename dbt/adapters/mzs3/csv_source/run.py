"""A run on one source: where it runs, what is declared, who is told of it and who stops it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dbt.adapters.mzs3.csv_source.cancellation import Cancellation
from dbt.adapters.mzs3.csv_source.report import NO_LOG, SourceLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt.adapters.mzs3.aws.connection import AwsConnection
    from dbt.adapters.mzs3.csv_source.definition import SourceDefinition

OnStep = Callable[[str], None]
"""Told the name of each step as it begins (`begin plan`) and ends (`end plan`)."""


class SourceRun:
    """What all steps of a run on one source share. Once `cancelled` is set, no step begins."""

    def __init__(
        self,
        spark: SparkSession,
        definition: SourceDefinition,
        connection: AwsConnection,
        *,
        cancelled: threading.Event | None = None,
        on_step: OnStep = lambda step: None,
        log: SourceLog = NO_LOG,
    ) -> None:
        self.spark = spark
        self.definition = definition
        self.connection = connection
        self.cancellation = Cancellation(definition.name, cancelled or threading.Event())
        self.on_step = on_step
        self.log = log

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """A step of the run, which is told of. Raises SourceError if the user has cancelled."""
        self.on_step(f"begin {name}")
        self.cancellation.check()
        yield
        self.on_step(f"end {name}")
