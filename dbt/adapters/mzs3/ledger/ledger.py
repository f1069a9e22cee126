"""The ledger of a source: an ordinary table of what happened to every object, by epoch.

An epoch is one pass over new objects, or one run-operation. Each of its phases is a partition:

- `plan`: the objects that the epoch ingests.
- `commit`: the epoch's rows are visible. As it is one partition, all become visible in one step.
- `failed`: the objects that stopped the epoch.
- `void`: the epoch was given up, and its objects may be planned again. The run that writes `void`
  first adds an empty commit to the epoch: if the epoch's own run is still active, that run can no
  longer commit.
- `closing`: a partition without events, added before that empty commit. It shows the next run that
  the epoch must be closed again, if the run that closes the epoch dies before it writes `void`.
- `note`: events that need no commit: objects that are skipped or wait for a later run, and
  decisions of run-operations.
- `snapshot`: what compaction derives from the epochs up to this one.
- `due`, written before the commit: the objects are to be tagged, moved or deleted after it.
  `done`: the result for each object. `listing`: when all keys were last listed, for a source that
  does not list them in each run. These three change nothing that is visible.

No epoch has the number 0. Its only partition is empty; the partition's name has a digest, which
records that the source had nothing new (see `source/idle.py`).

A run stages events in a folder that nobody reads, checks the lock, and only then adds the folder
as a partition, in one step. If it loses the lock between the check and its commit, the next holder
reads the run's plan, and closes the epoch or finds it committed. Adding a partition is a
compare-and-set: if two runs add the same partition, the second is refused, and can read whose
files the partition has. So each commit is either that of the epoch's own run, or empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.ledger.epochs import Epochs, current_epochs, latest, next_epoch
from dbt.adapters.mzs3.ledger.events import (
    LEDGER_COLUMNS,
    OBJECT_COLUMNS,
    Phase,
    State,
    events_sql,
    objects_sql,
    valid_events_sql,
)
from dbt.adapters.mzs3.ledger.lease import NOTHING_COMMITTED, SourceLock
from dbt.adapters.mzs3.ledger.ledger_table import ledger_table, phase_sql
from dbt.adapters.mzs3.ledger.relations import SourceRelations
from dbt.adapters.mzs3.ledger.rows_table import rows_table
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES
from dbt.adapters.mzs3.spark.frames import first_row
from dbt.adapters.mzs3.spark.sql import quote_identifier, quote_literal

LISTING_IS_LOST = "what it committed stays, and its full listing is not on record"
# The number, which no epoch has, under which `write_idle` records that a source had nothing new.
_IDLE_EPOCH = "0"


class Ledger:
    """The ledger of a source as it was when this object was created, plus this object's writes.

    `lock` is the source's lock, which this run holds, or None if the ledger is only read. Once the
    lock is lost, writing raises SourceError. Only `write_due` and `write_done` still write, but
    what they write is never read then; `write_idle` needs no lock.
    """

    def __init__(
        self, spark: SparkSession, relations: SourceRelations, lock: SourceLock | None = None
    ) -> None:
        self.spark = spark
        self.relations = relations
        self._lock = lock
        self.table = ledger_table(spark, relations)
        self._epochs = self.table.epochs()
        self._idle = self._epochs.pop(_IDLE_EPOCH, set())

    def require_lock(self, outcome: str = NOTHING_COMMITTED) -> None:
        """Raises SourceError with the run's `outcome` if the lock is lost."""
        if self._lock is not None:
            self._lock.require(outcome)

    def epochs(self) -> Epochs:
        """The phases of every epoch."""
        return {epoch: set(phases) for epoch, phases in self._epochs.items()}

    def was_idle(self, digest: str) -> bool:
        """Whether `write_idle` has recorded this digest."""
        return f"{Phase.IDLE}{digest}" in self._idle

    def write_idle(self, digest: str) -> None:
        """Records that the source had nothing new, in place of an earlier record of this kind.

        Needs no lock: the digest covers everything that the record depends on. Does nothing in a
        format with transactions, where the record would be an event. Raises Spark's errors, also
        if another run has just recorded the same digest.
        """
        if self.relations.has_transactions:
            return
        phase = f"{Phase.IDLE}{digest}"
        self.table.add(_IDLE_EPOCH, phase, self.table.empty_folder())
        if self._idle:
            self.table.drop([(_IDLE_EPOCH, earlier) for earlier in sorted(self._idle)])

    def plan(self, epoch: str) -> DataFrame:
        """The objects that the epoch ingests, with OBJECT_COLUMNS and `hides`."""
        return self.partition(epoch, Phase.PLAN).select(*OBJECT_COLUMNS, "hides")

    def objects(self, *, one_task: bool = False) -> DataFrame:
        """The state of every object, with the columns of `objects_sql`. With `one_task`, a single
        task computes it, without a shuffle."""
        valid = self._valid()
        if one_task:
            valid = f"(SELECT /*+ COALESCE(1) */ * FROM {valid})"
        return self.spark.sql(objects_sql(valid, has_void=False))

    def events(self) -> DataFrame:
        """The events of epochs that are not void, with the columns of `valid_events_sql`."""
        return self.spark.sql(valid_events_sql(self._valid(), has_void=False))

    def voids(self) -> DataFrame:
        """The void epochs, each once, in the column `epoch`."""
        events = events_sql(self._in(current_epochs(self._epochs)))
        return self.spark.sql(f"SELECT DISTINCT epoch FROM ({events}) AS e WHERE phase = 'void'")

    def partition(self, epoch: str, phase: str) -> DataFrame:
        """The events of one phase of an epoch, as stored in the table."""
        return self.spark.table(self.relations.ledger).where(phase_sql(epoch, phase))

    def sample(self, one_in: int) -> list[str]:
        """About one in `one_in` of the recorded objects. Each call chooses the same objects."""
        events = self.spark.sql(f"SELECT object FROM {self._valid()} WHERE object IS NOT NULL")
        sampled = events.where(F.pmod(F.xxhash64("object"), F.lit(one_in)) == 0)
        return [row["object"] for row in sampled.distinct().collect()]

    def last_listing(self, listed: str) -> int | None:
        """When the last full listing of this location and pattern began, in seconds since 1970."""
        if (epoch := latest(Phase.LISTING, self._epochs)) is None:
            return None
        listings = self.partition(epoch, Phase.LISTING).where(F.col("object") == listed)
        began: int | None = first_row(listings.agg(F.unix_timestamp(F.max("at"))))[0]
        return began

    def write_listing(self, listed: str, at: int) -> None:
        """Records that a full listing of this location and pattern began at `at`. Call this once
        the listed objects are committed, or recorded as waiting."""
        event = self.spark.range(1).select(F.lit(listed).alias("object"))
        self._write(
            next_epoch(self._epochs),
            Phase.LISTING,
            event,
            outcome=LISTING_IS_LOST,
            state=F.lit(Phase.LISTING),
            at=F.timestamp_seconds(F.lit(at)),
        )

    def write_note(self, events: DataFrame) -> None:
        """Records events that need no commit, as a new epoch; NULL in `at` means now.

        The events have the columns of objects, `state`, and any of `rows`, `rejects`, `error`,
        `hides` and `at`.
        """
        now = F.current_timestamp()
        at = F.coalesce(F.col("at"), now) if "at" in events.columns else now
        self._write(next_epoch(self._epochs), Phase.NOTE, events, at=at)

    def write_plan(self, epoch: str, objects: DataFrame, *, fits_driver: bool = False) -> None:
        """Records which objects the epoch ingests, before any of them is read.

        `fits_driver`: the objects fit into the driver's memory. Raises SourceError if another run
        has planned an epoch with the same number.
        """
        self._write(epoch, Phase.PLAN, objects, fits_driver=fits_driver, state=F.lit(State.LISTED))

    def write_commit(self, epoch: str, objects: DataFrame, *, fits_driver: bool = False) -> None:
        """Commits the epoch: its rows become visible, and the rows that they replace are hidden.

        `objects` is the plan with `rows`, `rejects`, and `error`: why an object was skipped, or
        NULL. A skipped object hides no rows. `fits_driver`: the objects fit into the driver's
        memory.
        """
        is_fetched = F.col("error").isNull()
        self._write(
            epoch,
            Phase.COMMIT,
            objects,
            fits_driver=fits_driver,
            state=F.when(is_fetched, State.FETCHED).otherwise(State.SKIPPED),
            hides=F.when(is_fetched, F.col("hides")),
        )

    def write_failed(self, epoch: str, objects: DataFrame, error: Column) -> None:
        """Ends the epoch with an error of these objects; none of its rows become visible."""
        self.require_lock()
        planned = Phase.PLAN in self._epochs.get(epoch, ())
        state = F.lit(State.FAILED)
        self._write(epoch, Phase.FAILED, objects, outcome=None, state=state, error=error)
        if planned:
            # The user should see why the objects failed, not why the clean-up did.
            with suppress(*SPARK_FAILURES):
                rows_table(self.spark, self.relations).register_partition(epoch)

    def write_void(self, epoch: str) -> None:
        """Declares the epoch void: whatever its own run still writes does not count.

        If that run has committed the epoch in the meantime, the epoch stays committed.
        """
        self.require_lock()
        self.table.close(epoch, Phase.CLOSING)
        if not self.table.close(epoch, Phase.COMMIT):
            self._epochs.setdefault(epoch, set()).add(Phase.COMMIT)
            self.drop([(epoch, Phase.CLOSING)])
            return
        rows_table(self.spark, self.relations).register_partition(epoch)
        self._write_mark(epoch, Phase.VOID)

    def write_due(self, epoch: str) -> None:
        """Records that the epoch's objects are to be tagged, moved or deleted after its commit."""
        self._write_mark(epoch, Phase.DUE)

    def write_done(self, epoch: str, objects: DataFrame) -> None:
        """Records the result for each of the epoch's objects, in columns state and error."""
        self._write(epoch, Phase.DONE, objects, outcome=None)

    def write_snapshot(self, epoch: str, events: DataFrame) -> None:
        """Records the events that sum up all epochs up to this one; older epochs may be dropped.

        The events have all columns of the ledger.
        """
        self._write(epoch, Phase.SNAPSHOT, events, at=F.col("at"))

    def drop(self, partitions: list[tuple[str, str]]) -> None:
        """Drops these partitions, pairs of epoch and phase. Safe to repeat."""
        if partitions:
            self.table.drop(partitions)
            for epoch, phase in partitions:
                self._epochs.get(epoch, set()).discard(phase)
            self._epochs = {epoch: phases for epoch, phases in self._epochs.items() if phases}

    def _valid(self) -> str:
        """A subquery for the ledger, without epochs that are void or replaced by the snapshot.

        A snapshot lacks the epochs that were void, and none of its epochs becomes void later.
        """
        snapshot = latest(Phase.SNAPSHOT, self._epochs)
        current = current_epochs(self._epochs)
        return self._in([e for e in current if Phase.VOID not in self._epochs[e] or e == snapshot])

    def _in(self, epochs: list[str]) -> str:
        """A subquery that names these epochs, so that Spark lists no files of other epochs."""
        snapshot = latest(Phase.SNAPSHOT, self._epochs)
        listed = ", ".join(quote_literal(epoch) for epoch in epochs if epoch != snapshot)
        condition = f"epoch IN ({listed})" if listed else "false"
        if snapshot in epochs:
            condition += f" OR epoch = {quote_literal(snapshot)} AND phase = '{Phase.SNAPSHOT}'"
        return f"(SELECT * FROM {self.relations.ledger} WHERE {condition})"

    def _write_mark(self, epoch: str, phase: str) -> None:
        """Adds the phase with an event copied from the plan: only the phase itself matters."""
        self._write(epoch, phase, self.plan(epoch).limit(1), outcome=None, state=F.lit(phase))

    def _write(
        self,
        epoch: str,
        phase: str,
        events: DataFrame,
        *,
        outcome: str | None = NOTHING_COMMITTED,
        fits_driver: bool = False,
        **given: Column,
    ) -> None:
        """Adds the phase. Columns in `given` replace those of `events`; missing columns are NULL.

        Raises SourceError with the run's `outcome` if the lock is lost or another run has added
        the phase. If `outcome` is None, raises it in neither case.
        """
        # Even if writing fails half way, no other epoch gets this number.
        self._epochs.setdefault(epoch, set()).add(phase)
        folder = self.table.stage(epoch, with_all_columns(events, given), fits_driver=fits_driver)
        if outcome is not None:
            self.require_lock(outcome)
        if not self.table.publish(epoch, phase, folder) and outcome is not None:
            raise SourceError(
                f"{self.relations.display_name()}: another run took the source over while this "
                f"one was at work on it; {outcome}. Run again"
            )


def with_all_columns(events: DataFrame, given: Mapping[str, Column]) -> DataFrame:
    """The events with all columns of the ledger; those in `given` replace those of `events`."""
    present = {name: F.col(quote_identifier(name)) for name in events.columns}
    values = {**present, "at": F.current_timestamp(), **given}
    columns = (
        values.get(name, F.lit(None)).cast(data_type).alias(name)
        for name, data_type in LEDGER_COLUMNS.items()
    )
    return events.select(*columns)
