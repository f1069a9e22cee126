"""Ingests one source, from its definition to the report of what is new.

A run takes the lock, pins the definition, lists or receives what is new, plans an epoch, fetches
its objects into rows that are not visible yet, and commits them. Then it tags, moves or deletes
the objects, if that is declared.

If a run is killed at any point and repeated, no row is lost or doubled: rows are visible only
through the commit record of their epoch, which is written in one step after all of them. An epoch
without a commit record is declared void before a new listing puts its objects into another epoch.
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import NoReturn

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.mzs3.errors import ExecutorError, Mzs3Error, S3Error, SourceError
from dbt.adapters.mzs3.formats.read.object_error import GONE, HEADER, NOT_READ, OF_RUN
from dbt.adapters.mzs3.ledger.compaction import compact, compaction_is_due
from dbt.adapters.mzs3.ledger.epochs import (
    epochs_awaiting_after_commit,
    next_epoch,
    next_plan,
)
from dbt.adapters.mzs3.ledger.events import OBJECT_COLUMNS
from dbt.adapters.mzs3.ledger.lease import WAIT_S, SourceLock
from dbt.adapters.mzs3.ledger.ledger import LISTING_IS_LOST, Ledger
from dbt.adapters.mzs3.source.after_commit import act_on_committed, require_conditional_delete
from dbt.adapters.mzs3.source.discovery import AfterAction
from dbt.adapters.mzs3.source.executor.fetch import FetchSpec, HeaderFrom
from dbt.adapters.mzs3.source.fetch import EpochRows, header_hint, least_objects
from dbt.adapters.mzs3.source.idle import is_idle
from dbt.adapters.mzs3.source.listing.plan import (
    Limits,
    Refusal,
    TakeObjects,
    new_objects,
    run_limits,
)
from dbt.adapters.mzs3.source.listing.scan import listing_name, object_frame
from dbt.adapters.mzs3.source.new_columns import (
    add_columns,
    adopt,
    wider_definition,
    write_widened,
)
from dbt.adapters.mzs3.source.options import SourceDefinition
from dbt.adapters.mzs3.source.pinning import Pin, pin, purify_now
from dbt.adapters.mzs3.source.queue.inbox import Inbox, open_inbox
from dbt.adapters.mzs3.source.report import IngestReport, objects_hint
from dbt.adapters.mzs3.source.reset import reset_source
from dbt.adapters.mzs3.source.run import OWN_SETTINGS, SourceRun, void_unfinished
from dbt.adapters.mzs3.source.tables import make_schema, refused_name
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, executor_error, readable
from dbt.adapters.mzs3.spark.job import Tell
from dbt.adapters.mzs3.spark.settings import settings
from dbt.adapters.mzs3.store.connection import AwsConnection


def ingest(
    spark: SparkSession,
    definition: SourceDefinition,
    connection: AwsConnection,
    *,
    create_only: bool = False,
    afresh: bool = False,
    wait_s: float = WAIT_S,
    cancelled: threading.Event | None = None,
    tell: Tell = lambda line: None,
) -> IngestReport:
    """Ingests every matching object that is not ingested yet, exactly once.

    Creates the source's schema and relations if they are missing, and with `create_only` nothing
    else. With `afresh`, drops all that was ingested before. No other thread may use `spark`
    meanwhile: some of its settings are changed until the end. Waits up to `wait_s` seconds for
    another run on the same source. `cancelled` and `tell` are those of `SourceRun`. Raises an
    Mzs3Error; what was committed before stays.
    """
    started = time.monotonic()
    name, relations = definition.name, definition.relations
    run = SourceRun(spark, definition, connection, cancelled=cancelled, tell=tell)
    stop = run.cancellation
    try:
        with settings(spark, OWN_SETTINGS):
            stop.check()
            if not (create_only or afresh) and is_idle(run):
                return IngestReport(name, seconds=time.monotonic() - started)
            stop.check()
            make_schema(spark, definition)
            with (
                SourceLock(spark, relations, name, wait_s=wait_s, cancellation=stop) as lock,
                open_inbox(run) as inbox,
            ):
                if afresh:
                    purify_now(run, inbox)  # raises before anything is dropped
                    with run.step("reset"):
                        reset_source(spark, definition, lock)
                with run.step("create"):
                    pinned = pin(run, inbox, lock)
                report = IngestReport(name)
                if not create_only:
                    spec = fetch_spec(run, pinned)
                    least = least_objects(spec)
                    report = Pass(run, spec, pinned.ledger, inbox, least, pinned).ingest()
                run.debug("begin unlock")
    except SPARK_FAILURES as exc:
        if stop.requested:
            raise stop.error() from exc
        raise SourceError(f"{name}: {refused_name(exc, definition) or readable(exc)}") from exc
    except S3Error as exc:
        raise SourceError(f"{name}: {exc}") from exc
    run.debug("end unlock")
    return replace(report, seconds=time.monotonic() - started)


def fetch_spec(run: SourceRun, pin: Pin) -> FetchSpec:
    """What tasks need to read the source's objects by the pinned definition."""
    definition, pinned = run.definition, pin.definition
    return FetchSpec(
        connection=run.connection,
        location=definition.location,
        source=definition.name,
        header=pinned.header,
        columns=pinned.fetched(),
        dialect=definition.dialect,
        compression=definition.compression,
        reading=definition.reading,
        format=definition.format,
        header_from=HeaderFrom(pin.is_first, definition.header is True, pinned.origin),
    )


@dataclass(frozen=True)
class Pass:
    """A pass of a run, all of it under the ledger's lock. It ingests at least `least` objects, if
    there are that many. Without a `pin`, the definition can't be widened."""

    run: SourceRun
    spec: FetchSpec
    ledger: Ledger
    inbox: Inbox | None = None
    least: int = 1
    pin: Pin | None = None

    def ingest(self) -> IngestReport:
        """Ingests the objects that are listed or announced and not committed yet, in one epoch.

        Raises SourceError for an object in error: what was committed before stays visible, the
        ledger shows the object as failed, and the next run lists anew.
        """
        run, ledger, inbox = self.run, self.ledger, self.inbox
        epochs = ledger.epochs()
        void_unfinished(run, ledger)
        if compaction_is_due(epochs):
            with run.step("compact"):
                compact(ledger)
        announced = None
        if inbox is not None:
            with run.step("receive"):
                inbox.receive(ledger)
                inbox.note_gone(ledger)
            announced = object_frame(run, inbox.present_objects)
        run.cancellation.check()
        with new_objects(run, ledger, announced, least=self.least) as plan:
            if isinstance(plan, Refusal):
                self._refuse(plan)
            deletes = self.acts_after_commit and run.definition.after_commit.empties_location
            if deletes and (plan.objects or epochs_awaiting_after_commit(ledger.epochs())):
                with run.step("try store"):
                    require_conditional_delete(run)
            report = self._epoch(plan)
        if plan.full_since is not None:
            # Only now that the ledger has all that the listing found: else a key could be missed.
            with run.step("listing"):
                ledger.require_lock(LISTING_IS_LOST)
                ledger.write_listing(listing_name(run.definition), plan.full_since)
        if inbox is not None:
            # All announced objects are committed by now, known, or waiting in the ledger. The lock
            # shows that no other run has dropped that since.
            with run.step("acknowledge"):
                ledger.require_lock(
                    "what it committed stays, and its messages go back to the queue"
                )
                inbox.acknowledge()
        if self.acts_after_commit:
            with run.step("after commit"):
                self._after_commit()
        return report

    @property
    def acts_after_commit(self) -> bool:
        """Whether objects are tagged, moved or deleted once their rows are committed."""
        return self.run.definition.after_commit.action is not AfterAction.KEEP

    def _epoch(self, plan: TakeObjects) -> IngestReport:
        # Notes get their own epoch: they stay if the epoch that is planned below becomes void.
        self._note(plan.notes)
        definition = self.run.definition
        report = self._take(plan) if plan.objects else IngestReport(definition.name)
        if not plan.waiting_objects:
            return report
        limits = Limits()
        # The rows are committed: a failed estimate is not an error.
        with suppress(*SPARK_FAILURES):
            # Reads the ledger anew, for the time that this epoch took.
            limits = run_limits(self.ledger, definition.intake)
        return replace(
            report,
            waiting_objects=plan.waiting_objects,
            waiting_bytes=plan.waiting_bytes,
            waiting_runs=limits.runs(plan.waiting_objects, plan.waiting_bytes),
        )

    def _take(self, plan: TakeObjects) -> IngestReport:
        run, ledger = self.run, self.ledger
        epoch = next_plan(ledger.epochs())
        with run.step("plan"):
            ledger.write_plan(epoch, plan.frame, fits_driver=plan.on_driver)
        frame = plan.frame if plan.on_driver else ledger.plan(epoch)
        rows = EpochRows(ledger, self.spec, epoch, frame, plan.objects, plan.bytes)
        pin = self.pin
        while True:
            try:
                with run.step("fetch"):
                    written = rows.write()
                break
            except SPARK_FAILURES as exc:
                error = executor_error(exc)
                if error is None:
                    raise
                if (wider := self._widened(pin, rows, error)) is None:
                    raise self._failure(rows, error) from exc
                pin, rows = wider, replace(rows, spec=fetch_spec(run, wider))
        with run.step("commit"):
            return self._commit(rows, written, pin)

    def _widened(self, pin: Pin | None, rows: EpochRows, error: ExecutorError) -> Pin | None:
        """The pin with the new columns of the object of the error; None if it brings none."""
        if pin is None:
            return None
        try:
            wider = wider_definition(self.run, pin.definition, error, rows)
        except Mzs3Error as exc:
            self.record_failure(rows, str(exc), error.s3_object)
            raise
        if wider is None:
            return None
        if self.ledger.relations.has_transactions:
            self.ledger.require_lock()
            # The columns have to be there to be written.
            write_widened(self.run, self.ledger, rows.epoch, wider)
            add_columns(self.run, self.ledger, wider)
        return replace(pin, definition=wider)

    def _failure(self, rows: EpochRows, error: ExecutorError) -> SourceError:
        """Records that the epoch failed, and returns the error with what to do."""
        text, wrong = error.message, error.s3_object
        self.record_failure(rows, text, wrong)
        # An object that is gone or was replaced needs no decision: the next run lists anew.
        if wrong is not None and error.cause not in (NOT_READ, OF_RUN, GONE):
            hint = objects_hint("skip_s3_objects", self.run.definition.name, [wrong])
            text += f"; or go on without it after: {hint}"
        if error.cause == HEADER:
            text += header_hint(self.spec, wrong)
        return SourceError(text, wrong)

    def _note(self, notes: DataFrame | None) -> None:
        if notes is not None:
            with self.run.step("note"):
                self.ledger.write_note(notes)

    def _refuse(self, refusal: Refusal) -> NoReturn:
        self._note(refusal.notes)
        if refusal.failed is not None:
            with self.run.step("fail"):
                epoch = next_epoch(self.ledger.epochs())
                self.ledger.write_failed(epoch, refusal.failed, F.col("error"))
        raise SourceError(refusal.error)

    def _commit(self, rows: EpochRows, written: int, pin: Pin | None) -> IngestReport:
        run, ledger = self.run, self.ledger
        if self.acts_after_commit:
            ledger.write_due(rows.epoch)
        with ExitStack() as stack:
            try:
                counted, report = stack.enter_context(rows.counted(written))
            except SourceError as exc:
                self.record_failure(rows, str(exc), exc.s3_object)
                raise
            ledger.require_lock()
            run.cancellation.check()
            if pin is not None and pin is not self.pin:
                write_widened(run, ledger, rows.epoch, pin.definition)
            run.cancellation.committing = True
            ledger.write_commit(rows.epoch, counted, fits_driver=rows.are_few)
        # A run that took the lock meanwhile may have voided this epoch and dropped its commit.
        ledger.require_lock("its commit may not count, as s3_source_status shows")
        if pin is not None and pin is not self.pin:
            adopt(run, ledger, rows.epoch, pin.definition)
        return report

    def record_failure(self, rows: EpochRows, message: str, s3_object: str | None) -> None:
        """Writes the failure to the ledger: of this object, or of none if it was not planned."""
        failed = rows.plan.where(F.col("object") == F.lit(s3_object))
        if s3_object is None or failed.isEmpty():
            nothing = [F.lit(None).alias(name) for name in OBJECT_COLUMNS]
            failed = self.run.spark.range(1).select(*nothing)
        self.ledger.write_failed(rows.epoch, failed, F.lit(message))

    def _after_commit(self) -> None:
        run = self.run
        try:
            act_on_committed(run, self.ledger)
        except SPARK_FAILURES as exc:
            if run.cancellation.requested:
                raise
            # Only a warning, as the rows are committed.
            run.warn(
                f"{run.definition.name}: after_commit failed, and the rows are committed: "
                f"{readable(exc)}. The next run tries again"
            )
