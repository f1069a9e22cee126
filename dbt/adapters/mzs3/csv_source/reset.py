"""Dropping all that was ingested of a source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt.adapters.mzs3.csv_source.properties import read_properties
from dbt.adapters.mzs3.csv_source.relations import (
    PINNED_PROPERTY,
    SourceRelations,
    foreign_views,
)
from dbt.adapters.mzs3.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LEDGER_HAS = {"object", "etag", "epoch", "phase"}


def drop_source(spark: SparkSession, relations: SourceRelations, source: str) -> None:
    """Nothing of the source is left in Spark but its schema and its lock, which the caller holds.

    Raises SourceError, with nothing dropped, if a relation of these names is somebody else's.
    The rows go last: if this dies on the way, the source says that its state is lost, and to be
    reset again; it ingests nothing twice.
    """
    strangers = _strangers(spark, relations)
    if strangers:
        raise SourceError(
            f"{source}: {', '.join(strangers)} was not made by this source; nothing is dropped. "
            "Give the source another schema or identifier"
        )
    for view in (relations.source, relations.objects, relations.rejects):
        spark.sql(f"DROP VIEW IF EXISTS {view}")
    for table in (relations.ledger, relations.rows):
        spark.sql(f"DROP TABLE IF EXISTS {table}")


def _strangers(spark: SparkSession, relations: SourceRelations) -> list[str]:
    exists = spark.catalog.tableExists
    found = foreign_views(spark, relations)
    if exists(relations.rows) and not read_properties(spark, relations.rows, PINNED_PROPERTY):
        found.append(relations.shown("__rows"))
    if exists(relations.ledger) and not set(spark.table(relations.ledger).columns) >= _LEDGER_HAS:
        found.append(relations.shown("__ledger"))
    return found
