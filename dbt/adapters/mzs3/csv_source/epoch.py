"""One pass over a source's new objects: plan, fetch, commit, in steps that can each be the last.

Killed at any point and run again, no row is lost and none is doubled: rows are visible only
through the commit record of their epoch, which is written in one step after all of them; and an
epoch without one is declared void before a new listing takes its objects under a new number.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, NoReturn, TypeVar

from pyspark.sql import functions as F

from dbt.adapters.mzs3.csv_source.after_commit import act_on_committed, require_conditional_delete
from dbt.adapters.mzs3.csv_source.cancellation import Cancellation
from dbt.adapters.mzs3.csv_source.config.discovery import AfterAction
from dbt.adapters.mzs3.csv_source.executor.fetch import FetchSpec
from dbt.adapters.mzs3.csv_source.executor.object_error import GONE, NOT_READ, OF_RUN
from dbt.adapters.mzs3.csv_source.fetch import Fetched, counted_rows, fetch_rows
from dbt.adapters.mzs3.csv_source.ledger.compaction import compact, is_due
from dbt.adapters.mzs3.csv_source.ledger.events import OBJECT_COLUMNS
from dbt.adapters.mzs3.csv_source.ledger.ledger import (
    LISTING_IS_LOST,
    Ledger,
    epochs_due,
    next_epoch,
    next_plan,
    unfinished_epochs,
)
from dbt.adapters.mzs3.csv_source.ledger.lock import SourceLock
from dbt.adapters.mzs3.csv_source.listing.plan import EpochPlan, Refusal, new_objects
from dbt.adapters.mzs3.csv_source.listing.scan import listing_name
from dbt.adapters.mzs3.csv_source.queue.announced import announced, look_again, note_what_is_gone
from dbt.adapters.mzs3.csv_source.relations import SourceRelations
from dbt.adapters.mzs3.csv_source.report import NO_LOG, SourceLog, objects_hint
from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, executor_error, readable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from dbt.adapters.mzs3.aws.connection import AwsConnection
    from dbt.adapters.mzs3.csv_source.definition import SourceDefinition
    from dbt.adapters.mzs3.csv_source.queue.inbox import Inbox

_T = TypeVar("_T")

OnStep = Callable[[str], None]
"""Told the name of each step as it begins (`begin plan`) and ends (`end plan`)."""


@dataclass(frozen=True)
class EpochTotals(Fetched):
    """What an epoch committed, and what it left for later runs."""

    waiting_objects: int = 0
    waiting_bytes: int = 0


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
    log: SourceLog = NO_LOG

    def run(self) -> EpochTotals:
        """What is listed or announced and not committed is taken, if there is any, in one epoch.

        Raises SourceError for an object in error: what was committed before stays visible, the
        ledger shows the object as failed, and the next run lists anew.
        """
        ledger = Ledger(self.spark, self.relations, self.lock)
        epochs = ledger.epochs()
        for dead in unfinished_epochs(epochs):
            # Its plan counts no more: the source may be declared otherwise since, and objects
            # may be corrected or removed.
            self._step("void", partial(ledger.write_void, dead))
        if is_due(epochs):
            self._step("compact", partial(self._compact, ledger))
        told = self._told(ledger)
        self.cancellation.check()
        with new_objects(self.spark, self.definition, self.connection, ledger, told) as batch:
            if batch.refusal is not None:
                self._refuse(ledger, batch.refusal)
            if self._deletes_objects and (batch.objects or epochs_due(ledger.epochs())):
                self._step(
                    "try store",
                    partial(require_conditional_delete, self.definition, self.connection),
                )
            totals = self._epoch(ledger, batch)
        if (since := batch.full_since) is not None:
            # Not before all that the listing found is on record: else a key could be missed.
            self._step("listing", partial(self._record_listing, ledger, since))
        # All that was announced is committed by now, or known, or in the ledger as waiting.
        if self.inbox is not None:
            self._step("acknowledge", partial(self._acknowledge, self.inbox))
        if self._acts_after_commit:
            self._step("after commit", lambda: self._after_commit(ledger))
        return totals

    @property
    def _acts_after_commit(self) -> bool:
        return self.definition.discovery.after_commit.action is not AfterAction.KEEP

    @property
    def _deletes_objects(self) -> bool:
        return self._acts_after_commit and self.definition.discovery.empties_location

    def _told(self, ledger: Ledger) -> DataFrame | None:
        """The objects that the queue told of and S3 has; None without a queue."""
        if (inbox := self.inbox) is None:
            return None
        self._step("receive", partial(self._receive, ledger, inbox))
        return announced(self.spark, self.definition, inbox)

    def _receive(self, ledger: Ledger, inbox: Inbox) -> None:
        inbox.receive()
        look_again(self.definition, ledger, inbox)
        note_what_is_gone(self.spark, self.definition, ledger, inbox, self.log)

    def _record_listing(self, ledger: Ledger, since: int) -> None:
        self.lock.require(LISTING_IS_LOST)
        ledger.write_listing(next_epoch(ledger.epochs()), listing_name(self.definition), since)

    def _acknowledge(self, inbox: Inbox) -> None:
        # Somebody else may have dropped meanwhile what this run put on record.
        self.lock.require("what it committed stays, and its messages go back to the queue")
        inbox.acknowledge()

    def _after_commit(self, ledger: Ledger) -> None:
        def require_lock() -> None:
            # Who took it over decides by now what becomes of the objects.
            self.lock.require("what it committed stays, and after_commit is left to the next run")

        try:
            act_on_committed(
                self.spark, self.definition, self.connection, ledger, self.log, require_lock
            )
        except SPARK_FAILURES as exc:
            if self.cancellation.requested:
                raise
            # What is committed is committed, whatever becomes of the objects.
            self.log.warn(
                f"{self.definition.name}: after_commit failed, and the rows are committed: "
                f"{readable(exc)}. The next run tries again"
            )

    def _epoch(self, ledger: Ledger, batch: EpochPlan) -> EpochTotals:
        if (notes := batch.notes) is not None:
            # Under a number of their own: they stay if what is planned below comes to be void.
            noted = next_epoch(ledger.epochs())
            self._step("note", lambda: ledger.write_note(noted, notes))
        waiting = {
            "waiting_objects": batch.waiting_objects,
            "waiting_bytes": batch.waiting_bytes,
        }
        if not batch.objects:
            return EpochTotals(**waiting)
        epoch = next_plan(ledger.epochs())
        self._step("plan", lambda: ledger.write_plan(epoch, batch.frame))
        plan = ledger.plan(epoch)
        try:
            written = self._step("fetch", lambda: self._fetch(epoch, plan, batch))
        except SPARK_FAILURES as exc:
            error = executor_error(exc)
            if error is None:
                raise
            named = self._record_failure(ledger, epoch, plan, error.message)
            raise SourceError(f"{error.message}{self._way_out(named, error.cause)}") from exc
        fetched = self._step(
            "commit", lambda: self._commit(ledger, epoch, plan, batch.objects, written)
        )
        return EpochTotals(**asdict(fetched), **waiting)

    def _compact(self, ledger: Ledger) -> None:
        compact(self.spark, self.relations, ledger, require_lock=self.lock.require)

    def _refuse(self, ledger: Ledger, refusal: Refusal) -> NoReturn:
        if (notes := refusal.notes) is not None:
            noted = next_epoch(ledger.epochs())
            self._step("note", lambda: ledger.write_note(noted, notes))
        if (events := refusal.events) is not None:
            epoch = next_epoch(ledger.epochs())
            self._step("fail", lambda: ledger.write_failed(epoch, events, F.col("error")))
        raise SourceError(refusal.text)

    def _fetch(self, epoch: str, plan: DataFrame, batch: EpochPlan) -> int:
        count, size = batch.objects, batch.bytes
        return fetch_rows(
            self.spark,
            self.spec,
            self.relations,
            epoch,
            plan,
            count,
            size,
            require_lock=self.lock.require,
        )

    def _commit(
        self, ledger: Ledger, epoch: str, plan: DataFrame, count: int, rows: int
    ) -> Fetched:
        if self._acts_after_commit:
            ledger.write_due(epoch)
        with ExitStack() as stack:
            counting = counted_rows(
                self.spark, self.spec, self.relations, epoch, plan, count, rows
            )
            try:
                counted, fetched = stack.enter_context(counting)
            except SourceError as exc:
                self._record_failure(ledger, epoch, plan, str(exc))
                raise
            self.lock.require()
            self.cancellation.check()
            self.cancellation.committing = True
            ledger.write_commit(epoch, counted)
        # Who took it meanwhile may have closed this epoch, and dropped by now what closed it.
        self.lock.require("its commit may not count, as s3_source_status shows")
        return fetched

    def _record_failure(
        self, ledger: Ledger, epoch: str, plan: DataFrame, message: str
    ) -> str | None:
        """The failure is in the ledger; the name of its object, None if it is not of one."""
        # The object whose name is in the message; of a.csv and a.csv.gz the longer one.
        named = plan.where(F.contains(F.lit(message), F.col("object")))
        first = named.orderBy(F.length("object").desc()).first()
        if first is None:
            nothing = [F.lit(None).alias(name) for name in OBJECT_COLUMNS]
            ledger.write_failed(epoch, self.spark.range(1).select(*nothing), F.lit(message))
            return None
        failed = plan.where(F.col("object") == first["object"])
        ledger.write_failed(epoch, failed, F.lit(message))
        name: str = first["object"]
        return name

    def _way_out(self, name: str | None, cause: str) -> str:
        # What is gone, or was replaced, the next run sees for itself.
        if name is None or cause in (NOT_READ, OF_RUN, GONE):
            return ""
        hint = objects_hint("skip_s3_objects", self.definition.name, [name])
        return f"; or go on without it after: {hint}"

    def _step(self, name: str, action: Callable[[], _T]) -> _T:
        self.on_step(f"begin {name}")
        self.cancellation.check()
        result = action()
        self.on_step(f"end {name}")
        return result
