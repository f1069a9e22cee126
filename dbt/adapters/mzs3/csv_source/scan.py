"""The listing of a source's location as a DataFrame: small ones at once, large ones by tasks.

The first page is the driver's. If there are more, the rest of the key space is cut into pieces
that tasks list side by side, each key by one of them, whatever keys come and go meanwhile. Where
it is cut matters for the time alone: the keys that the ledger has say how they are spread; without
any, folders do. Keys without folders of which the ledger knows none are one piece.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from dbt.adapters.mzs3.aws.client import s3_client
from dbt.adapters.mzs3.csv_source.config.listing import is_ordered
from dbt.adapters.mzs3.csv_source.executor.listing import (
    KEYS_PER_PAGE,
    LISTING_DDL,
    LISTING_SCHEMA,
    FirstPage,
    as_batch,
    first_page,
    list_objects,
    listed_prefix,
)
from dbt.adapters.mzs3.csv_source.executor.pieces import Piece, cut
from dbt.adapters.mzs3.csv_source.folders import folders_after
from dbt.adapters.mzs3.spark.parallelism import default_parallelism

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from pyspark.sql import DataFrame, SparkSession

    from dbt.adapters.mzs3.aws.connection import AwsConnection
    from dbt.adapters.mzs3.csv_source.definition import SourceDefinition

OBJECT_DDL = "object string, etag string, size bigint, last_modified timestamp"
# More than there are tasks at a time, as some pieces hold more keys than others.
PIECES_PER_TASK = 4
# A piece is listed up to the end of a page: so many pages at least, lest that cost too much.
PAGES_PER_PIECE = 8
_PIECES = pa.schema([("piece", pa.int32()), ("after", pa.string()), ("last", pa.string())])

Sample = Callable[[], "tuple[Sequence[str], int]"]
"""Some of the keys that are known already, and of how many each is one; asked for if need be."""


@dataclass(frozen=True)
class Listed:
    """The matching objects: object, etag, size, last_modified.

    `at_hand` says that the driver has them all; else tasks list each time they are computed.
    """

    objects: DataFrame
    at_hand: bool


def nothing_known() -> tuple[Sequence[str], int]:
    """The sample of a source that has no ledger yet."""
    return (), 1


def listed_objects(
    spark: SparkSession,
    definition: SourceDefinition,
    connection: AwsConnection,
    *,
    after: str | None = None,
    known: Sample = nothing_known,
) -> Listed:
    """The matching objects whose keys sort after `after`.

    None of a source that a queue alone tells of its objects. Raises S3Error.
    """
    if not definition.discovery.bucket_scan:
        return Listed(spark.createDataFrame([], OBJECT_DDL), at_hand=True)
    client = s3_client(connection)
    page = first_page(client, definition.location, definition.pattern, after)
    listed = spark.createDataFrame(
        pa.Table.from_batches([as_batch(page.objects)], schema=LISTING_SCHEMA)
    )
    if page.end is not None and not (page.in_order and is_ordered(definition.location.bucket)):
        listed = _listed_by_tasks(spark, definition, connection, [Piece(after)])
    elif page.end is not None:
        rest = _pieces(spark, definition, client, page, page.end, known)
        listed = listed.unionAll(_listed_by_tasks(spark, definition, connection, rest))
    uri = F.concat(F.lit(f"s3://{definition.location.bucket}/"), F.col("key"))
    objects = listed.select(uri.alias("object"), "etag", "size", "last_modified")
    return Listed(objects, at_hand=page.end is None)


def _pieces(
    spark: SparkSession,
    definition: SourceDefinition,
    client: S3Client,
    page: FirstPage,
    end: str,
    known: Sample,
) -> list[Piece]:
    """The key space behind the first page, in as many pieces as are worth it."""
    keys, one_in = known()
    if keys:
        pages = len(keys) * one_in // KEYS_PER_PAGE
        return cut(keys, _most(spark, pages), end)
    if not page.folders:
        return [Piece(end)]
    prefix = listed_prefix(definition.location, definition.pattern)
    bucket = definition.location.bucket
    most = PIECES_PER_TASK * default_parallelism(spark)
    if page.folders == 1:
        # Folders of more than a page each: so what is in them may be told apart too.
        marks = folders_after(client, bucket, prefix, end, most, deep=True)
        return cut(marks, most, end)
    enough = most * PAGES_PER_PIECE * page.folders
    marks = folders_after(client, bucket, prefix, end, enough, deep=False)
    return cut(marks, min(most, len(marks) // page.folders // PAGES_PER_PIECE), end)


def _most(spark: SparkSession, pages: int) -> int:
    """How many pieces are worth it for so many pages."""
    worth = pages // PAGES_PER_PIECE
    return worth if worth < 2 else min(worth, PIECES_PER_TASK * default_parallelism(spark))


def _listed_by_tasks(
    spark: SparkSession,
    definition: SourceDefinition,
    connection: AwsConnection,
    pieces: Sequence[Piece],
) -> DataFrame:
    """The matching objects of the pieces, each listed by one task."""
    columns = [
        range(len(pieces)),
        [piece.after for piece in pieces],
        [piece.last for piece in pieces],
    ]
    frame = spark.createDataFrame(pa.table(columns, schema=_PIECES))
    if len(pieces) > 1:
        frame = frame.repartitionById(len(pieces), F.col("piece"))
    listing = list_objects(connection, definition.location, definition.pattern)
    return frame.select("after", "last").mapInArrow(listing, LISTING_DDL)
