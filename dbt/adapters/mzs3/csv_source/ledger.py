"""What happened to every object of a source, epoch by epoch, in an ordinary table.

An epoch is one pass over new objects. What it takes is written as its `plan`; its `commit`
makes its rows visible, and is one partition, so one step. `failed` says which object stopped
it. `void` is written over an epoch that died on the way, before its objects are planned anew:
a commit of it that arrives late, from a server that outlived the run, counts for nothing.

Beside these, `due` says of an epoch, before its commit, that its objects are to be tagged, moved
or deleted once they are committed, and `done` what became of each. `note` is an epoch of its own:
what a queue told of objects that is no reason to do anything. None of the three has a part in
what is visible.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dbt.adapters.mzs3.csv_source.insert import insert_partition

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from dbt.adapters.mzs3.csv_source.relations import SourceRelations

PLAN = "plan"
COMMIT = "commit"
FAILED = "failed"
VOID = "void"
DUE = "due"
DONE = "done"
NOTE = "note"

Epochs = Mapping[str, set[str]]
"""The phases on record of every epoch."""


class Ledger:
    """The ledger of one source; only the run that holds the source's lock writes to it."""

    def __init__(self, spark: SparkSession, relations: SourceRelations) -> None:
        self._spark = spark
        self._relations = relations

    def epochs(self) -> dict[str, set[str]]:
        """Every epoch with its phases, from the metastore alone: no file is read."""
        found: dict[str, set[str]] = {}
        for row in self._spark.sql(f"SHOW PARTITIONS {self._relations.ledger}").collect():
            epoch, phase = (part.partition("=")[2] for part in row["partition"].split("/"))
            found.setdefault(epoch, set()).add(phase)
        return found

    def plan(self, epoch: str) -> DataFrame:
        """What the epoch takes: object, etag, size, last_modified."""
        return self._phase(PLAN).where(F.col("epoch") == epoch).select(*OBJECT_COLUMNS)

    def committed(self) -> DataFrame:
        """Object and ETag of everything whose rows are visible."""
        void = self._phase(VOID).select("epoch").distinct()
        return self._phase(COMMIT).join(void, "epoch", "left_anti").select("object", "etag")

    def fetched(self, epoch: str) -> DataFrame:
        """The objects whose rows the epoch's commit made visible: object, etag, size, …"""
        of_epoch = (F.col("epoch") == epoch) & (F.col("state") == "fetched")
        return self._phase(COMMIT).where(of_epoch).select(*OBJECT_COLUMNS)

    def totals(self, epoch: str) -> tuple[int, int, int]:
        """Objects, rows and rejects that the epoch's commit records."""
        committed = self._phase(COMMIT).where(F.col("epoch") == epoch)
        found = committed.agg(
            F.count(F.lit(1)), F.coalesce(F.sum("rows"), F.lit(0)), F.sum("rejects")
        ).first()
        return found[0], found[1], found[2] or 0

    def write_plan(self, epoch: str, objects: DataFrame) -> None:
        """The epoch takes these objects; nothing of them is read before this is on record."""
        self._write(epoch, PLAN, objects, state="listed")

    def write_commit(self, epoch: str, objects: DataFrame) -> None:
        """The epoch's rows are visible from here on; `objects` has the column `rows` too."""
        self._write(epoch, COMMIT, objects, state="fetched", rows=F.col("rows"), rejects=F.lit(0))

    def write_failed(self, epoch: str, objects: DataFrame, error: str) -> None:
        """The epoch came to its end on these objects, and makes nothing visible."""
        self._write(epoch, FAILED, objects, state="failed", error=F.lit(error))

    def write_void(self, epoch: str) -> None:
        """Nothing of the epoch counts, whatever else is or will be written of it."""
        self._write(epoch, VOID, self.plan(epoch).limit(1), state="void")

    def write_due(self, epoch: str) -> None:
        """The epoch's objects, once it is committed, wait for what comes after the commit."""
        self._write(epoch, DUE, self.plan(epoch).limit(1), state="due")

    def write_done(self, epoch: str, objects: DataFrame) -> None:
        """What became of the epoch's objects after its commit; `objects` has state and error."""
        self._write(epoch, DONE, objects, state=F.col("state"), error=F.col("error"))

    def write_note(self, epoch: str, objects: DataFrame) -> None:
        """What is worth knowing of objects; `objects` has the columns state and error."""
        self._write(epoch, NOTE, objects, state=F.col("state"), error=F.col("error"))

    def _phase(self, phase: str) -> DataFrame:
        return self._spark.table(self._relations.ledger).where(F.col("phase") == phase)

    def _write(
        self,
        epoch: str,
        phase: str,
        objects: DataFrame,
        *,
        state: str | Column,
        rows: Column | None = None,
        rejects: Column | None = None,
        error: Column | None = None,
    ) -> None:
        def or_null(column: Column | None, data_type: str) -> Column:
            return (F.lit(None) if column is None else column).cast(data_type)

        events = objects.select(
            *OBJECT_COLUMNS,
            (F.lit(state) if isinstance(state, str) else state).alias("state"),
            or_null(rows, "bigint").alias("rows"),
            or_null(rejects, "bigint").alias("rejects"),
            or_null(error, "string").alias("error"),
            F.current_timestamp().alias("at"),
        )
        # One file, so that it is all there or not at all, even where a reader lists folders.
        insert_partition(
            self._spark,
            events.coalesce(1),
            self._relations.ledger,
            {"epoch": epoch, "phase": phase},
        )


OBJECT_COLUMNS = ("object", "etag", "size", "last_modified")


def next_epoch(epochs: Epochs) -> str:
    """A number for a new epoch: later than all on record, and never one of a run that died.

    It is the time in milliseconds, so that what a dead run's server still writes under its own
    number can't meet what this run writes.
    """
    latest = max((int(epoch) for epoch in epochs), default=0)
    return str(max(latest + 1, time.time_ns() // 1_000_000))


def unfinished_epoch(epochs: Epochs) -> str | None:
    """The epoch that planned and came to no end, if it is the last one; earlier ones are void."""
    latest = max(epochs, key=int, default=None)
    if latest is None or PLAN not in epochs[latest] or epochs[latest] & {COMMIT, FAILED, VOID}:
        return None
    return latest


def epochs_due(epochs: Epochs) -> list[str]:
    """The committed epochs of which objects wait to be tagged, moved or deleted; oldest first."""
    due = (epoch for epoch, on in epochs.items() if {DUE, COMMIT} <= on and not on & {VOID, DONE})
    return sorted(due, key=int)
