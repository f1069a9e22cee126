"""The table of a ledger, and the compare-and-set by which one of two runs decides an epoch.

To add a partition is strict: of two runs that add the same one, the second is refused, and can
see which files the first one's has. So an epoch's commit partition is either that of its own run,
with its events, or an empty one that another run has put in its place: then the epoch is void.
"""

from __future__ import annotations

import uuid

from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.mzs3.csv_source.ledger.partitions import (
    drop_partitions,
    list_partitions,
    location_of,
    partition_sql,
)
from dbt.adapters.mzs3.csv_source.relations import SourceRelations
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES
from dbt.adapters.mzs3.spark.sql import quote_literal

_EMPTY = "nothing-"


class LedgerTable:
    """The partitions of a ledger, each of an epoch and a phase."""

    def __init__(self, spark: SparkSession, relations: SourceRelations) -> None:
        self._spark = spark
        self._name = relations.ledger

    def epochs(self) -> dict[str, set[str]]:
        """Every epoch with its phases, from the metastore alone: no file is read."""
        found: dict[str, set[str]] = {}
        for epoch, phase in list_partitions(self._spark, self._name):
            found.setdefault(epoch, set()).add(phase)
        return found

    def insert(self, epoch: str, phase: str, events: DataFrame) -> None:
        """Writes the events as this partition, unless it is there already."""
        publish(self, epoch, phase, self.stage(epoch, events))

    def stage(self, epoch: str, events: DataFrame) -> str:
        """Writes the events to a folder of their own, which nobody reads; its name."""
        folder = f"events-{uuid.uuid4().hex}"
        events.write.parquet(self._path(epoch, folder))
        return folder

    def add(self, epoch: str, phase: str, folder: str) -> None:
        """Adds the partition with what is in the folder. Raises if it is there already."""
        partition = partition_sql({"epoch": epoch, "phase": phase})
        place = quote_literal(self._path(epoch, folder))
        self._spark.sql(f"ALTER TABLE {self._name} ADD {partition} LOCATION {place}")

    def folder(self, epoch: str, phase: str) -> str | None:
        """The folder of a partition; None if there is no such partition."""
        if phase not in self.epochs().get(epoch, ()):
            return None
        partition = {"epoch": epoch, "phase": phase}
        return location_of(self._spark, self._name, partition).rpartition("/")[2]

    def drop(self, partitions: list[tuple[str, str]]) -> None:
        """Drops these pairs of epoch and phase, files and all; safe to repeat."""
        named = [{"epoch": epoch, "phase": phase} for epoch, phase in partitions]
        drop_partitions(self._spark, self._name, named)

    def _path(self, epoch: str, folder: str) -> str:
        return f"{location_of(self._spark, self._name)}/epoch={epoch}/{folder}"


def publish(table: LedgerTable, epoch: str, phase: str, folder: str) -> bool:
    """Adds the partition with what is in this folder; False if another was there before."""
    return _added(table, epoch, phase, folder) == folder


def close(table: LedgerTable, epoch: str, phase: str) -> bool:
    """Adds the partition as one that stays empty; False if it was published before."""
    return _added(table, epoch, phase, f"{_EMPTY}{uuid.uuid4().hex}").startswith(_EMPTY)


def _added(table: LedgerTable, epoch: str, phase: str, folder: str) -> str:
    """The folder of the partition, which is this one unless the partition was there before."""
    try:
        table.add(epoch, phase, folder)
    except SPARK_FAILURES:
        # Refused; or it took effect, and the answer was lost.
        there = table.folder(epoch, phase)
        if there is None:
            raise
        return there
    return folder
