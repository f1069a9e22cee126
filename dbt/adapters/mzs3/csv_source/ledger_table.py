"""The table of a ledger, and the one step by which exactly one of two runs decides an epoch.

A partition is added strictly: of two runs that add the same one, the second is refused, and can
see which files the first one's has. So an epoch's commit partition is either that of its own run,
with its events, or an empty one that another run has put in its place: then the epoch is void.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from dbt.adapters.mzs3.csv_source.relations import insert_partition
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
        """The events are in this partition, which may be there already."""
        insert_partition(self._spark, events, self._name, {"epoch": epoch, "phase": phase})

    def stage(self, epoch: str, events: DataFrame) -> str:
        """The events are in a folder of their own, which nobody reads; its name."""
        folder = f"events-{uuid.uuid4().hex}"
        events.write.parquet(self._path(epoch, folder))
        return folder

    def add(self, epoch: str, phase: str, folder: str) -> None:
        """The partition is there, with what is in the folder. Raises if it is there already."""
        place = quote_literal(self._path(epoch, folder))
        self._spark.sql(
            f"ALTER TABLE {self._name} ADD {_partition(epoch, phase)} LOCATION {place}"
        )

    def folder(self, epoch: str, phase: str) -> str | None:
        """The folder of a partition; None if there is no such partition."""
        if phase not in self.epochs().get(epoch, ()):
            return None
        return self._location(_partition(epoch, phase)).rpartition("/")[2]

    def drop(self, partitions: list[tuple[str, str]]) -> None:
        """These pairs of epoch and phase are gone, files and all; safe to repeat."""
        named = ", ".join(_partition(epoch, phase) for epoch, phase in partitions)
        self._spark.sql(f"ALTER TABLE {self._name} DROP IF EXISTS {named}")

    def _path(self, epoch: str, folder: str) -> str:
        return f"{self._location()}/epoch={epoch}/{folder}"

    def _location(self, partition: str = "") -> str:
        rows = self._spark.sql(f"DESCRIBE TABLE EXTENDED {self._name} {partition}").collect()
        names = [row["col_name"] for row in rows]
        # A column may have that name too; columns come first. Of a partition, the table's follows.
        detailed = next(n for n, name in enumerate(names) if name.startswith("# Detailed"))
        place: str = rows[names.index("Location", detailed)]["data_type"]
        return place.rstrip("/")


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
    return f"PARTITION (epoch = {quote_literal(epoch)}, phase = {quote_literal(phase)})"
