"""The listing of a source's location as a DataFrame: small ones at once, large ones by tasks.

The first page is the driver's. If there are more, the rest of the key space is cut into pieces
that tasks list side by side, each key by one of them, whatever keys come and go meanwhile. Where
it is cut matters for the time alone: the keys that the ledger has say how they are spread; without
any, folders do. Keys without folders of which the ledger knows none are one piece.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from dbt.adapters.mzs3.aws.client import s3_client
from dbt.adapters.mzs3.aws.failures import AwsFailure
from dbt.adapters.mzs3.csv_source.config.intake import KeyOrder, is_ordered
from dbt.adapters.mzs3.csv_source.executor.listing import (
    KEYS_PER_PAGE,
    LISTING_DDL,
    LISTING_SCHEMA,
    FirstPage,
    KeyRange,
    as_batch,
    cut,
    first_page,
    list_objects,
    listed_prefix,
    listing_failed,
)
from dbt.adapters.mzs3.csv_source.ledger.events import OPEN_STATES
from dbt.adapters.mzs3.spark.settings import default_parallelism

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from pyspark.sql import DataFrame, SparkSession

    from dbt.adapters.mzs3.aws.connection import AwsConnection
    from dbt.adapters.mzs3.csv_source.definition import SourceDefinition
    from dbt.adapters.mzs3.csv_source.ledger.ledger import Ledger

OBJECT_DDL = "object string, etag string, size bigint, last_modified timestamp"
# More than there are tasks at a time, as some pieces hold more keys than others.
PIECES_PER_TASK = 4
# A piece is listed up to the end of a page: so many pages at least, lest that cost too much.
PAGES_PER_PIECE = 8
_PIECES = pa.schema([("piece", pa.int32()), ("after", pa.string()), ("last", pa.string())])

Sample = Callable[[], "tuple[Sequence[str], int]"]
"""Some of the keys that are known already, and of how many each is one; asked for if need be."""

HOURS_AGAIN = 2
"""What was modified in the newest hours in which anything was is listed again: so many of them."""

_OPEN = 1 << 40
_S_PER_HOUR = 3600

MAX_REQUESTS = 16


@dataclass(frozen=True)
class ObjectListing:
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
) -> ObjectListing:
    """The matching objects whose keys sort after `after`.

    None of a source that a queue alone tells of its objects. Raises S3Error.
    """
    if not definition.discovery.bucket_scan:
        return ObjectListing(spark.createDataFrame([], OBJECT_DDL), at_hand=True)
    client = s3_client(connection)
    page = first_page(client, definition.location, definition.pattern, after)
    listed = spark.createDataFrame(
        pa.Table.from_batches([as_batch(page.objects)], schema=LISTING_SCHEMA)
    )
    if page.end is not None and not (page.in_order and is_ordered(definition.location.bucket)):
        listed = _listed_by_tasks(spark, definition, connection, [KeyRange(after)])
    elif page.end is not None:
        rest = _pieces(spark, definition, client, page, page.end, known)
        listed = listed.unionAll(_listed_by_tasks(spark, definition, connection, rest))
    uri = F.concat(F.lit(f"s3://{definition.location.bucket}/"), F.col("key"))
    objects = listed.select(uri.alias("object"), "etag", "size", "last_modified")
    return ObjectListing(objects, at_hand=page.end is None)


def _pieces(
    spark: SparkSession,
    definition: SourceDefinition,
    client: S3Client,
    page: FirstPage,
    end: str,
    known: Sample,
) -> list[KeyRange]:
    """The key space behind the first page, in as many pieces as are worth it."""
    keys, one_in = known()
    if keys:
        pages = len(keys) * one_in // KEYS_PER_PAGE
        return cut(keys, _most(spark, pages), end)
    if not page.folders:
        return [KeyRange(end)]
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
    pieces: Sequence[KeyRange],
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


@dataclass(frozen=True)
class Start:
    """The listing has the keys that sort after `after`; with None it has them all.

    `full_since` is when it began, in seconds since 1970, if it is a full listing that is to be
    put on record.
    """

    after: str | None = None
    full_since: int | None = None

    def limit(
        self, objects: DataFrame, definition: SourceDefinition, beside: DataFrame | None
    ) -> DataFrame:
        """What is known of the objects that the listing may have, and of those `beside` it."""
        if self.after is None:
            return objects
        start = F.lit(f"s3://{definition.location.bucket}/{self.after}")
        listed = objects.where(F.col("object") > start)
        if beside is None:
            return listed
        before = objects.where(F.col("object") <= start)
        return listed.unionByName(before.join(beside.select("object"), "object", "left_semi"))


def listing_name(definition: SourceDefinition) -> str:
    """What is listed, as the ledger names it: the location and the pattern."""
    return f"{definition.location.uri}{definition.pattern}"


def listing_start(ledger: Ledger, definition: SourceDefinition) -> Start:
    """Where a listing that is done now starts."""
    listing = definition.listing
    if listing.order is KeyOrder.ANY:
        return Start()
    now = int(time.time())
    last = ledger.last_listing(listing_name(definition))
    if last is None or not 0 <= now - last < listing.full_hours * _S_PER_HOUR:
        return Start(full_since=now)
    prefix = f"s3://{definition.location.bucket}/"
    lowest = _lowest(ledger.events().where(F.startswith("object", F.lit(prefix))))
    # Without its last character a key sorts before itself, and before little else.
    return Start(None if lowest is None else lowest[len(prefix) : -1])


def _lowest(events: DataFrame) -> str | None:
    """The first object that is open, or of the newest hours; None without any."""
    # No more of each object than is asked for here: there may be millions.
    objects = events.groupBy("object").agg(
        F.max_by(F.struct("state", "last_modified"), "place").alias("shown"),
        F.max_by("state", F.when(F.col("counts"), F.col("place"))).alias("known"),
    )
    is_open = F.col("shown.state").isin(*OPEN_STATES) | F.col("known").isin(*OPEN_STATES)
    hour = F.floor(F.unix_timestamp("shown.last_modified") / _S_PER_HOUR)
    hours = objects.groupBy(F.when(is_open, F.lit(_OPEN)).otherwise(hour).alias("hour"))
    newest = hours.agg(F.min("object").alias("lowest")).orderBy(F.desc_nulls_last("hour"))
    found = newest.limit(HOURS_AGAIN + 1).collect()
    if found and found[0]["hour"] != _OPEN:
        found = found[:HOURS_AGAIN]
    return min((row["lowest"] for row in found), default=None)


def folders_after(
    client: S3Client,
    bucket: str,
    prefix: str,
    after: str,
    wanted: int,
    *,
    deep: bool,
    max_requests: int = MAX_REQUESTS,
) -> list[str]:
    """Folders below the prefix that begin after a key, in order: `wanted` of them, about.

    Each ends in a slash. With `deep` folders in folders too, where there are not enough. There may
    be more of which nothing is known: at most `max_requests` requests are made. Raises S3Error.
    """
    found: set[str] = set()
    # Level by level, as those of a level are about as large as each other.
    waiting: deque[tuple[str, str | None]] = deque([(prefix, None)])
    for _ in range(max_requests):
        if not waiting or len(found) >= wanted:
            break
        folder, token = waiting.popleft()
        # Not every store shows the folder in which the listing begins, whose folders are wanted.
        start = None if deep else after
        names, token = _folders(client, bucket, folder, start, token)
        if token is not None:
            waiting.appendleft((folder, token))
        found.update(name for name in names if name > after)
        if deep:
            waiting.extend((name, None) for name in names)
    return sorted(found)


def _folders(
    client: S3Client, bucket: str, folder: str, after: str | None, token: str | None
) -> tuple[list[str], str | None]:
    """One page of the folders that are directly in this one, and how to ask for the next page."""
    request: dict[str, Any] = {"Bucket": bucket, "Prefix": folder, "Delimiter": "/"}
    if after is not None:
        request["StartAfter"] = after
    if token is not None:
        request["ContinuationToken"] = token
    try:
        page = client.list_objects_v2(**request)
    except AwsFailure as exc:
        raise listing_failed(exc, bucket, folder) from exc
    names = [one["Prefix"] for one in page.get("CommonPrefixes", [])]
    return names, page.get("NextContinuationToken") if page.get("IsTruncated") else None
