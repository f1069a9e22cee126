"""A run on one source: its session, its definition, its log and its cancellation.

Also what run-operations share with it: the session's settings, the lock, readable Spark errors.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass

from pyspark.sql import SparkSession

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.ledger.epochs import unfinished_epochs
from dbt.adapters.mzs3.ledger.lease import UNKNOWN, Cancellation, LockTable, Owner, SourceLock
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.source.options import SourceDefinition
from dbt.adapters.mzs3.source.tables import existing_relations, exists_in_spark
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, readable
from dbt.adapters.mzs3.spark.job import Tell
from dbt.adapters.mzs3.spark.settings import settings
from dbt.adapters.mzs3.store.connection import AwsConnection

OWN_SETTINGS = {
    # Column names come from objects: Spark must not change or interpret them in SQL.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    # A column of a SELECT may use those before it.
    "spark.sql.lateralColumnAlias.enableImplicitResolution": "true",
    # Persisted frames are often small, but have as many tasks as a shuffle by default.
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
}


@dataclass(eq=False)
class SourceRun:
    """What all steps of a run on one source share. Once `cancelled` is set, no step begins.

    `tell` is called with each line of the run's log and its level: `warn` for problems that a user
    should look into, `say` for information, and `debug` for each step.
    """

    spark: SparkSession
    definition: SourceDefinition
    connection: AwsConnection
    _: KW_ONLY
    cancelled: threading.Event | None = None
    tell: Tell = lambda line: None

    def __post_init__(self) -> None:
        self.cancellation = Cancellation(self.definition.name, self.cancelled or threading.Event())

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Logs a step's begin and end. Raises SourceError if the run is cancelled."""
        self.debug(f"begin {name}")
        self.cancellation.check()
        yield
        self.debug(f"end {name}")

    def warn(self, text: str) -> None:
        """Logs a warning, whose text names the source."""
        self.tell(("warn", text))

    def debug(self, text: str) -> None:
        """Logs a line for debugging, after the name of the source."""
        self.tell(("debug", f"{self.definition.name}: {text}"))


def void_unfinished(run: SourceRun, ledger: Ledger) -> None:
    """Declares void the epochs that dead runs have planned, under the source's lock."""
    for dead in unfinished_epochs(ledger.epochs()):
        # Its plan may be outdated, as the source's declaration or the objects may have changed.
        with run.step("void"):
            ledger.write_void(dead)


@contextmanager
def source_settings(spark: SparkSession, source: str) -> Iterator[None]:
    """Applies `OWN_SETTINGS` inside the block, and raises Spark's errors as SourceError."""
    try:
        with settings(spark, OWN_SETTINGS):
            yield
    except SPARK_FAILURES as exc:
        raise SourceError(f"{source}: {readable(exc)}") from exc


@contextmanager
def locked_source(spark: SparkSession, definition: SourceDefinition) -> Iterator[SourceLock]:
    """`source_settings` with the source's lock held. Raises SourceError if the source has no
    table, or its tables are another source's."""
    name = definition.name
    with source_settings(spark, name):
        if not exists_in_spark(spark, definition):
            raise SourceError(f"{name}: it was never ingested; there is nothing to change")
        existing_relations(spark, definition)  # raises if the lock is another source's
        with SourceLock(spark, definition.relations, name) as lock:
            yield lock


def unlock(spark: SparkSession, definition: SourceDefinition) -> Owner | None:
    """Removes the source's lock, so that its holder commits nothing more. Returns the holder.

    Raises SourceError if the relation with the lock's name is not a lock.
    """
    table = LockTable(spark, definition.relations)
    with source_settings(spark, definition.name):
        existing_relations(spark, definition)  # raises for another source's lock
        holder = table.holder()
        if holder is None:
            return None
        if holder == UNKNOWN:
            raise SourceError(
                f"{definition.name}: {definition.relations.display_name('__lock')} is no lock "
                "that a run has taken. Drop it, or give the source another schema or identifier"
            )
        table.drop_if_held_by(holder.token)
    return holder.owner
