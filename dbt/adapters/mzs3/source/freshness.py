"""How fresh a source is, by S3's timestamps, and how many objects are yet to be ingested.

Spark is not needed if the source lists its location and its objects stay there. If ingested
objects leave the location, the newest of the listed and the ingested objects counts; if the source
has only a queue, the newest ingested object.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timezone

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from dbt.adapters.mzs3.ledger.events import IS_VISIBLE
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.source.executor.listing import iter_pages
from dbt.adapters.mzs3.source.listing.plan import Refusal, new_objects
from dbt.adapters.mzs3.source.listing.scan import listed_objects
from dbt.adapters.mzs3.source.options import SourceDefinition
from dbt.adapters.mzs3.source.run import SourceRun, source_settings
from dbt.adapters.mzs3.source.tables import existing_relations, exists_in_spark, require_ledger
from dbt.adapters.mzs3.spark.frames import first_row
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.opened import open_store


@dataclass(frozen=True)
class Freshness:
    """The newest LastModified among matching objects, None without any; their number and bytes."""

    newest: datetime | None
    objects: int
    bytes: int


def read_freshness(definition: SourceDefinition, connection: AwsConnection) -> Freshness:
    """The freshness of the objects in S3. Holds one page of them in memory. Raises S3Error."""
    newest: datetime | None = None
    objects = size = 0
    store = open_store(connection, definition.location)
    for page in iter_pages(store, definition.location, definition.pattern):
        latest = max(listed.modified for listed in page)
        newest = latest if newest is None else max(newest, latest)
        objects += len(page)
        size += sum(listed.size for listed in page)
    return Freshness(newest, objects, size)


def read_ingested_freshness(spark: SparkSession, definition: SourceDefinition) -> Freshness:
    """The freshness of the objects whose rows are visible; without any before the first run.

    Raises SourceError if the ledger can't be read.
    """
    with source_settings(spark, definition.name):
        if not exists_in_spark(spark, definition):
            return Freshness(None, 0, 0)
        require_ledger(spark, definition)
        relations = existing_relations(spark, definition)
        visible = Ledger(spark, relations).objects().where(IS_VISIBLE)
        size = F.coalesce(F.sum("fetched.size"), F.lit(0))
        totals = (F.max("fetched.last_modified"), F.count(F.lit(1)), size)
        newest, objects, size = first_row(visible.agg(*totals))
    # Spark returns timestamps without a zone, in this process's local time.
    return Freshness(newest and newest.astimezone(timezone.utc), objects, size)


def with_ingested(listed: Freshness, ingested: Freshness) -> Freshness:
    """`listed` with the newer of both times, as ingested objects may have left the location."""
    newest = max(filter(None, (listed.newest, ingested.newest)), default=None)
    return replace(listed, newest=newest)


def read_pending(
    spark: SparkSession, definition: SourceDefinition, connection: AwsConnection
) -> tuple[int, int]:
    """The number of listed objects yet to be ingested, and their bytes. Raises SourceError."""
    run = SourceRun(spark, definition, connection)
    with source_settings(spark, definition.name):
        if not spark.catalog.tableExists(definition.relations.ledger):
            size = F.coalesce(F.sum("size"), F.lit(0))
            row = first_row(listed_objects(run)[0].agg(F.count(F.lit(1)), size))
            return row[0], row[1]
        ledger = Ledger(spark, existing_relations(spark, definition))
        with new_objects(run, ledger) as plan:
            if isinstance(plan, Refusal):
                return plan.objects, plan.bytes
            return plan.objects + plan.waiting_objects, plan.bytes + plan.waiting_bytes
