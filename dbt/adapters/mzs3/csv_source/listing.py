"""Which objects an epoch takes: those of S3's listing that the ledger has not committed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from dbt.adapters.mzs3.csv_source.executor.listing import LISTING_DDL, list_objects
from dbt.adapters.mzs3.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from dbt.adapters.mzs3.aws.connection import AwsConnection
    from dbt.adapters.mzs3.csv_source.definition import SourceDefinition
    from dbt.adapters.mzs3.csv_source.ledger import Ledger


@dataclass(frozen=True)
class Batch:
    """Objects for one epoch, as a DataFrame of object, etag, size, last_modified; and totals."""

    frame: DataFrame
    objects: int
    bytes: int


@contextmanager
def new_objects(
    spark: SparkSession,
    definition: SourceDefinition,
    connection: AwsConnection,
    ledger: Ledger,
    announced: DataFrame | None = None,
) -> Iterator[Batch]:
    """The matching objects that no committed epoch has; listed once, never in the driver's memory.

    Keys may sort anywhere: the whole listing is compared, by object and ETag. `announced` are
    objects that a queue has told of; they come beside the listing, or in its place where the
    source does not list. Raises SourceError if an object that is committed was overwritten since.
    """
    known = ledger.committed().select(
        F.col("object").alias("known_object"), F.col("etag").alias("known_etag")
    )
    compared = (
        _candidates(spark, definition, connection, announced)
        .join(known, F.col("object") == F.col("known_object"), "left")
        .where(F.col("known_object").isNull() | (F.col("known_etag") != F.col("etag")))
        .persist()
    )
    try:
        new = F.col("known_object").isNull()
        overwritten = F.when(~new, F.struct("object", "known_etag", "etag"))
        found = compared.agg(
            F.count_if(new).alias("objects"),
            F.coalesce(F.sum(F.when(new, F.col("size"))), F.lit(0)).alias("bytes"),
            F.count(overwritten).alias("overwritten"),
            F.min(overwritten).alias("first"),
        ).first()
        if found["overwritten"]:
            raise SourceError(_overwritten_text(definition.name, found))
        # Spark may list again what it held: nothing overwritten gets in that way either.
        frame = compared.where(new).select("object", "etag", "size", "last_modified")
        yield Batch(frame, found["objects"], found["bytes"])
    finally:
        compared.unpersist()


def _candidates(
    spark: SparkSession,
    definition: SourceDefinition,
    connection: AwsConnection,
    announced: DataFrame | None,
) -> DataFrame:
    """Every object once, as it was last seen: object, etag, size, last_modified."""
    if announced is not None and not definition.discovery.bucket_scan:
        return announced
    uri = F.concat(F.lit(f"s3://{definition.location.bucket}/"), F.col("key"))
    listed = (
        spark.range(0, 1, 1, 1)
        .mapInArrow(list_objects(connection, definition.location, definition.pattern), LISTING_DDL)
        .select(uri.alias("object"), "etag", "size", "last_modified")
    )
    if announced is None:
        return listed
    last = F.max_by(F.struct("etag", "size", "last_modified"), "last_modified")
    both = listed.union(announced).groupBy("object").agg(last.alias("last"))
    return both.select("object", "last.*")


def _overwritten_text(source: str, found: Any) -> str:
    first = found["first"]
    more = f" (and {found['overwritten'] - 1} more)" if found["overwritten"] > 1 else ""
    return (
        f"{source}: object {first['object']}{more} was overwritten after it was ingested: its "
        f"ETag was {first['known_etag']} and is {first['etag']} now. With on_overwrite: fail the "
        "source stays in error: put the earlier object back, and the new content under a key of "
        "its own"
    )
