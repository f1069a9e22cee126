"""What happened to every object of a source, epoch by epoch, in an ordinary table.

An epoch is one pass over new objects. Its phases are partitions:

- `plan`: the objects that it takes.
- `commit` makes its rows visible. It is one partition, so one step.
- `failed`: the object that stopped it.
- `void` is written for an epoch that came to no end, before its objects are planned anew, by a
  run that has put an empty partition in the place of its commit: so its own run, if it goes on,
  commits nothing.
- `closing`, without any event, is there before that empty partition: if the run that closes dies
  in between, the next one closes anew.
- `note` counts once it is there, whatever becomes of its epoch: what waits for a later run, what
  is passed over, what a run-operation decided.
- `snapshot` is what compaction makes of the epochs up to its own.
- `due` says before the commit that the objects are to be tagged, moved or deleted after it, `done`
  what became of each; `listing` says when all keys were last listed, for a source that does not
  list them each time. These change nothing that is visible.

Beside the epochs, under the number 0, is an empty partition whose name says by a digest that a
source had nothing new: see `idle`.

A run stages events in a folder that nobody reads, checks the lock, and only then makes the folder
a partition, in one step. A run that loses its lock in between has its plan on record: so whoever
takes the lock after that check sees the plan, and closes its commit, or finds it committed. Adding
a partition is a compare-and-set: of two runs that add the same one, the second is refused, and can
see which files the first one's has. So a commit is its own run's, or empty.
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
# The number, which no epoch has, under which a source with nothing new is on record.
_IDLE_EPOCH = "0"


class Ledger:
    """The ledger of one source: a snapshot of the moment it is opened, and what is written by it.

    Only the holder of the source's lock writes; without a lock the ledger is read only. Writing
    what counts, or a failure, raises SourceError once the lock is lost; nothing else that is
    written then is ever read.
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
        """Raises SourceError, with the outcome of the run, once the lock is lost."""
        if self._lock is not None:
            self._lock.require(outcome)

    def epochs(self) -> Epochs:
        """Every epoch with its phases."""
        return {epoch: set(phases) for epoch, phases in self._epochs.items()}

    def was_idle(self, digest: str) -> bool:
        """Whether `write_idle` has put this on record."""
        return f"{Phase.IDLE}{digest}" in self._idle

    def write_idle(self, digest: str) -> None:
        """Records that a source had nothing new, in place of what was on record of that before.

        That needs no lock: the digest is of all that it follows from. Does nothing in a table with
        transactions, where it would be an event. Raises what Spark raises, also where another run
        has just recorded it.
        """
        if self.relations.has_transactions:
            return
        phase = f"{Phase.IDLE}{digest}"
        self.table.add(_IDLE_EPOCH, phase, self.table.empty_folder())
        if self._idle:
            self.table.drop([(_IDLE_EPOCH, before) for before in sorted(self._idle)])

    def plan(self, epoch: str) -> DataFrame:
        """The objects that the epoch takes: object, etag, size, last_modified, hides."""
        return self.partition(epoch, Phase.PLAN).select(*OBJECT_COLUMNS, "hides")

    def objects(self, *, one_task: bool = False) -> DataFrame:
        """The state of every object, with the columns of `objects_sql`; with `one_task` a single
        task computes it, without a shuffle."""
        valid = self._valid()
        if one_task:
            valid = f"(SELECT /*+ COALESCE(1) */ * FROM {valid})"
        return self.spark.sql(objects_sql(valid, has_void=False))

    def events(self) -> DataFrame:
        """The events of epochs that are not void, with the columns of `valid_events_sql`."""
        return self.spark.sql(valid_events_sql(self._valid(), has_void=False))

    def voids(self) -> DataFrame:
        """The epochs that are void, each once, in the column `epoch`."""
        events = events_sql(self._in(current_epochs(self._epochs)))
        return self.spark.sql(f"SELECT DISTINCT epoch FROM ({events}) AS e WHERE phase = 'void'")

    def partition(self, epoch: str, phase: str) -> DataFrame:
        """The events of one phase of an epoch, as they are in the table."""
        return self.spark.table(self.relations.ledger).where(phase_sql(epoch, phase))

    def sample(self, one_in: int) -> list[str]:
        """About one in so many of the objects on record, the same ones each time."""
        events = self.spark.sql(f"SELECT object FROM {self._valid()} WHERE object IS NOT NULL")
        few = events.where(F.pmod(F.xxhash64("object"), F.lit(one_in)) == 0)
        return [row["object"] for row in few.distinct().collect()]

    def last_listing(self, listed: str) -> int | None:
        """When the last full listing of this location and pattern began: seconds since 1970."""
        if (epoch := latest(Phase.LISTING, self._epochs)) is None:
            return None
        same = self.partition(epoch, Phase.LISTING).where(F.col("object") == listed)
        found: int | None = first_row(same.agg(F.unix_timestamp(F.max("at"))))[0]
        return found

    def write_listing(self, listed: str, at: int) -> None:
        """Records that all of this location and pattern was listed at that time; to be called
        once the objects found then are committed, or wait in the ledger."""
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
        """Records events that count from here on, in an epoch of their own; NULL in `at` is now.

        They have the columns of objects, `state`, and any of `rows`, `rejects`, `error`, `hides`
        and `at`.
        """
        now = F.current_timestamp()
        at = F.coalesce(F.col("at"), now) if "at" in events.columns else now
        self._write(next_epoch(self._epochs), Phase.NOTE, events, at=at)

    def write_plan(self, epoch: str, objects: DataFrame, *, few: bool = False) -> None:
        """Records which objects the epoch takes, before any of them is read.

        `few` fit into the driver's memory. Raises SourceError if another run has planned under
        the same number.
        """
        self._write(epoch, Phase.PLAN, objects, few=few, state=F.lit(State.LISTED))

    def write_commit(self, epoch: str, objects: DataFrame, *, few: bool = False) -> None:
        """Commits the epoch: its rows are visible from here on, and what they replace is not.

        `objects` is the plan with `rows`, `rejects`, and `error`: why an object was skipped, which
        then replaces nothing, or NULL; `few` fit into the driver's memory.
        """
        is_fetched = F.col("error").isNull()
        self._write(
            epoch,
            Phase.COMMIT,
            objects,
            few=few,
            state=F.when(is_fetched, State.FETCHED).otherwise(State.SKIPPED),
            hides=F.when(is_fetched, F.col("hides")),
        )

    def write_failed(self, epoch: str, objects: DataFrame, error: Column) -> None:
        """Ends the epoch with an error of these objects; nothing of it is visible."""
        self.require_lock()
        planned = Phase.PLAN in self._epochs.get(epoch, ())
        state = F.lit(State.FAILED)
        self._write(epoch, Phase.FAILED, objects, outcome=None, state=state, error=error)
        if planned:
            # The user is to see why the objects failed, not why the clean-up did.
            with suppress(*SPARK_FAILURES):
                rows_table(self.spark, self.relations).settle(epoch)

    def write_void(self, epoch: str) -> None:
        """Declares the epoch void, so that nothing counts that its own run may still write.

        If that run has committed it meanwhile, it stays committed.
        """
        self.require_lock()
        self.table.close(epoch, Phase.CLOSING)
        if not self.table.close(epoch, Phase.COMMIT):
            self._epochs.setdefault(epoch, set()).add(Phase.COMMIT)
            self.drop([(epoch, Phase.CLOSING)])
            return
        rows_table(self.spark, self.relations).settle(epoch)
        self._write_mark(epoch, Phase.VOID)

    def write_due(self, epoch: str) -> None:
        """Records that the epoch's objects are to be tagged, moved or deleted after its commit."""
        self._write_mark(epoch, Phase.DUE)

    def write_done(self, epoch: str, objects: DataFrame) -> None:
        """Records what became of the epoch's objects; `objects` has state and error."""
        self._write(epoch, Phase.DONE, objects, outcome=None)

    def write_snapshot(self, epoch: str, events: DataFrame) -> None:
        """Records what the events of the epochs up to this one come to; older epochs may go.

        The events have all columns of the ledger.
        """
        self._write(epoch, Phase.SNAPSHOT, events, at=F.col("at"))

    def drop(self, partitions: list[tuple[str, str]]) -> None:
        """Drops these pairs of epoch and phase; safe to repeat."""
        if partitions:
            self.table.drop(partitions)
            for epoch, phase in partitions:
                self._epochs.get(epoch, set()).discard(phase)
            self._epochs = {epoch: phases for epoch, phases in self._epochs.items() if phases}

    def _valid(self) -> str:
        """The ledger in SQL, without void epochs and those that the snapshot replaces.

        A snapshot has no event of an epoch that was void by then, and none is declared so later.
        """
        snapshot = latest(Phase.SNAPSHOT, self._epochs)
        current = current_epochs(self._epochs)
        return self._in([e for e in current if Phase.VOID not in self._epochs[e] or e == snapshot])

    def _in(self, epochs: list[str]) -> str:
        """These epochs of the ledger, by name, so that no file of another one is listed."""
        snapshot = latest(Phase.SNAPSHOT, self._epochs)
        listed = ", ".join(quote_literal(epoch) for epoch in epochs if epoch != snapshot)
        condition = f"epoch IN ({listed})" if listed else "false"
        if snapshot in epochs:
            condition += f" OR epoch = {quote_literal(snapshot)} AND phase = '{Phase.SNAPSHOT}'"
        return f"(SELECT * FROM {self.relations.ledger} WHERE {condition})"

    def _write_mark(self, epoch: str, phase: str) -> None:
        """Adds the phase with one event, the first of the plan."""
        self._write(epoch, phase, self.plan(epoch).limit(1), outcome=None, state=F.lit(phase))

    def _write(
        self,
        epoch: str,
        phase: str,
        events: DataFrame,
        *,
        outcome: str | None = NOTHING_COMMITTED,
        few: bool = False,
        **given: Column,
    ) -> None:
        """Adds the phase. `given` goes before the columns of `events`; others are NULL.

        Raises SourceError, with the outcome of the run, if the lock is lost or another run has
        added the phase. Without an `outcome` neither is an error.
        """
        # Even if this fails half way, no epoch has the number again.
        self._epochs.setdefault(epoch, set()).add(phase)
        folder = self.table.stage(epoch, with_all_columns(events, given), few=few)
        if outcome is not None:
            self.require_lock(outcome)
        if not self.table.publish(epoch, phase, folder) and outcome is not None:
            raise SourceError(
                f"{self.relations.shown()}: another run took the source over while this one was "
                f"at work on it; {outcome}. Run again"
            )


def with_all_columns(events: DataFrame, given: Mapping[str, Column]) -> DataFrame:
    """The events with all columns of the table."""
    there = {name: F.col(quote_identifier(name)) for name in events.columns}
    values = {**there, "at": F.current_timestamp(), **given}
    columns = (
        values.get(name, F.lit(None)).cast(data_type).alias(name)
        for name, data_type in LEDGER_COLUMNS.items()
    )
    return events.select(*columns)
