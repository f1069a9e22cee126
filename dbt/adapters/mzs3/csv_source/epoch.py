"""One pass over a source's new objects: plan, fetch, commit, in steps that can each be the last.

Killed at any point and run again, no row is lost and none is doubled: rows are visible only
through the commit record of their epoch, which is written in one step after all of them; and an
epoch without one is declared void before a new listing takes its objects under a new number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from dbt.adapters.mzs3.csv_source.after_commit import act_on_committed
from dbt.adapters.mzs3.csv_source.cancel import Cancellation
from dbt.adapters.mzs3.csv_source.config.discovery import Action
from dbt.adapters.mzs3.csv_source.executor.fetch import FetchSpec
from dbt.adapters.mzs3.csv_source.fetch import counted_rows, fetch_rows
from dbt.adapters.mzs3.csv_source.ledger import Ledger, next_epoch, unfinished_epoch
from dbt.adapters.mzs3.csv_source.listing import Batch, new_objects
from dbt.adapters.mzs3.csv_source.lock import SourceLock
from dbt.adapters.mzs3.csv_source.queue.settle import announced, settle
from dbt.adapters.mzs3.csv_source.relations import SourceRelations
from dbt.adapters.mzs3.csv_source.voice import SILENT, Voice
from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.spark.failure import executor_message
from dbt.adapters.mzs3.spark.readable import readable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from dbt.adapters.mzs3.aws.connection import AwsConnection
    from dbt.adapters.mzs3.csv_source.definition import SourceDefinition
    from dbt.adapters.mzs3.csv_source.queue.inbox import Inbox

SPARK_FAILURES = (PySparkException, Py4JError)

OnStep = Callable[[str], None]
"""Told the name of each step as it begins (`begin plan`) and ends (`end plan`)."""


@dataclass(frozen=True)
class Totals:
    """What an epoch committed."""

    objects: int = 0
    rows: int = 0
    rejected: int = 0


@dataclass(frozen=True)
class Pass:
    """Everything a pass needs; the lock is held for all of it."""

    spark: SparkSession
    definition: SourceDefinition
    connection: AwsConnection
    relations: SourceRelations
    spec: FetchSpec
    lock: SourceLock
    cancellation: Cancellation
    on_step: OnStep
    inbox: Inbox | None = None
    voice: Voice = SILENT

    def run(self) -> Totals:
        """What is listed or announced and not committed is taken, if there is any, in one epoch.

        Raises SourceError for an object in error: what was committed before stays visible, the
        ledger shows the object as failed, and the next run lists anew.
        """
        ledger = Ledger(self.spark, self.relations)
        dead = unfinished_epoch(ledger.epochs())
        if dead is not None:
            # Its plan counts no more: the source may be declared otherwise since, and objects
            # may be corrected or removed.
            self._step("void", lambda: ledger.write_void(dead))
        self.cancellation.check()
        with new_objects(
            self.spark, self.definition, self.connection, ledger, self._announced()
        ) as batch:
            totals = self._epoch(ledger, batch) if batch.objects else Totals()
        if self.inbox is not None:
            self._step("acknowledge", partial(self._settle, ledger, self.inbox))
        if self.definition.discovery.after_commit.action is not Action.KEEP:
            self._step("after commit", partial(self._act, ledger))
        return totals

    def _announced(self) -> DataFrame | None:
        if self.inbox is None:
            return None
        return announced(self.spark, self.inbox, self.definition.location.bucket)

    def _settle(self, ledger: Ledger, inbox: Inbox) -> None:
        settle(self.spark, self.definition, ledger, inbox, self.voice)

    def _act(self, ledger: Ledger) -> None:
        try:
            act_on_committed(self.spark, self.definition, self.connection, ledger, self.voice)
        except SPARK_FAILURES as exc:
            if self.cancellation.requested:
                raise
            # What is committed is committed, whatever becomes of the objects.
            self.voice.warn(
                f"{self.definition.name}: after_commit failed, and the rows are committed: "
                f"{readable(exc)}. The next run tries again"
            )

    def _epoch(self, ledger: Ledger, batch: Batch) -> Totals:
        epoch = next_epoch(ledger.epochs())
        self._step("plan", lambda: ledger.write_plan(epoch, batch.frame))
        plan = ledger.plan(epoch)
        try:
            self._step("fetch", lambda: self._fetch(epoch, plan, batch))
        except SPARK_FAILURES as exc:
            message = executor_message(exc)
            if message is None:
                raise
            self._record_failure(ledger, epoch, plan, message)
            raise SourceError(message) from exc
        self._step("commit", lambda: self._commit(ledger, epoch, plan))
        return Totals(*ledger.totals(epoch))

    def _fetch(self, epoch: str, plan: DataFrame, batch: Batch) -> None:
        fetch_rows(self.spark, self.spec, self.relations, epoch, plan, batch)

    def _commit(self, ledger: Ledger, epoch: str, plan: DataFrame) -> None:
        source = self.definition.name
        if self.definition.discovery.after_commit.action is not Action.KEEP:
            ledger.write_due(epoch)
        with counted_rows(self.spark, source, self.relations, epoch, plan) as counted:
            self.lock.require()
            self.cancellation.check()
            self.cancellation.committing = True
            ledger.write_commit(epoch, counted)

    def _record_failure(self, ledger: Ledger, epoch: str, plan: DataFrame, message: str) -> None:
        # The object whose name is in the message; of a.csv and a.csv.gz the longer one.
        named = plan.where(F.contains(F.lit(message), F.col("object")))
        ledger.write_failed(epoch, named.orderBy(F.length("object").desc()).limit(1), message)

    def _step(self, name: str, action: Callable[[], None]) -> None:
        self.on_step(f"begin {name}")
        self.cancellation.check()
        action()
        self.on_step(f"end {name}")
