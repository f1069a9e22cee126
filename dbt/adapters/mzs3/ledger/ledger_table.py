"""The table of a ledger, to which each phase of an epoch is added in one step, or not at all.

In a table of Parquet files a phase is a partition. In a table of Delta Lake or Iceberg a phase is
the rows that one commit of the table adds. The guarantee is the same: if two runs add the same
phase of an epoch, the format refuses the second run, which then reads in `written_by` whose rows
the phase has. This needs no lock and no clock:

- Delta records the names of transactions in its log. It skips a transaction with a recorded name.
  If two concurrent transactions have the same name, the second fails, at any isolation level.
- In Iceberg a run overwrites exactly that phase of the epoch. Iceberg refuses this if rows of the
  phase were added after the snapshot in which the run saw none.

To close an epoch, a run adds, in one step, a row of NULLs as the epoch's commit and a row that
declares the epoch void. As the epoch is void, the first row never counts as a commit.
"""

from __future__ import annotations

import uuid
from functools import cached_property

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.mzs3.ledger.events import LEDGER_COLUMNS, Phase
from dbt.adapters.mzs3.ledger.partitions import (
    drop_partitions,
    list_partitions,
    location_of,
    partition_sql,
)
from dbt.adapters.mzs3.ledger.relations import SourceRelations
from dbt.adapters.mzs3.spark import engine
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES
from dbt.adapters.mzs3.spark.sql import DELTA, quote_literal

WRITTEN_BY = "written_by"
"""The column, in formats with transactions, for the name under which a row was staged."""
_EMPTY_PREFIX = "nothing-"


class LedgerTable:
    """A ledger in a table of Parquet files: each phase of an epoch is a partition."""

    def __init__(self, spark: SparkSession, relations: SourceRelations) -> None:
        self._spark = spark
        self._name = relations.ledger

    def epochs(self) -> dict[str, set[str]]:
        """The phases of every epoch. If they are partitions, reads only the metastore."""
        phases: dict[str, set[str]] = {}
        for epoch, phase in self._phases():
            phases.setdefault(epoch, set()).add(phase)
        return phases

    def stage(self, epoch: str, events: DataFrame, *, fits_driver: bool = False) -> str:
        """Writes the events to a new folder, which nobody reads yet. Returns the folder's name.

        If they fit into its memory (`fits_driver`), the driver itself writes them where it can, in
        half the time of a Spark job.
        """
        folder = f"events-{uuid.uuid4().hex}"
        path = self._path(epoch, folder)
        events = events.coalesce(1)  # in one file, as queries open all epochs' files
        if fits_driver and not engine.is_remote(self._spark):
            engine.write_parquet(self._spark, path, events.toArrow())
        else:
            events.write.parquet(path)
        return folder

    def publish(self, epoch: str, phase: str, folder: str) -> bool:
        """Adds the phase with the staged events. Returns False if another run has added it."""
        return self._add_or_find(epoch, phase, folder) == folder

    def close(self, epoch: str, phase: str) -> bool:
        """Adds the phase without events, for good. Returns False if it was published before."""
        return self._add_or_find(epoch, phase, self.empty_folder()).startswith(_EMPTY_PREFIX)

    def add(self, epoch: str, phase: str, folder: str) -> None:
        """Adds the phase with the staged events. Raises if the phase exists."""
        partition = partition_sql({"epoch": epoch, "phase": phase})
        location = quote_literal(self._path(epoch, folder))
        self._spark.sql(f"ALTER TABLE {self._name} ADD {partition} LOCATION {location}")

    def folder(self, epoch: str, phase: str) -> str | None:
        """The name under which the phase was staged; None if the phase does not exist."""
        if phase not in self.epochs().get(epoch, ()):
            return None
        partition = {"epoch": epoch, "phase": phase}
        return location_of(self._spark, self._name, partition).rpartition("/")[2]

    def drop(self, partitions: list[tuple[str, str]]) -> None:
        """Drops these pairs of epoch and phase with their files. Safe to repeat."""
        values = [{"epoch": epoch, "phase": phase} for epoch, phase in partitions]
        drop_partitions(self._spark, self._name, values)

    @staticmethod
    def empty_folder() -> str:
        """A name for a folder that is never created."""
        return f"{_EMPTY_PREFIX}{uuid.uuid4().hex}"

    def _add_or_find(self, epoch: str, phase: str, folder: str) -> str:
        """Adds the phase if it is missing. Returns its folder: another one if it existed."""
        try:
            self.add(epoch, phase, folder)
        except SPARK_FAILURES:
            # The phase existed; or the statement succeeded, and its response was lost.
            if (existing := self.folder(epoch, phase)) is None:
                raise
            return existing
        return folder

    def _phases(self) -> list[tuple[str, ...]]:
        return list_partitions(self._spark, self._name)

    def _path(self, epoch: str, folder: str) -> str:
        return f"{self._location}/epoch={epoch}/{folder}"

    @cached_property
    def _location(self) -> str:
        return location_of(self._spark, self._name)


class _LedgerTransactions(LedgerTable):
    """A ledger in a format with transactions, where a `folder` only names staged events."""

    def __init__(self, spark: SparkSession, relations: SourceRelations) -> None:
        super().__init__(spark, relations)
        self._is_delta = relations.file_format == DELTA
        self._staged: dict[str, DataFrame] = {}

    def stage(self, epoch: str, events: DataFrame, *, fits_driver: bool = False) -> str:
        folder = f"events-{uuid.uuid4().hex}"
        self._staged[folder] = events.coalesce(1).localCheckpoint()
        return folder

    def add(self, epoch: str, phase: str, folder: str) -> None:
        rows = self._rows(epoch, phase, folder)
        if self._is_delta:
            transaction = {"txnAppId": f"{epoch}/{phase}", "txnVersion": "1"}
            rows.writeTo(self._name).options(**transaction).append()
            # Delta skips a recorded transaction without an error: check whose rows exist.
            if self.folder(epoch, phase) == folder or rows.isEmpty():
                return
        else:
            current = f"SELECT snapshot_id FROM {self._name}.refs WHERE name = 'main'"
            base = self._spark.sql(current).first()
            if self.folder(epoch, phase) is None:
                # A table without a snapshot has no rows: there is nothing to validate.
                since = {"validate-from-snapshot-id": str(base[0])} if base else {}
                writer = rows.writeTo(self._name).option("isolation-level", "serializable")
                writer.options(**since).overwrite(
                    (F.col("epoch") == epoch) & (F.col("phase") == phase)
                )
                return
        raise PySparkException(f"{epoch}/{phase} already exists")

    def folder(self, epoch: str, phase: str) -> str | None:
        writers = self._spark.table(self._name).where(phase_sql(epoch, phase)).select(WRITTEN_BY)
        row = writers.first()
        return row[0] if row else None

    def drop(self, partitions: list[tuple[str, str]]) -> None:
        condition = " OR ".join(f"({phase_sql(epoch, phase)})" for epoch, phase in partitions)
        self._spark.sql(f"DELETE FROM {self._name} WHERE {condition}")

    def _phases(self) -> list[tuple[str, ...]]:
        phases = self._spark.table(self._name).select("epoch", "phase").distinct()
        return [*map(tuple, phases.collect())]

    def _rows(self, epoch: str, phase: str, folder: str) -> DataFrame:
        """The rows to add: staged events, or for an `empty_folder` those that close the phase."""
        phase_column = F.lit(phase)
        if folder in self._staged:
            events = self._staged[folder]
        else:
            nulls = (F.lit(None).cast(kind).alias(name) for name, kind in LEDGER_COLUMNS.items())
            events = self._spark.range(1).select(*nulls)
            if phase == Phase.COMMIT:
                phase_column = F.explode(F.array(F.lit(phase), F.lit(Phase.VOID)))
        return events.select(
            "*",
            F.lit(epoch).alias("epoch"),
            phase_column.alias("phase"),
            F.lit(folder).alias(WRITTEN_BY),
        )


def phase_sql(epoch: str, phase: str) -> str:
    """The SQL condition that selects one phase of an epoch."""
    return f"epoch = {quote_literal(epoch)} AND phase = {quote_literal(phase)}"


def ledger_table(spark: SparkSession, relations: SourceRelations) -> LedgerTable:
    """The table of the source's ledger, as the class for its format."""
    kind = _LedgerTransactions if relations.has_transactions else LedgerTable
    return kind(spark, relations)
