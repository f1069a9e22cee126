"""Access to one source beside its runs: settings, the lock, errors in the user's words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.ledger.lease import UNKNOWN, LockTable, Owner, SourceLock
from dbt.adapters.mzs3.source.definition import SourceDefinition
from dbt.adapters.mzs3.source.made import made_relations
from dbt.adapters.mzs3.source.tables import is_there
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, readable
from dbt.adapters.mzs3.spark.settings import settings

OWN_SETTINGS = {
    # Names of columns come out of objects: SQL must hold them as they are.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    # Columns may be made of those before them.
    "spark.sql.lateralColumnAlias.enableImplicitResolution": "true",
    # What is persisted is often small: without this, it has as many tasks as shuffles may have.
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
}


@contextmanager
def reading(spark: SparkSession, source: str) -> Iterator[None]:
    """Sets what a source's SQL needs; raises what Spark raises as SourceError."""
    try:
        with settings(spark, OWN_SETTINGS):
            yield
    except SPARK_FAILURES as exc:
        raise SourceError(f"{source}: {readable(exc)}") from exc


@contextmanager
def changing(spark: SparkSession, definition: SourceDefinition) -> Iterator[SourceLock]:
    """As `reading`, with the source's lock held. Raises SourceError where the source has no table,
    or its tables are another one's."""
    name = definition.name
    with reading(spark, name):
        if not is_there(spark, definition):
            raise SourceError(f"{name}: it was never ingested; there is nothing to change")
        made_relations(spark, definition)  # no lock is taken of another source
        with SourceLock(spark, definition.relations, name) as lock:
            yield lock


def unlock(spark: SparkSession, definition: SourceDefinition) -> Owner | None:
    """Takes the source's lock away, so that whoever had it commits nothing more; from whom.

    Raises SourceError for what is no lock.
    """
    table = LockTable(spark, definition.relations)
    with reading(spark, definition.name):
        made_relations(spark, definition)  # or it is another source's lock
        holder = table.holder()
        if holder is None:
            return None
        if holder == UNKNOWN:
            raise SourceError(
                f"{definition.name}: {definition.relations.shown('__lock')} is no lock that a run "
                "has taken. Drop it, or give the source another schema or identifier"
            )
        table.take_away(holder.token)
    return holder.owner
