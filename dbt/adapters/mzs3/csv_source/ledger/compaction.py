"""Keeping a ledger fast however many epochs it has seen: older epochs become one snapshot.

A snapshot is one partition with copies of the events of older epochs that still decide something:
of each object the latest event, the latest that counts, those whose rows are visible, the latest
that hides; and one event of every void epoch. Read with or without what they were copied from,
they say the same; so a reader may start at any snapshot, and runs read only the latest one and
what came after. Rows of epochs that are void or wholly hidden go at the same occasion.

Only the holder of the lock compacts, after it has declared dead epochs void. If it dies

- before the snapshot's partition is in the metastore: nothing has happened. Its file, if there
  is one, is in a folder that nobody takes again.
- after that, before the views start at it: they start at an earlier one, and show the same.
- after that, before or while it drops: the ledger holds more than it needs, and the next
  compaction drops that too, as it goes by the metastore.

What a snapshot has taken the place of is dropped at the next compaction only, when no query has
looked for it since: the views start at the latest snapshot. Of the rows, a query opens only those
of epochs that are committed, and of which the snapshot has anything visible. A partition that a
dead run's server writes late has the number of a void epoch, which each snapshot remembers: it
counts for nothing, and goes with the rest.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from dbt.adapters.mzs3.csv_source.ledger.epochs import Epochs, current_epochs, epochs_due, latest
from dbt.adapters.mzs3.csv_source.ledger.events import OBJECT_COLUMNS, Phase
from dbt.adapters.mzs3.csv_source.ledger.ledger import Ledger
from dbt.adapters.mzs3.csv_source.ledger.partitions import drop_partitions, list_partitions
from dbt.adapters.mzs3.csv_source.relations import EPOCH_COLUMN
from dbt.adapters.mzs3.csv_source.tables import show_since

COMPACT_AFTER = 16
"""Epochs since the last snapshot, those of run-operations included, that make one due."""

PARTITIONS_AT_ONCE = 100


def is_due(epochs: Epochs) -> bool:
    """Whether the ledger is to be compacted before the next epoch."""
    since = [epoch for epoch in current_epochs(epochs) if Phase.SNAPSHOT not in epochs[epoch]]
    return len(since) >= COMPACT_AFTER


def superseded(epochs: Epochs) -> list[tuple[str, str]]:
    """The partitions that the latest snapshot has taken the place of, oldest first.

    What is due after a commit is in no snapshot, nor is the last full listing.
    """
    snapshot = int(latest(Phase.SNAPSHOT, epochs) or 0)
    kept = {*epochs_due(epochs), latest(Phase.LISTING, epochs)}
    return [
        (epoch, phase)
        for epoch in sorted(epochs, key=int)
        if int(epoch) < snapshot and epoch not in kept
        for phase in sorted(epochs[epoch])
    ]


def compact(ledger: Ledger) -> None:
    """Puts a snapshot in the place of all epochs, and drops what the snapshot before it replaced.

    Raises SourceError once the lock is lost: then nothing more is written or dropped.
    """
    before = ledger.epochs()
    events = _kept(ledger, before)
    ledger.require_lock()
    # Under the number of the last epoch that it copies: one that another run begins has a later
    # number, whatever the clocks say, and is never taken for one that this snapshot has.
    last = max(before, key=int)
    ledger.write_snapshot(last, events)
    ledger.require_lock()
    show_since(ledger.spark, ledger.relations, last)
    ledger.require_lock()
    ledger.drop(superseded(before))
    if (snapshot := latest(Phase.SNAPSHOT, before)) is not None:
        _drop_rows(ledger, snapshot)


def committed_epochs(ledger: Ledger, epochs: Epochs) -> int:
    """How many epochs were committed since the source was made."""
    snapshot = latest(Phase.SNAPSHOT, epochs)
    current = (on for epoch, on in epochs.items() if int(epoch) > int(snapshot or 0))
    found = sum(Phase.COMMIT in on and Phase.VOID not in on for on in current)
    if snapshot is None:
        return found
    mark = ledger.snapshot(snapshot).where(F.col("of_phase") == Phase.SNAPSHOT).first()
    return found + (mark["rows"] if mark is not None else 0)


def _kept(ledger: Ledger, epochs: Epochs) -> DataFrame:
    """The events of the snapshot; with them one that counts the epochs committed so far."""
    of_object = Window.partitionBy("object")
    counts, place, number = F.col("counts"), F.col("place"), F.col("place.epoch")
    hidden_before = F.max(F.when(counts & F.col("hides"), number)).over(of_object)
    marked = (
        ledger.events()
        .withColumn("hidden_before", F.coalesce(hidden_before, F.lit(0)))
        .withColumn("latest", F.max("place").over(of_object))
        .withColumn("latest_counting", F.max(F.when(counts, place)).over(of_object))
    )
    visible = (F.col("phase") == Phase.COMMIT) & (number >= F.col("hidden_before"))
    hiding = counts & F.col("hides") & (number == F.col("hidden_before"))
    decides = visible | hiding | (place == F.col("latest")) | (place == F.col("latest_counting"))
    names = (*OBJECT_COLUMNS, "state", "rows", "rejects", "error", "at", "hides")
    kept = marked.where(F.coalesce(decides, F.lit(False))).select(
        *names, F.col("epoch").alias("of_epoch"), F.col("phase").alias("of_phase")
    )
    voids = ledger.voids().select(
        F.col("epoch").alias("of_epoch"), F.lit(Phase.VOID).alias("of_phase")
    )
    mark = ledger.spark.range(1).select(
        F.lit(committed_epochs(ledger, epochs)).cast("bigint").alias("rows"),
        F.lit(Phase.SNAPSHOT).alias("of_phase"),
    )
    together = kept.unionByName(voids, allowMissingColumns=True)
    return together.unionByName(mark, allowMissingColumns=True)


def _drop_rows(ledger: Ledger, snapshot: str) -> None:
    """Drops the rows that nobody has seen since that snapshot, or ever will again."""
    if (visible := _visible_in(ledger, snapshot)) is None:
        return
    rows = ledger.relations.rows
    written = [epoch for (epoch,) in list_partitions(ledger.spark, rows)]
    gone = [e for e in written if int(e) < int(snapshot) and e not in visible]
    for start in range(0, len(gone), PARTITIONS_AT_ONCE):
        ledger.require_lock()
        some = gone[start : start + PARTITIONS_AT_ONCE]
        drop_partitions(ledger.spark, rows, [{EPOCH_COLUMN: epoch} for epoch in some])


def _visible_in(ledger: Ledger, snapshot: str) -> set[str] | None:
    """The epochs of which the snapshot has anything visible; None if it is not there.

    One that is gone, as another run has compacted meanwhile, reads as one without any events, not
    even its mark: by that, all rows would be dropped.
    """
    kept = ledger.snapshot(snapshot).where(F.col("of_phase").isin(Phase.COMMIT, Phase.SNAPSHOT))
    found = kept.select("of_phase", "of_epoch").distinct().collect()
    if all(row["of_phase"] != Phase.SNAPSHOT for row in found):
        return None
    return {row["of_epoch"] for row in found if row["of_phase"] == Phase.COMMIT}
