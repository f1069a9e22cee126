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

from pyspark.sql import DataFrame

from dbt.adapters.mzs3.ledger.epochs import Epochs, current_epochs, epochs_due, latest
from dbt.adapters.mzs3.ledger.events import Phase
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.ledger.rows_table import rows_table
from dbt.adapters.mzs3.ledger.views import show_since

COMPACT_AFTER = 16
"""Epochs since the last snapshot, those of run-operations included, that make one due."""

# The event that counts the epochs which were committed, one in each snapshot.
_IS_MARK = f"of_phase = '{Phase.SNAPSHOT}'"

_IS_COMMIT = f"of_phase = '{Phase.COMMIT}'"
# What decides, of the events of each object; for one that counts nothing yet, some are NULL.
_OF_OBJECT = (
    "max(CASE WHEN counts AND hides THEN place.epoch END) OVER (PARTITION BY object) AS hidden",
    "max(place) OVER (PARTITION BY object) AS latest",
    "max(CASE WHEN counts THEN place END) OVER (PARTITION BY object) AS latest_counting",
)
_DECIDES = f"""phase = '{Phase.COMMIT}' AND place.epoch >= coalesce(hidden, 0)
    OR counts AND hides AND place.epoch = hidden OR place = latest OR place = latest_counting"""


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
    events = snapshot_events(ledger, before)
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


def is_committed(ledger: Ledger) -> bool:
    """Whether any epoch of the source was ever committed; what is not known for sure counts."""
    epochs = ledger.epochs()
    settled = (on for on in epochs.values() if not on & {Phase.VOID, Phase.CLOSING})
    if any(Phase.COMMIT in on for on in settled):
        return True
    if (snapshot := latest(Phase.SNAPSHOT, epochs)) is None:
        return False
    mark = ledger.partition(snapshot, Phase.SNAPSHOT).where(_IS_MARK).first()
    return mark is None or mark["rows"] != 0


def committed_epochs(ledger: Ledger, epochs: Epochs) -> int:
    """How many epochs were committed since the source was made."""
    snapshot = latest(Phase.SNAPSHOT, epochs)
    current = (on for epoch, on in epochs.items() if int(epoch) > int(snapshot or 0))
    found = sum(Phase.COMMIT in on and Phase.VOID not in on for on in current)
    if snapshot is None:
        return found
    mark = ledger.partition(snapshot, Phase.SNAPSHOT).where(_IS_MARK).first()
    return found + (mark["rows"] if mark is not None else 0)


def snapshot_events(ledger: Ledger, epochs: Epochs) -> DataFrame:
    """The events of the snapshot; with them one that counts the epochs committed so far."""
    marked = ledger.events().selectExpr("*", *_OF_OBJECT).where(_DECIDES)
    kept = marked.withColumnsRenamed({"epoch": "of_epoch", "phase": "of_phase"})
    voids = ledger.voids().selectExpr("epoch AS of_epoch", f"'{Phase.VOID}' AS of_phase")
    committed = f"CAST({committed_epochs(ledger, epochs)} AS bigint) AS `rows`"
    mark = ledger.spark.range(1).selectExpr(committed, f"'{Phase.SNAPSHOT}' AS of_phase")
    together = kept.unionByName(voids, allowMissingColumns=True)
    return together.unionByName(mark, allowMissingColumns=True)


def _drop_rows(ledger: Ledger, snapshot: str) -> None:
    """Drops the rows that nobody has seen since that snapshot, or ever will again."""
    if (visible := visible_epochs(ledger, snapshot)) is not None:
        rows = rows_table(ledger.spark, ledger.relations)
        rows.drop_except(visible, snapshot, require_lock=ledger.require_lock)


def visible_epochs(ledger: Ledger, snapshot: str) -> set[str] | None:
    """The epochs of which the snapshot has anything visible; None if it is not there.

    One that is gone, as another run has compacted meanwhile, reads as one without any events, not
    even its mark: by that, all rows would be dropped.
    """
    kept = ledger.partition(snapshot, Phase.SNAPSHOT).where(f"{_IS_MARK} OR {_IS_COMMIT}")
    found = kept.select("of_phase", "of_epoch").distinct().collect()
    if all(row["of_phase"] != Phase.SNAPSHOT for row in found):
        return None
    return {row["of_epoch"] for row in found if row["of_phase"] == Phase.COMMIT}
