"""One pass over a source's new objects: plan, fetch, commit, in steps that can each be the last.

Killed at any point and run again, no row is lost or doubled: rows are visible only through the
commit record of their epoch, written in one step after all of them; and an epoch without one is
declared void before a new listing takes its objects under a new number.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import NoReturn

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.formats.read.object_error import GONE, HEADER, NOT_READ, OF_RUN
from dbt.adapters.mzs3.ledger.compaction import compact, is_due
from dbt.adapters.mzs3.ledger.epochs import epochs_due, next_epoch, next_plan, unfinished_epochs
from dbt.adapters.mzs3.ledger.events import OBJECT_COLUMNS
from dbt.adapters.mzs3.ledger.ledger import LISTING_IS_LOST, Ledger
from dbt.adapters.mzs3.source.after_commit import act_on_committed, require_conditional_delete
from dbt.adapters.mzs3.source.config import AfterAction
from dbt.adapters.mzs3.source.executor.fetch import FetchSpec
from dbt.adapters.mzs3.source.fetch import EpochRows
from dbt.adapters.mzs3.source.first_run import header_hint
from dbt.adapters.mzs3.source.listing.plan import EpochPlan, new_objects
from dbt.adapters.mzs3.source.listing.scan import listing_name, object_frame
from dbt.adapters.mzs3.source.listing.throttle import Limits, run_limits
from dbt.adapters.mzs3.source.queue.announced import look_again, note_what_is_gone
from dbt.adapters.mzs3.source.queue.inbox import Inbox
from dbt.adapters.mzs3.source.report import IngestReport, objects_hint
from dbt.adapters.mzs3.source.run import SourceRun
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, executor_error, readable


@dataclass(frozen=True)
class Pass:
    """A pass of a run; the lock that the ledger has is held for all of it. It takes
    `least` objects at least, if there are so many."""

    run: SourceRun
    spec: FetchSpec
    ledger: Ledger
    inbox: Inbox | None = None
    least: int = 1

    def ingest(self) -> IngestReport:
        """Ingests what is listed or announced and not committed, if there is any, in one epoch.

        Raises SourceError for an object in error: what was committed before stays visible, the
        ledger shows the object as failed, and the next run lists anew.
        """
        run, ledger = self.run, self.ledger
        epochs = ledger.epochs()
        for dead in unfinished_epochs(epochs):
            # Its plan counts no more: the source may be declared otherwise since, and objects
            # may be corrected or removed.
            with run.step("void"):
                ledger.write_void(dead)
        if is_due(epochs):
            with run.step("compact"):
                compact(ledger)
        told = None
        if (inbox := self.inbox) is not None:
            with run.step("receive"):
                inbox.receive()
                look_again(run, ledger, inbox)
                note_what_is_gone(run, ledger, inbox)
            told = object_frame(run, inbox.found)
        run.cancellation.check()
        with new_objects(run, ledger, told, least=self.least) as batch:
            if batch.refusal is not None:
                self._refuse(batch, batch.refusal)
            deletes = self._acts_after_commit and run.definition.discovery.empties_location
            if deletes and (batch.objects or epochs_due(ledger.epochs())):
                with run.step("try store"):
                    require_conditional_delete(run)
            report = self._epoch(batch)
        if batch.full_since is not None:
            # Not before all that the listing found is on record: else a key could be missed.
            with run.step("listing"):
                ledger.require_lock(LISTING_IS_LOST)
                ledger.write_listing(listing_name(run.definition), batch.full_since)
        if inbox is not None:
            # All that was announced is committed by now, or known, or in the ledger as waiting;
            # unless somebody else has dropped it meanwhile.
            with run.step("acknowledge"):
                ledger.require_lock(
                    "what it committed stays, and its messages go back to the queue"
                )
                inbox.acknowledge()
        if self._acts_after_commit:
            with run.step("after commit"):
                self._after_commit()
        return report

    @property
    def _acts_after_commit(self) -> bool:
        return self.run.definition.discovery.after_commit is not AfterAction.KEEP

    def _epoch(self, batch: EpochPlan) -> IngestReport:
        # Under a number of their own: they stay if what is planned below comes to be void.
        self._note(batch.notes)
        definition = self.run.definition
        report = self._take(batch) if batch.objects else IngestReport(definition.name)
        if not batch.waiting_objects:
            return report
        limits = Limits()
        # The rows are committed, and there is more to do for them: for a number that is shown and
        # no more, no run fails.
        with suppress(*SPARK_FAILURES):
            # With what this epoch has shown of the time that it takes.
            limits = run_limits(self.ledger, definition.intake)
        return replace(
            report,
            waiting_objects=batch.waiting_objects,
            waiting_bytes=batch.waiting_bytes,
            waiting_runs=limits.runs(batch.waiting_objects, batch.waiting_bytes),
        )

    def _take(self, batch: EpochPlan) -> IngestReport:
        run, ledger = self.run, self.ledger
        epoch = next_plan(ledger.epochs())
        with run.step("plan"):
            ledger.write_plan(epoch, batch.frame, few=batch.is_here)
        plan = batch.frame if batch.is_here else ledger.plan(epoch)
        rows = EpochRows(ledger, self.spec, epoch, plan, batch.objects, batch.bytes)
        try:
            with run.step("fetch"):
                written = rows.write()
        except SPARK_FAILURES as exc:
            error = executor_error(exc)
            if error is None:
                raise
            text, wrong = error.message, error.s3_object
            self._record_failure(rows, text, wrong)
            # What is gone, or was replaced, the next run sees for itself.
            if wrong is not None and error.cause not in (NOT_READ, OF_RUN, GONE):
                hint = objects_hint("skip_s3_objects", run.definition.name, [wrong])
                text += f"; or go on without it after: {hint}"
            if error.cause == HEADER:
                text += header_hint(self.spec, wrong)
            raise SourceError(text, wrong) from exc
        with run.step("commit"):
            return self._commit(rows, written)

    def _note(self, notes: DataFrame | None) -> None:
        if notes is not None:
            with self.run.step("note"):
                self.ledger.write_note(notes)

    def _refuse(self, batch: EpochPlan, why: str) -> NoReturn:
        self._note(batch.notes)
        if batch.refused is not None:
            with self.run.step("fail"):
                epoch = next_epoch(self.ledger.epochs())
                self.ledger.write_failed(epoch, batch.refused, F.col("error"))
        raise SourceError(why)

    def _commit(self, rows: EpochRows, written: int) -> IngestReport:
        run, ledger = self.run, self.ledger
        if self._acts_after_commit:
            ledger.write_due(rows.epoch)
        with ExitStack() as stack:
            try:
                counted, report = stack.enter_context(rows.counted(written))
            except SourceError as exc:
                self._record_failure(rows, str(exc), exc.s3_object)
                raise
            ledger.require_lock()
            run.cancellation.check()
            run.cancellation.committing = True
            ledger.write_commit(rows.epoch, counted, few=rows.are_few)
        # Who took it meanwhile may have closed this epoch, and dropped by now what closed it.
        ledger.require_lock("its commit may not count, as s3_source_status shows")
        return report

    def _record_failure(self, rows: EpochRows, message: str, s3_object: str | None) -> None:
        """Puts the failure on record, as one of this object, or of none if it was not planned."""
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
            # What is committed is committed, whatever becomes of the objects.
            run.log.warn(
                f"{run.definition.name}: after_commit failed, and the rows are committed: "
                f"{readable(exc)}. The next run tries again"
            )
