"""Dropping all that was ingested of a source."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, NoReturn

from dbt.adapters.mzs3.csv_source.compaction import drop_epochs, written_epochs
from dbt.adapters.mzs3.csv_source.config.discovery import Discovery
from dbt.adapters.mzs3.csv_source.events import is_visible_sql
from dbt.adapters.mzs3.csv_source.ledger import Ledger
from dbt.adapters.mzs3.csv_source.operation import relations_of
from dbt.adapters.mzs3.csv_source.relations import (
    PINNED_PROPERTY,
    SourceRelations,
    foreign_views,
    made_as,
    read_views,
)
from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, readable
from dbt.adapters.mzs3.spark.sql import quote_identifier, quote_literal
from dbt.adapters.mzs3.spark.table_properties import read_properties

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt.adapters.mzs3.csv_source.definition import SourceDefinition
    from dbt.adapters.mzs3.csv_source.lock import SourceLock

_LEDGER_HAS = {"object", "etag", "epoch", "phase"}


def reset_source(
    spark: SparkSession, definition: SourceDefinition, lock: SourceLock | None = None
) -> None:
    """As `drop_source`, for a source whose rows can be had from S3 again.

    Raises SourceError, with nothing dropped, if there are rows and the source's objects are moved
    or deleted once they are ingested: the rows may be all there is left of them.
    """
    name, relations = definition.name, relations_of(definition)
    action = definition.discovery.after_commit.action
    _require_own(spark, relations, name)
    if definition.discovery.empties_location and _has_rows(spark, relations):
        raise SourceError(
            f"{name}: with after_commit: {action.value}, objects are no longer in the location "
            "once they are ingested, and the rows of this source may be all that is left of them; "
            "nothing is dropped. To go on, put the objects back into the location, or accept that "
            "their rows are lost, and declare after_commit: keep until they are ingested again"
        )
    drop_source(spark, relations, name, lock)


def ingested_after_reset(discovery: Discovery) -> str:
    """What the run after a reset ingests, as part of a sentence."""
    if not discovery.bucket_scan:
        return "only what the queue announces from then on"
    if discovery.empties_location:
        return "what is still in the location"
    return "every object again"


def drop_source(
    spark: SparkSession, relations: SourceRelations, source: str, lock: SourceLock | None = None
) -> None:
    """Nothing of the source is left in Spark but its schema and its lock, which the caller holds.

    Raises SourceError, with nothing dropped, if a relation of these names is somebody else's; and
    once the lock is no longer held, as what is there by then may be of who took it.
    The rows go last: if this dies on the way, the source says that its state is lost, and to be
    reset again, or ingests every object afresh; it ingests nothing twice.
    """
    _require_own(spark, relations, source)
    _Drop(spark, relations, source, lock).run()


class _Drop:
    """Drops the tables that are there when it is made, and none that is made later.

    A statement may reach the metastore long after the lock was looked at, when another run has
    made tables of the same names. So a table is renamed, and dropped only if it is the one that
    was there; else it gets its name back. It is emptied first, by the numbers of its epochs, as
    where folders can't be renamed all that is in them is copied.
    """

    def __init__(
        self,
        spark: SparkSession,
        relations: SourceRelations,
        source: str,
        lock: SourceLock | None,
    ) -> None:
        self._spark = spark
        self._relations = relations
        self._source = source
        self._lock = lock
        self._outcome = "nothing is dropped"
        # All of this is read before the lock is looked at, so that it is of who holds it.
        self._made = {name: made_as(spark, name) for name in (relations.ledger, relations.rows)}
        self._epochs = (
            [] if self._made[relations.rows] is None else written_epochs(spark, relations)
        )

    def run(self) -> None:
        relations = self._relations
        for view in (relations.source, relations.objects, relations.rejects):
            self._require_lock()
            self._spark.sql(f"DROP VIEW IF EXISTS {view}")
            self._outcome = "the source is dropped in part, and nothing more"
        self._drop(relations.ledger, "__ledger")
        drop_epochs(self._spark, relations, self._epochs, self._require_lock)
        self._drop(relations.rows, "__rows")
        self._require_lock()
        for table in _left_aside(self._spark, relations):
            self._spark.sql(f"DROP TABLE IF EXISTS {table}")

    def _require_lock(self) -> None:
        if self._lock is not None:
            self._lock.require(self._outcome)

    def _drop(self, table: str, suffix: str) -> None:
        made = self._made[table]
        self._require_lock()
        if made is None:
            return
        # One of an earlier version is found again by nobody if this dies before it is dropped.
        aside = self._relations.aside(suffix, made or uuid.uuid4().hex[:16])
        try:
            self._spark.sql(f"ALTER TABLE {table} RENAME TO {aside}")
        except SPARK_FAILURES:
            if made_as(self._spark, table) == made:  # this catalog renames nothing
                self._require_lock()
                self._spark.sql(f"DROP TABLE IF EXISTS {table}")
                return
            # Else the answer was lost, or the table went before.
        if made_as(self._spark, aside) not in (made, None):
            self._give_back(table, suffix, aside)
        self._spark.sql(f"DROP TABLE IF EXISTS {aside}")

    def _give_back(self, table: str, suffix: str, aside: str) -> NoReturn:
        shown = self._relations.shown(suffix)
        back = f"ALTER TABLE {aside} RENAME TO {table}"
        try:
            self._spark.sql(back)
        except SPARK_FAILURES as exc:
            raise SourceError(
                f"{self._source}: another run made {shown} anew while this one reset the source, "
                f"and it has another name now, as this failed: {back}: {readable(exc)}. Once no "
                "run is at work on the source, remove what is in its way, and rename it so"
            ) from exc
        raise SourceError(
            f"{self._source}: another run made {shown} anew while this one reset the source; "
            "it is left as it is, and nothing more is dropped. Run again"
        )


def _left_aside(spark: SparkSession, relations: SourceRelations) -> list[str]:
    """The tables that a reset renamed and, as it died, did not drop."""
    schema, name = quote_identifier(relations.schema), relations.identifier
    shown = spark.sql(f"SHOW TABLES IN {schema} LIKE {quote_literal(name + '__*')}").collect()
    renamed = re.compile(rf"{re.escape(name)}(__ledger|__rows)_([0-9a-f]{{16}})", re.IGNORECASE)
    matches = filter(None, (renamed.fullmatch(row["tableName"]) for row in shown))
    found = ((relations.aside(match[1], match[2]), match[2]) for match in matches)
    return [table for table, made in found if made_as(spark, table) == made]


def _has_rows(spark: SparkSession, relations: SourceRelations) -> bool:
    exists = spark.catalog.tableExists
    if exists(relations.ledger):
        return Ledger(spark, relations).objects().where(is_visible_sql()).first() is not None
    # Nothing says which of them were committed.
    return exists(relations.rows) and (
        spark.sql(f"SHOW PARTITIONS {relations.rows}").first() is not None
    )


def _require_own(spark: SparkSession, relations: SourceRelations, source: str) -> None:
    if strangers := _strangers(spark, relations):
        raise SourceError(
            f"{source}: {', '.join(strangers)} was not made by this source; nothing is dropped. "
            "Give the source another schema or identifier"
        )


def _strangers(spark: SparkSession, relations: SourceRelations) -> list[str]:
    exists = spark.catalog.tableExists
    found = foreign_views(relations, read_views(spark, relations))
    if read_properties(spark, relations.rows, PINNED_PROPERTY) == {}:
        found.append(relations.shown("__rows"))
    if exists(relations.ledger) and not set(spark.table(relations.ledger).columns) >= _LEDGER_HAS:
        found.append(relations.shown("__ledger"))
    return found
