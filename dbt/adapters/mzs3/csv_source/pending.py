"""How much a run that began now would have to take; nothing is written for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dbt.adapters.mzs3.csv_source.ledger import Ledger
from dbt.adapters.mzs3.csv_source.listing import new_objects
from dbt.adapters.mzs3.csv_source.operation import reading, relations_of
from dbt.adapters.mzs3.csv_source.scan import listed_objects
from dbt.adapters.mzs3.spark.ship import ship_executor_code

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt.adapters.mzs3.aws.connection import AwsConnection
    from dbt.adapters.mzs3.csv_source.definition import SourceDefinition


@dataclass(frozen=True)
class Pending:
    """Objects that are to be taken, whatever limits a run has, and their bytes in S3."""

    objects: int
    bytes: int


def read_pending(
    spark: SparkSession, definition: SourceDefinition, connection: AwsConnection
) -> Pending:
    """What is listed now and not in the ledger as done with. Raises SourceError."""
    ship_executor_code()
    relations = relations_of(definition)
    with reading(spark, definition.name):
        if not spark.catalog.tableExists(relations.ledger):
            listed = listed_objects(spark, definition, connection).objects
            size = F.coalesce(F.sum("size"), F.lit(0))
            found = listed.agg(F.count(F.lit(1)).alias("objects"), size.alias("bytes")).first()
            return Pending(found["objects"], found["bytes"])
        ledger = Ledger(spark, relations)
        with new_objects(spark, definition, connection, ledger) as batch:
            return Pending(
                batch.objects + batch.waiting_objects, batch.bytes + batch.waiting_bytes
            )
