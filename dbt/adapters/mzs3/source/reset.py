"""Drops all that was ingested of a source."""

from __future__ import annotations

from contextlib import nullcontext

from pyspark.sql import SparkSession

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.ledger.events import IS_VISIBLE
from dbt.adapters.mzs3.ledger.lease import SourceLock
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.ledger.relations import SourceRelations
from dbt.adapters.mzs3.ledger.rows_table import rows_table
from dbt.adapters.mzs3.ledger.views import foreign_views, read_views
from dbt.adapters.mzs3.source.options import SourceDefinition
from dbt.adapters.mzs3.source.run import locked_source
from dbt.adapters.mzs3.source.tables import (
    PINNED_PROPERTY,
    TABLE_PROPERTY,
    existing_relations,
    plain_name_kind,
)
from dbt.adapters.mzs3.spark.sql import qualified_name, quote_schema
from dbt.adapters.mzs3.spark.tables import read_properties

_LEDGER_HAS = {"object", "etag", "epoch", "phase"}


def reset_source(
    spark: SparkSession, definition: SourceDefinition, lock: SourceLock | None = None
) -> None:
    """Drops the source from Spark, except its schema and its lock, which the caller holds.

    Raises SourceError, with nothing dropped, if a relation of these names is not the source's; or
    if there are rows and ingested objects are moved or deleted: the rows may be all that is left
    of them. Also raises it once the lock is lost, as the run that took it may have created
    relations since. The rows are dropped last: if a reset dies on the way, runs fail and ask for
    another reset, and nothing is ingested twice. Tables with a generation are dropped after the
    views that name them, so some may stay until the next reset.
    """
    name, plain = definition.name, definition.relations
    relations = existing_relations(spark, definition)
    _require_own(spark, plain, name)
    if definition.after_commit.empties_location and _has_rows(spark, relations):
        action = definition.after_commit.action
        raise SourceError(
            f"{name}: with after_commit: {action.value}, objects are no longer in the location "
            "once they are ingested, and the rows of this source may be all that is left of them; "
            "nothing is dropped. To go on, put the objects back into the location, or accept that "
            "their rows are lost, and declare after_commit: keep until they are ingested again"
        )
    views = (relations.source, relations.objects, relations.rejects)
    drops = [f"VIEW IF EXISTS {view}" for view in views]
    drops += [
        f"{plain_name_kind(relations)} IF EXISTS {name}" for name in (plain.ledger, plain.rows)
    ]
    # Includes tables of runs or resets that died. Without PURGE, Iceberg would keep the files.
    drops += [f"TABLE IF EXISTS {table} PURGE" for table in _with_generation(spark, plain)]
    with nullcontext() if lock is None else lock.dropping_tables("nothing is dropped"):
        for done, drop in enumerate(drops):
            if lock is not None and done:
                lock.require("the source is dropped in part, and nothing more")
            spark.sql(f"DROP {drop}")


def reset_ingested(spark: SparkSession, definition: SourceDefinition) -> None:
    """Drops the source from Spark under its lock. Raises SourceError if there is none."""
    with locked_source(spark, definition) as lock:
        reset_source(spark, definition, lock)


def ingested_after_reset(definition: SourceDefinition) -> str:
    """What the run after a reset ingests, as part of a sentence."""
    if not definition.discovery.bucket_scan:
        return "only what the queue announces from then on"
    if definition.after_commit.empties_location:
        return "what is still in the location"
    return "every object again"


def _with_generation(spark: SparkSession, plain: SourceRelations) -> list[str]:
    """The source's tables of all generations, quoted as in SQL; no others with similar names."""
    rows = spark.sql(f"SHOW TABLES IN {quote_schema(plain.schema)}").collect()
    names = (row["tableName"] for row in rows)
    tables = [qualified_name(plain.schema, name) for name in names if plain.has_generation(name)]
    return [table for table in tables if read_properties(spark, table, TABLE_PROPERTY)]


def _has_rows(spark: SparkSession, relations: SourceRelations) -> bool:
    exists = spark.catalog.tableExists
    if exists(relations.ledger):
        return Ledger(spark, relations).objects().where(IS_VISIBLE).first() is not None
    # Without a ledger, nothing says which rows were committed.
    return exists(relations.rows) and not rows_table(spark, relations).is_empty()


def _require_own(spark: SparkSession, relations: SourceRelations, source: str) -> None:
    strangers = foreign_views(relations, read_views(spark, relations))
    if read_properties(spark, relations.rows, PINNED_PROPERTY) == {}:
        strangers.append(relations.display_name("__rows"))
    ledger = relations.ledger
    if spark.catalog.tableExists(ledger) and not {*spark.table(ledger).columns} >= _LEDGER_HAS:
        strangers.append(relations.display_name("__ledger"))
    if strangers:
        raise SourceError(
            f"{source}: {', '.join(strangers)} was not made by this source; nothing is dropped. "
            "Give the source another schema or identifier"
        )
