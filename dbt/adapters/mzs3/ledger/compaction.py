"""Keeping a ledger fast however many epochs it has seen: older epochs become one snapshot.

A snapshot is one partition with copies of the events of older epochs that still decide something:
of each object the latest event, the latest decision, the commits whose rows are visible, and the
latest event that hides rows; and one event of every void epoch. Read with or without what they
were copied from, they say the same. So a reader may start at any snapshot, and runs read only the
latest one and what came after. Compaction also drops the rows of epochs that are void or hidden.

Only the holder of the lock compacts, after it has declared dead epochs void. If it dies

- before the snapshot's partition is in the metastore: nothing has happened. Its file, if there
  is one, is in a folder whose name no run uses again.
- after that, before the views start at it: they start at an earlier one, and show the same.
- after that, before or while it drops: the ledger holds more than it needs, and the next
  compaction drops that too, as it goes by the metastore.

What a snapshot replaces is dropped only by the next compaction, when no query has read it since:
the views start at the latest snapshot. A query opens only the rows of epochs that are committed,
and of which the snapshot has anything visible. A partition that a dead run's server writes late
has the number of a void epoch, which each snapshot remembers: no query counts it, and the next
compaction drops it.
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

# What decides, of the events of each object; NULL where there is no such event.
_OF_OBJECT = (
    "max(CASE WHEN is_decision AND hides THEN position.epoch END) OVER (PARTITION BY object) "
    "AS hidden",
    "max(position) OVER (PARTITION BY object) AS latest",
    "max(CASE WHEN is_decision THEN position END) OVER (PARTITION BY object) AS latest_decision",
)
_DECIDES = f"""phase = '{Phase.COMMIT}' AND position.epoch >= coalesce(hidden, 0)
    OR is_decision AND hides AND position.epoch = hidden
    OR position = latest OR position = latest_decision"""


def is_due(epochs: Epochs) -> bool:
    """Whether the ledger is to be compacted before the next epoch."""
    since = [epoch for epoch in current_epochs(epochs) if Phase.SNAPSHOT not in epochs[epoch]]
    return len(since) >= COMPACT_AFTER


def replaced_partitions(epochs: Epochs) -> list[tuple[str, str]]:
    """The partitions that the latest snapshot has replaced, oldest first.

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
    """Adds a snapshot of all epochs, and drops what the snapshot before it replaced.

    Raises SourceError once the lock is lost: then nothing more is written or dropped.
    """
    before = ledger.epochs()
    events = snapshot_events(ledger, before)
    ledger.require_lock()
    # Under the number of the last epoch that it copies: an epoch that another run begins has a
    # later number, whatever the clocks say, so no reader takes it for one of this snapshot.
    last = max(before, key=int)
    ledger.write_snapshot(last, events)
    ledger.require_lock()
    show_since(ledger.spark, ledger.relations, last)
    ledger.require_lock()
    ledger.drop(replaced_partitions(before))
    snapshot = latest(Phase.SNAPSHOT, before)
    if snapshot is not None and (visible := visible_epochs(ledger, snapshot)) is not None:
        rows = rows_table(ledger.spark, ledger.relations)
        rows.drop_except(visible, snapshot, require_lock=ledger.require_lock)


def is_committed(ledger: Ledger) -> bool:
    """Whether any epoch of the source was ever committed; True where that is not sure."""
    epochs = ledger.epochs()
    settled = (on for on in epochs.values() if not on & {Phase.VOID, Phase.CLOSING})
    return any(Phase.COMMIT in on for on in settled) or _snapshot_commits(ledger, epochs) != 0


def committed_epochs(ledger: Ledger, epochs: Epochs) -> int:
    """How many epochs were committed since the source was made."""
    start = int(latest(Phase.SNAPSHOT, epochs) or 0)
    current = (on for epoch, on in epochs.items() if int(epoch) > start)
    recent = sum(Phase.COMMIT in on and Phase.VOID not in on for on in current)
    return recent + (_snapshot_commits(ledger, epochs) or 0)


def _snapshot_commits(ledger: Ledger, epochs: Epochs) -> int | None:
    """How many commits the latest snapshot replaces; None if another compaction has dropped it."""
    if (snapshot := latest(Phase.SNAPSHOT, epochs)) is None:
        return 0
    mark = ledger.partition(snapshot, Phase.SNAPSHOT).where(_IS_MARK).first()
    return None if mark is None else int(mark["rows"])


def snapshot_events(ledger: Ledger, epochs: Epochs) -> DataFrame:
    """The events of the snapshot; with them one that counts the epochs committed so far."""
    marked = ledger.events().selectExpr("*", *_OF_OBJECT).where(_DECIDES)
    kept = marked.withColumnsRenamed({"epoch": "of_epoch", "phase": "of_phase"})
    voids = ledger.voids().selectExpr("epoch AS of_epoch", f"'{Phase.VOID}' AS of_phase")
    committed = f"CAST({committed_epochs(ledger, epochs)} AS bigint) AS `rows`"
    mark = ledger.spark.range(1).selectExpr(committed, f"'{Phase.SNAPSHOT}' AS of_phase")
    together = kept.unionByName(voids, allowMissingColumns=True)
    return together.unionByName(mark, allowMissingColumns=True)


def visible_epochs(ledger: Ledger, snapshot: str) -> set[str] | None:
    """The epochs of which the snapshot has anything visible; None if another run has dropped it.

    Without its mark it would read as one without any events, by which all rows would be dropped.
    """
    wanted = f"{_IS_MARK} OR of_phase = '{Phase.COMMIT}'"
    kept = ledger.partition(snapshot, Phase.SNAPSHOT).where(wanted)
    found = kept.select("of_phase", "of_epoch").distinct().collect()
    if all(row["of_phase"] != Phase.SNAPSHOT for row in found):
        return None
    return {row["of_epoch"] for row in found if row["of_phase"] == Phase.COMMIT}
