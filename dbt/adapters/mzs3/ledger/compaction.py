"""Replaces the older epochs of a ledger by one snapshot, to keep the ledger fast.

A snapshot is one partition. For each object it has copies of the events of older epochs that still
matter: the latest event, the latest note or commit, the commits whose rows are visible, and the
latest event that hides rows. It also has one event for each void epoch. A query that reads both
originals and copies has the same result. So a query may start at any snapshot; runs read only the
latest snapshot and later epochs.

Compaction also drops the rows of epochs that are void or hidden in a snapshot whose number is a
day old. Spark may list the files of rows long after it has read what is committed, such as in a
query that waits for another broadcast: rows that are gone by then would be missing without an
error. So one younger snapshot stays, by which rows are dropped once it is old enough.

Only the holder of the lock compacts, after it has declared the epochs of dead runs void. If the
holder dies before

- the snapshot's partition is in the metastore, nothing has changed. The snapshot's file may be
  left, in a folder whose name no run uses again.
- the views start at the new snapshot, they still start at an earlier one.
- it has dropped the replaced partitions, the next compaction drops them too.

Partitions that a snapshot replaces are dropped only by the next compaction. By then no query reads
them, as the views start at the latest snapshot. Queries read the rows of a replaced epoch only if
the snapshot has a commit of that epoch. If a statement of a dead run adds a partition late, the
partition belongs to a void epoch. As each snapshot lists the void epochs, no query counts that
partition, and the next compaction drops it.
"""

from __future__ import annotations

import time

from pyspark.sql import DataFrame

from dbt.adapters.mzs3.ledger.epochs import (
    Epochs,
    current_epochs,
    epochs_awaiting_after_commit,
    latest,
)
from dbt.adapters.mzs3.ledger.events import Phase
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.ledger.rows_table import rows_table
from dbt.adapters.mzs3.ledger.views import show_since

COMPACT_AFTER = 16
"""A snapshot is due after this many epochs since the last one, run-operations included."""

KEEP_MS = 24 * 60 * 60 * 1000
"""How old, by the number of its last epoch, a snapshot is by which hidden rows are dropped: for
queries that began before."""

# SQL condition for the one event of a snapshot that has the number of committed epochs.
_COUNTS_COMMITS = f"of_phase = '{Phase.SNAPSHOT}'"

# SQL columns for `_STILL_MATTERS`: an epoch or position for each object, or NULL.
_PER_OBJECT = (
    "max(CASE WHEN is_decision AND hides THEN position.epoch END) OVER (PARTITION BY object) "
    "AS hidden",
    "max(position) OVER (PARTITION BY object) AS latest",
    "max(CASE WHEN is_decision THEN position END) OVER (PARTITION BY object) AS latest_decision",
)
_STILL_MATTERS = f"""phase = '{Phase.COMMIT}' AND position.epoch >= coalesce(hidden, 0)
    OR is_decision AND hides AND position.epoch = hidden
    OR position = latest OR position = latest_decision"""


def compaction_is_due(epochs: Epochs) -> bool:
    """Whether the ledger has to be compacted before the next epoch."""
    since = [epoch for epoch in current_epochs(epochs) if Phase.SNAPSHOT not in epochs[epoch]]
    return len(since) >= COMPACT_AFTER


def replaced_partitions(epochs: Epochs) -> list[tuple[str, str]]:
    """The partitions that the latest snapshot replaces, oldest first.

    Not those of epochs with `due` but not `done`, nor of the last full listing, nor the snapshot
    by which rows are dropped next.
    """
    snapshot = int(latest(Phase.SNAPSHOT, epochs) or 0)
    kept = {*epochs_awaiting_after_commit(epochs), latest(Phase.LISTING, epochs)}
    next_snapshot = _judging_snapshots(epochs)[1]
    return [
        (epoch, phase)
        for epoch in sorted(epochs, key=int)
        if int(epoch) < snapshot and epoch not in kept
        for phase in sorted(epochs[epoch])
        if (epoch, phase) != (next_snapshot, Phase.SNAPSHOT)
    ]


def _judging_snapshots(epochs: Epochs) -> tuple[str | None, str | None]:
    """The latest snapshot that is older than `KEEP_MS`, and the first that is not, if any."""
    snapshots = sorted((e for e, phases in epochs.items() if Phase.SNAPSHOT in phases), key=int)
    before = time.time_ns() // 1_000_000 - KEEP_MS
    old = sum(int(epoch) < before for epoch in snapshots)
    return next(reversed(snapshots[:old]), None), next(iter(snapshots[old:]), None)


def compact(ledger: Ledger) -> None:
    """Adds a snapshot of all epochs, and drops the partitions that the previous snapshot replaced,
    and rows that are long hidden.

    Raises SourceError once the lock is lost; nothing is written or dropped after that.
    """
    before = ledger.epochs()
    events = snapshot_events(ledger, before)
    ledger.require_lock()
    # The snapshot has the number of the last epoch that it copies. A new epoch of another run has
    # a larger number, whatever the clocks say, so no reader counts it as a part of the snapshot.
    last = max(before, key=int)
    ledger.write_snapshot(last, events)
    ledger.require_lock()
    show_since(ledger.spark, ledger.relations, last)
    snapshot = _judging_snapshots(before)[0]
    visible = visible_epochs(ledger, snapshot) if snapshot else None
    ledger.require_lock()
    ledger.drop(replaced_partitions(before))
    if snapshot and visible is not None:
        rows = rows_table(ledger.spark, ledger.relations)
        rows.drop_except(visible, snapshot, require_lock=ledger.require_lock)


def has_commits(ledger: Ledger) -> bool:
    """Whether any epoch of the source was ever committed. Also True if that is uncertain."""
    epochs = ledger.epochs()
    kept = (each for each in epochs.values() if not each & {Phase.VOID, Phase.CLOSING})
    return any(Phase.COMMIT in each for each in kept) or _snapshot_commits(ledger, epochs) != 0


def committed_epochs(ledger: Ledger, epochs: Epochs) -> int:
    """How many epochs were committed since the source was created."""
    start = int(latest(Phase.SNAPSHOT, epochs) or 0)
    current = (phases for epoch, phases in epochs.items() if int(epoch) > start)
    recent = sum(Phase.COMMIT in phases and Phase.VOID not in phases for phases in current)
    return recent + (_snapshot_commits(ledger, epochs) or 0)


def _snapshot_commits(ledger: Ledger, epochs: Epochs) -> int | None:
    """How many commits the latest snapshot replaces; None if the snapshot was dropped."""
    if (snapshot := latest(Phase.SNAPSHOT, epochs)) is None:
        return 0
    event = ledger.partition(snapshot, Phase.SNAPSHOT).where(_COUNTS_COMMITS).first()
    return None if event is None else int(event["rows"])


def snapshot_events(ledger: Ledger, epochs: Epochs) -> DataFrame:
    """The events of a new snapshot, and one event with the number of epochs committed so far."""
    selected = ledger.events().selectExpr("*", *_PER_OBJECT).where(_STILL_MATTERS)
    kept = selected.withColumnsRenamed({"epoch": "of_epoch", "phase": "of_phase"})
    voids = ledger.voids().selectExpr("epoch AS of_epoch", f"'{Phase.VOID}' AS of_phase")
    committed = f"CAST({committed_epochs(ledger, epochs)} AS bigint) AS `rows`"
    count = ledger.spark.range(1).selectExpr(committed, f"'{Phase.SNAPSHOT}' AS of_phase")
    together = kept.unionByName(voids, allowMissingColumns=True)
    return together.unionByName(count, allowMissingColumns=True)


def visible_epochs(ledger: Ledger, snapshot: str) -> set[str] | None:
    """The epochs of which the snapshot has commits; None if another run has dropped the snapshot.

    The snapshot was dropped if it has no event that counts commits. Without this check no epoch
    would seem visible, and all rows would be dropped.
    """
    condition = f"{_COUNTS_COMMITS} OR of_phase = '{Phase.COMMIT}'"
    kept = ledger.partition(snapshot, Phase.SNAPSHOT).where(condition)
    events = kept.select("of_phase", "of_epoch").distinct().collect()
    if all(row["of_phase"] != Phase.SNAPSHOT for row in events):
        return None
    return {row["of_epoch"] for row in events if row["of_phase"] == Phase.COMMIT}
