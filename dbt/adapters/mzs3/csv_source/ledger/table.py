"""The table of a ledger, and the one step by which exactly one of two runs decides an epoch.

A partition is added strictly: of two runs that add the same one, the second is refused, and can
see which files the first one's has. So an epoch's commit partition is either that of its own run,
with its events, or an empty one that another run has put in its place: then the epoch is void.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from dbt.adapters.mzs3.csv_source.ledger.partitions import location_of, partition_sql
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES
from dbt.adapters.mzs3.spark.sql import quote_literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from dbt.adapters.mzs3.csv_source.relations import SourceRelations

_EMPTY = "nothing-"


class LedgerTable:
    """The partitions of a ledger: which there are, adding one, dropping some."""

    def __init__(self, spark: SparkSession, relations: SourceRelations) -> None:
        self._spark = spark
        self._name = relations.ledger

    def epochs(self) -> dict[str, set[str]]:
        """Every epoch with its phases, from the metastore alone: no file is read."""
        found: dict[str, set[str]] = {}
        for row in self._spark.sql(f"SHOW PARTITIONS {self._name}").collect():
            epoch, phase = (part.partition("=")[2] for part in row["partition"].split("/"))
            found.setdefault(epoch, set()).add(phase)
        return found

    def insert(self, epoch: str, phase: str, events: DataFrame) -> None:
        """The events are in this partition, unless it was there already."""
        publish(self, epoch, phase, self.stage(epoch, events))

    def stage(self, epoch: str, events: DataFrame) -> str:
        """The events are in a folder of their own, which nobody reads; its name."""
        folder = f"events-{uuid.uuid4().hex}"
        events.write.parquet(self._path(epoch, folder))
        return folder

    def add(self, epoch: str, phase: str, folder: str) -> None:
        """The partition is there, with what is in the folder. Raises if it is there already."""
        place = quote_literal(self._path(epoch, folder))
        partition = _partition(epoch, phase)
        self._spark.sql(f"ALTER TABLE {self._name} ADD {partition} LOCATION {place}")

    def folder(self, epoch: str, phase: str) -> str | None:
        """The folder of a partition; None if there is no such partition."""
        if phase not in self.epochs().get(epoch, ()):
            return None
        named = {"epoch": epoch, "phase": phase}
        return location_of(self._spark, self._name, named).rpartition("/")[2]

    def drop(self, partitions: list[tuple[str, str]]) -> None:
        """These pairs of epoch and phase are gone, files and all; safe to repeat."""
        named = ", ".join(_partition(epoch, phase) for epoch, phase in partitions)
        self._spark.sql(f"ALTER TABLE {self._name} DROP IF EXISTS {named}")

    def _path(self, epoch: str, folder: str) -> str:
        return f"{location_of(self._spark, self._name)}/epoch={epoch}/{folder}"


def publish(table: LedgerTable, epoch: str, phase: str, folder: str) -> bool:
    """Whether the partition has what is in this folder now; False if another was there before."""
    try:
        table.add(epoch, phase, folder)
    except SPARK_FAILURES:
        # Refused; or it took effect, and the answer was lost.
        there = table.folder(epoch, phase)
        if there is None:
            raise
        return there == folder
    return True


def close(table: LedgerTable, epoch: str, phase: str) -> bool:
    """Whether that partition is, and stays, empty; False if it was published before."""
    folder = f"{_EMPTY}{uuid.uuid4().hex}"
    try:
        table.add(epoch, phase, folder)
    except SPARK_FAILURES:
        there = table.folder(epoch, phase)
        if there is None:
            raise
        return there.startswith(_EMPTY)
    return True


def _partition(epoch: str, phase: str) -> str:
    return partition_sql({"epoch": epoch, "phase": phase})
