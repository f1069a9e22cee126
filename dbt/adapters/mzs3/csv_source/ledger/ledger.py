"""What happened to every object of a source, epoch by epoch, in an ordinary table.

An epoch is one pass over new objects. What it takes is written as its `plan`; its `commit`
makes its rows visible, and is one partition, so one step. `failed` says which object stopped
it. `void` is written over an epoch that came to no end, before its objects are planned anew, by a
run that has put an empty partition in the place of its commit: so its own run, should it go on,
commits nothing. `closing`, without any event, is there before that empty partition: if the run
that closes dies in between, the next one closes anew. A `note` counts once it is there, whatever
becomes of its epoch: what waits for a later run, what is passed over, what a run-operation
decided. `snapshot` is what compaction makes of the epochs up to its own.

What counts is written to a folder that nobody reads, the lock is looked at, and only then is the
folder made a partition, in one step. A run that loses its lock in between has its plan on record:
so who takes the lock after that look sees the plan, and closes its commit, or finds it committed.

`due` says of an epoch, before its commit, that its objects are to be tagged, moved or deleted once
they are committed, and `done` what became of each. `listing` says when all keys were last listed,
for a source that does not do so each time. None of these has a part in what is visible.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import starmap
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dbt.adapters.mzs3.csv_source.ledger.events import (
    CLOSING,
    COMMIT,
    DONE,
    DUE,
    FAILED,
    FETCHED,
    LISTED,
    LISTING,
    NOTE,
    OBJECT_COLUMNS,
    PLAN,
    SKIPPED,
    SNAPSHOT,
    VOID,
    events_sql,
    objects_sql,
    valid_events_sql,
)
from dbt.adapters.mzs3.csv_source.ledger.lock import NOTHING_COMMITTED
from dbt.adapters.mzs3.csv_source.ledger.partitions import add_partition
from dbt.adapters.mzs3.csv_source.ledger.table import LedgerTable, close, publish
from dbt.adapters.mzs3.csv_source.relations import EPOCH_COLUMN
from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES
from dbt.adapters.mzs3.spark.sql import quote_identifier, quote_literal

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from dbt.adapters.mzs3.csv_source.ledger.lock import SourceLock
    from dbt.adapters.mzs3.csv_source.relations import SourceRelations

LISTING_IS_LOST = "what it committed stays, and its full listing is not on record"
"""What a run says that loses its lock after its commit, before it has recorded its listing."""

Epochs = Mapping[str, set[str]]
"""The phases on record of every epoch."""

_COLUMNS = {
    "object": "string",
    "etag": "string",
    "size": "bigint",
    "last_modified": "timestamp",
    "state": "string",
    "rows": "bigint",
    "rejects": "bigint",
    "error": "string",
    "at": "timestamp",
    "hides": "boolean",
    "of_epoch": "string",
    "of_phase": "string",
}


class Ledger:
    """The ledger of one source, as it is when this is made, and with what is written through it.

    Only what holds the source's lock writes to it: so nobody else's writes are missed. Without the
    lock, it is the ledger of that moment. A write of what counts, or of a failure, raises
    SourceError once the lock is lost; what else is written then does not matter to anybody.
    """

    def __init__(
        self, spark: SparkSession, relations: SourceRelations, lock: SourceLock | None = None
    ) -> None:
        self._spark = spark
        self._relations = relations
        self._lock = lock
        self._table = LedgerTable(spark, relations)
        self._epochs = self._table.epochs()

    def epochs(self) -> Epochs:
        """Every epoch with its phases."""
        return {epoch: set(phases) for epoch, phases in self._epochs.items()}

    def plan(self, epoch: str) -> DataFrame:
        """What the epoch takes: object, etag, size, last_modified, hides."""
        return self._partition(epoch, PLAN).select(*OBJECT_COLUMNS, "hides")

    def objects(self) -> DataFrame:
        """Of every object what its events come to, with the columns of `objects_sql`."""
        return self._spark.sql(objects_sql(self._valid(), has_void=False))

    def events(self) -> DataFrame:
        """The events that count or counted, with the columns of `valid_events_sql`."""
        return self._spark.sql(valid_events_sql(self._valid(), has_void=False))

    def voids(self) -> DataFrame:
        """The epochs that are void, each once, in the column `epoch`."""
        events = events_sql(self._in(current_epochs(self._epochs)))
        return self._spark.sql(f"SELECT DISTINCT epoch FROM ({events}) AS e WHERE phase = 'void'")

    def snapshot(self, epoch: str) -> DataFrame:
        """The snapshot of that epoch, as it is in the table."""
        return self._partition(epoch, SNAPSHOT)

    def sample(self, one_in: int) -> list[str]:
        """About one in so many of the objects on record, the same ones each time."""
        events = self._spark.sql(f"SELECT object FROM {self._valid()}")
        events = events.where(F.col("object").isNotNull())
        few = events.where(F.pmod(F.xxhash64("object"), F.lit(one_in)) == 0)
        return [row["object"] for row in few.distinct().collect()]

    def last_listing(self, listed: str) -> int | None:
        """When the last full listing of this location and pattern began: seconds since 1970."""
        epoch = latest_listing(self.epochs())
        if epoch is None:
            return None
        same = self._partition(epoch, LISTING).where(F.col("object") == listed)
        found: int | None = same.agg(F.unix_timestamp(F.max("at"))).first()[0]
        return found

    def write_listing(self, epoch: str, listed: str, at: int) -> None:
        """All of this location and pattern was listed at that time, and what was found then is
        committed, or waits in the ledger."""
        nothing = [F.lit(None).alias(name) for name in OBJECT_COLUMNS[1:]]
        event = self._spark.range(1).select(F.lit(listed).alias("object"), *nothing)
        at_time = F.timestamp_seconds(F.lit(at))
        self._publish(epoch, LISTING, event, LISTING_IS_LOST, state=F.lit(LISTING), at=at_time)

    def write_note(self, epoch: str, events: DataFrame) -> None:
        """The events count from here on; `events` has the columns of objects, `state`, and any of
        `rows`, `rejects`, `error`, `hides` and `at`, which is now where it is NULL."""
        now = F.current_timestamp()
        at = F.coalesce(F.col("at"), now) if "at" in events.columns else now
        self._publish(epoch, NOTE, events, at=at)

    def write_plan(self, epoch: str, objects: DataFrame) -> None:
        """The epoch takes these objects; nothing of them is read before this is on record.

        Raises SourceError if another run has planned under the same number.
        """
        self._publish(epoch, PLAN, objects, state=F.lit(LISTED))

    def write_commit(self, epoch: str, objects: DataFrame) -> None:
        """The epoch's rows are visible from here on, and what they replace no longer is.

        `objects` has the columns of the plan, `rows`, `rejects`, and `error`: why an object was
        skipped, which then replaces nothing, or NULL.
        """
        taken = F.col("error").isNull()
        self._publish(
            epoch,
            COMMIT,
            objects,
            state=F.when(taken, FETCHED).otherwise(SKIPPED),
            hides=F.when(taken, F.col("hides")),
        )

    def write_failed(self, epoch: str, objects: DataFrame, error: Column) -> None:
        """The epoch came to its end on these objects, and makes nothing visible."""
        self._require_lock()
        planned = PLAN in self._epochs.get(epoch, ())
        self._write(epoch, FAILED, objects, state=F.lit("failed"), error=error)
        if planned:
            # What the objects failed with is to be told, and not what goes wrong with tidying up.
            with suppress(*SPARK_FAILURES):
                self._add_rows(epoch)

    def write_void(self, epoch: str) -> None:
        """Nothing of the epoch's plan counts, whatever else will be written of it; unless its own
        run has committed it meanwhile: then it is committed."""
        self._require_lock()
        close(self._table, epoch, CLOSING)
        if not close(self._table, epoch, COMMIT):
            self._epochs.setdefault(epoch, set()).add(COMMIT)
            self.drop([(epoch, CLOSING)])
            return
        self._add_rows(epoch)
        self._write(epoch, VOID, self.plan(epoch).limit(1), state=F.lit("void"))

    def _add_rows(self, epoch: str) -> None:
        """What is left of rows that were not all written is a partition, which nobody sees: a
        compaction drops it with what else nobody sees."""
        add_partition(self._spark, self._relations.rows, {EPOCH_COLUMN: epoch})

    def write_due(self, epoch: str) -> None:
        """The epoch's objects, once it is committed, wait for what comes after the commit."""
        self._write(epoch, DUE, self.plan(epoch).limit(1), state=F.lit(DUE))

    def write_done(self, epoch: str, objects: DataFrame) -> None:
        """What became of the epoch's objects after its commit; `objects` has state and error."""
        self._write(epoch, DONE, objects)

    def write_snapshot(self, epoch: str, events: DataFrame) -> None:
        """Of the epochs up to this one these events, with all columns, say all; older ones may
        go."""
        self._publish(epoch, SNAPSHOT, events, at=F.col("at"))

    def drop(self, partitions: list[tuple[str, str]]) -> None:
        """These pairs of epoch and phase are gone; safe to repeat."""
        if partitions:
            self._table.drop(partitions)
            for epoch, phase in partitions:
                self._epochs.get(epoch, set()).discard(phase)
            self._epochs = {epoch: phases for epoch, phases in self._epochs.items() if phases}

    def _partition(self, epoch: str, phase: str) -> DataFrame:
        place = f"epoch = {quote_literal(epoch)} AND phase = {quote_literal(phase)}"
        return self._spark.table(self._relations.ledger).where(place)

    def _valid(self) -> str:
        """The ledger without void epochs and what a snapshot has taken the place of; in SQL.

        A snapshot has no event of an epoch that was void by then, and none is declared so later.
        """
        latest = latest_snapshot(self._epochs)
        current = current_epochs(self._epochs)
        return self._in([e for e in current if VOID not in self._epochs[e] or e == latest])

    def _in(self, epochs: list[str]) -> str:
        """These epochs of the ledger, in parentheses; of the latest snapshot's only that.

        By name, so that no file of another one is so much as listed.
        """
        latest = latest_snapshot(self._epochs)
        listed = ", ".join(quote_literal(epoch) for epoch in epochs if epoch != latest)
        conditions = [f"epoch IN ({listed})"] if listed else []
        if latest in epochs:
            conditions.append(f"epoch = {quote_literal(latest)} AND phase = '{SNAPSHOT}'")
        return (
            f"(SELECT * FROM {self._relations.ledger} WHERE {' OR '.join(conditions) or 'false'})"
        )

    def _write(self, epoch: str, phase: str, events: DataFrame, **given: Column) -> None:
        """`given` goes before the columns of `events`; what is in neither is NULL."""
        # Even if this fails half way, the number is never taken again.
        self._epochs.setdefault(epoch, set()).add(phase)
        self._table.insert(epoch, phase, _framed(events, given))

    def _require_lock(self, outcome: str = NOTHING_COMMITTED) -> None:
        if self._lock is not None:
            self._lock.require(outcome)

    def _publish(
        self,
        epoch: str,
        phase: str,
        events: DataFrame,
        outcome: str = NOTHING_COMMITTED,
        **given: Column,
    ) -> None:
        """As `_write`, in a step that nothing can do twice, and that is last.

        `outcome` is what is said of the run if the lock is lost.
        """
        self._epochs.setdefault(epoch, set()).add(phase)
        folder = self._table.stage(epoch, _framed(events, given))
        self._require_lock(outcome)
        if not publish(self._table, epoch, phase, folder):
            raise SourceError(
                f"{self._relations.shown()}: another run took the source over while this one was "
                f"at work on it; {outcome}. Run again"
            )


def _framed(events: DataFrame, given: Mapping[str, Column]) -> DataFrame:
    """The events with all columns of the table, in its order.

    In one file, as every query on the source opens those of all epochs that count.
    """
    given = {"at": F.current_timestamp(), **given}
    there = {*events.columns}

    def column(name: str, data_type: str) -> Column:
        value = F.expr(quote_identifier(name) if name in there else "NULL")
        return given.get(name, value).cast(data_type).alias(name)

    return events.select(*starmap(column, _COLUMNS.items())).coalesce(1)


def next_plan(epochs: Epochs) -> str:
    """A number for an epoch that plans, as `next_epoch`; even, which no other new epoch is.

    A plan may land late, when its run has lost the lock. Had somebody's note the same number, it
    would be void with that plan.
    """
    return _next(epochs, 0)


def next_epoch(epochs: Epochs) -> str:
    """A number for a new epoch that plans nothing: later than all on record, and never one of a
    run that died.

    It is the time in milliseconds, so that what a dead run's server still writes under its own
    number can't meet what this run writes. It is odd: see `next_plan`.
    """
    return _next(epochs, 1)


def _next(epochs: Epochs, parity: int) -> str:
    least = max((int(epoch) + 1 for epoch in epochs), default=1)
    least = max(least, time.time_ns() // 1_000_000)
    return str(least + (least + parity) % 2)


def latest_snapshot(epochs: Epochs) -> str | None:
    """The epoch of the latest snapshot, if there is any."""
    return max((e for e, phases in epochs.items() if SNAPSHOT in phases), key=int, default=None)


def latest_listing(epochs: Epochs) -> str | None:
    """The epoch under which the last full listing is on record, if there is any."""
    return max((e for e, phases in epochs.items() if LISTING in phases), key=int, default=None)


def current_epochs(epochs: Epochs) -> list[str]:
    """The latest snapshot's epoch and those after it, in order: what says all there is to say."""
    start = int(latest_snapshot(epochs) or 0)
    return sorted((epoch for epoch in epochs if int(epoch) >= start), key=int)


def unfinished_epochs(epochs: Epochs) -> list[str]:
    """The epochs that planned and came to no end, in order; none of those before a snapshot.

    Among them those of which a dead run may have put an empty partition in the commit's place.
    """

    def has_ended(phases: set[str]) -> bool:
        # What closes an epoch puts an empty commit there, and its own run may still fail late:
        # with neither is it settled, until it is void.
        own = set() if CLOSING in phases else {COMMIT, FAILED}
        return not phases.isdisjoint({*own, VOID})

    current = current_epochs(epochs)
    return [e for e in current if PLAN in epochs[e] and not has_ended(epochs[e])]


def epochs_due(epochs: Epochs) -> list[str]:
    """The committed epochs of which objects wait to be tagged, moved or deleted; oldest first."""
    due = (epoch for epoch, on in epochs.items() if {DUE, COMMIT} <= on and not on & {VOID, DONE})
    return sorted(due, key=int)
