"""A ledger in a table of Delta Lake or Iceberg, whose commits are transactions of the format.

What is a partition in a table of Parquet files, of an epoch and a phase, is here the rows that one
commit has added, all or none. To add them is as strict as it is there: of two runs that add the
same phase of the same epoch, the format refuses the second, which sees by `written_by` whose is
there. Neither asks a lock or a clock for that:

- Delta keeps the names of transactions with its log. A transaction of a name that is on record is
  not written again, and of two at once the second fails, whatever the isolation of the table.
- Iceberg validates an overwrite of exactly that phase of that epoch: it fails if anything was
  added there since the snapshot in which it was seen to be absent.

What closes an epoch adds a row in the place of its commit, and in the same step the row by which
the epoch is void: so that row never counts as a commit.
"""

from __future__ import annotations

import uuid

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.mzs3.ledger.events import LEDGER_COLUMNS, Phase
from dbt.adapters.mzs3.ledger.relations import SourceRelations
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES
from dbt.adapters.mzs3.spark.sql import DELTA, quote_literal

WRITTEN_BY = "written_by"
"""The column of the ledger with the name under which its rows were staged."""


class LedgerTransactions:
    """The phases of epochs, with the methods of `LedgerTable`; a `folder` is but a name here."""

    def __init__(self, spark: SparkSession, relations: SourceRelations) -> None:
        self._spark = spark
        self._name = relations.ledger
        self._is_delta = relations.file_format == DELTA
        self._staged: dict[str, DataFrame] = {}

    def epochs(self) -> dict[str, set[str]]:
        """Every epoch with its phases."""
        found: dict[str, set[str]] = {}
        on_record = self._spark.table(self._name).select("epoch", "phase").distinct()
        for epoch, phase in on_record.collect():
            found.setdefault(epoch, set()).add(phase)
        return found

    def insert(self, epoch: str, phase: str, events: DataFrame) -> None:
        """Adds the events as this phase, unless it is there already."""
        try:
            self.add(epoch, phase, self.stage(epoch, events))
        except SPARK_FAILURES:
            if self.folder(epoch, phase) is None:
                raise

    def stage(self, epoch: str, events: DataFrame, *, few: bool = False) -> str:
        """Computes the events, which nobody reads yet; their name."""
        folder = f"events-{uuid.uuid4().hex}"
        self._staged[folder] = events.coalesce(1).localCheckpoint()
        return folder

    def add(self, epoch: str, phase: str, folder: str) -> None:
        """Adds what was staged under the name, or nothing. Raises if the phase is there."""
        rows = self._rows(epoch, phase, folder)
        if self._is_delta:
            named = {"txnAppId": f"{epoch}/{phase}", "txnVersion": "1"}
            rows.writeTo(self._name).options(**named).append()
            if self.folder(epoch, phase) == folder or rows.isEmpty():
                return
        else:
            head = f"SELECT snapshot_id FROM {self._name}.refs WHERE name = 'main'"
            base = self._spark.sql(head).first()
            if self.folder(epoch, phase) is None:
                # Without a snapshot there is nothing that could have been added before.
                since = {"validate-from-snapshot-id": str(base[0])} if base else {}
                writer = rows.writeTo(self._name).option("isolation-level", "serializable")
                writer.options(**since).overwrite(
                    (F.col("epoch") == epoch) & (F.col("phase") == phase)
                )
                return
        raise PySparkException(f"{epoch}/{phase} already exists")

    def folder(self, epoch: str, phase: str) -> str | None:
        """The name under which this phase was staged; None if there is none."""
        there = self._spark.table(self._name).where(_place(epoch, phase)).select(WRITTEN_BY)
        row = there.first()
        return row[0] if row else None

    def drop(self, partitions: list[tuple[str, str]]) -> None:
        """Drops these pairs of epoch and phase; safe to repeat."""
        gone = " OR ".join(f"({_place(epoch, phase)})" for epoch, phase in partitions)
        self._spark.sql(f"DELETE FROM {self._name} WHERE {gone}")

    def _rows(self, epoch: str, phase: str, folder: str) -> DataFrame:
        """The rows to add, with all columns of the table."""
        phases = F.lit(phase)
        if folder in self._staged:
            events = self._staged[folder]
        else:
            nothing = (F.lit(None).cast(of).alias(name) for name, of in LEDGER_COLUMNS.items())
            events = self._spark.range(1).select(*nothing)
            if phase == Phase.COMMIT:
                phases = F.explode(F.array(F.lit(phase), F.lit(Phase.VOID)))
        return events.select(
            "*",
            F.lit(epoch).alias("epoch"),
            phases.alias("phase"),
            F.lit(folder).alias(WRITTEN_BY),
        )


def _place(epoch: str, phase: str) -> str:
    return f"epoch = {quote_literal(epoch)} AND phase = {quote_literal(phase)}"
