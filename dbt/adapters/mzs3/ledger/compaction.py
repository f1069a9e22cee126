"""Keeps a ledger fast however many epochs it has: older epochs become one snapshot.

A snapshot is one partition with copies of the events of older epochs that still matter: for each
object the latest event, the latest note or commit, the commits whose rows are visible, the latest
event that hides rows; and one event for each void epoch. Reading the originals too makes no
difference. So a reader may start at any snapshot, and runs read only the latest one and later
epochs. Compaction also drops the rows of void or hidden epochs.

Only the holder of the lock compacts, after it has declared dead epochs void. If it dies

- before the snapshot's partition is in the metastore: nothing has changed. The snapshot's file, if
  there is one, is in a folder whose name no run uses again.
- after that, before the views start at the snapshot: they go on starting at an earlier one.
- after that, before or while it drops partitions: the ledger holds more than it needs, and the
  next compaction reads the metastore and drops these too.

Partitions that a snapshot replaces are dropped only by the next compaction. By then no query reads
them, as the views start at the latest snapshot. Queries open only the rows of committed epochs of
which the snapshot has anything visible. If a statement of a dead run adds a partition late, the
partition belongs to a void epoch, which each snapshot remembers: no query counts it, and the next
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
"""A snapshot is due after this many epochs, those of run-operations too, since the last one."""

# Selects the event, one in each snapshot, that counts the epochs that were committed.
_IS_MARK = f"of_phase = '{Phase.SNAPSHOT}'"

# The epochs and positions, per object, with which `_DECIDES` selects events; NULL for none.
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
    """Whether the ledger has to be compacted before the next epoch."""
    since = [epoch for epoch in current_epochs(epochs) if Phase.SNAPSHOT not in epochs[epoch]]
    return len(since) >= COMPACT_AFTER


def replaced_partitions(epochs: Epochs) -> list[tuple[str, str]]:
    """The partitions that the latest snapshot replaces, oldest first.

    Not those of epochs whose objects are still due, nor the last full listing.
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
    """Adds a snapshot of all epochs, and drops the partitions that the previous one replaced.

    Raises SourceError once the lock is lost; nothing is written or dropped after that.
    """
    before = ledger.epochs()
    events = snapshot_events(ledger, before)
    ledger.require_lock()
    # The snapshot has the number of the last epoch that it copies. A new epoch of another run has
    # a later number, whatever the clocks say, so no reader counts it as a part of the snapshot.
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
    """Whether any epoch of the source was ever committed. Also True if that is uncertain."""
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
    """The events of the snapshot, and one event that counts the epochs committed so far."""
    marked = ledger.events().selectExpr("*", *_OF_OBJECT).where(_DECIDES)
    kept = marked.withColumnsRenamed({"epoch": "of_epoch", "phase": "of_phase"})
    voids = ledger.voids().selectExpr("epoch AS of_epoch", f"'{Phase.VOID}' AS of_phase")
    committed = f"CAST({committed_epochs(ledger, epochs)} AS bigint) AS `rows`"
    mark = ledger.spark.range(1).selectExpr(committed, f"'{Phase.SNAPSHOT}' AS of_phase")
    together = kept.unionByName(voids, allowMissingColumns=True)
    return together.unionByName(mark, allowMissingColumns=True)


def visible_epochs(ledger: Ledger, snapshot: str) -> set[str] | None:
    """The epochs of which the snapshot has anything visible; None if another run has dropped it.

    A dropped snapshot lacks the event that counts commits. Without this check all rows would be
    dropped, as none would seem visible.
    """
    wanted = f"{_IS_MARK} OR of_phase = '{Phase.COMMIT}'"
    kept = ledger.partition(snapshot, Phase.SNAPSHOT).where(wanted)
    found = kept.select("of_phase", "of_epoch").distinct().collect()
    if all(row["of_phase"] != Phase.SNAPSHOT for row in found):
        return None
    return {row["of_epoch"] for row in found if row["of_phase"] == Phase.COMMIT}
