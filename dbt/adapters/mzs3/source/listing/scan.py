"""The listing of a source's location as a DataFrame: small ones at once, large ones by tasks.

The first page is the driver's. If there are more, the rest of the key space is cut into pieces
that tasks list side by side, each key by one of them, whatever keys come and go meanwhile. Where
it is cut matters for the time alone: the keys that the ledger has say how they are spread; without
any, folders do. Keys without folders of which the ledger knows none are one piece.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt.adapters.mzs3.ledger.events import State
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.source.executor.listing import (
    LISTING_DDL,
    FirstPage,
    KeyRange,
    as_batch,
    cut,
    first_page,
    list_objects,
    listed_prefix,
)
from dbt.adapters.mzs3.source.options import SourceDefinition
from dbt.adapters.mzs3.source.run import SourceRun
from dbt.adapters.mzs3.spark.frames import default_parallelism
from dbt.adapters.mzs3.spark.job import shipped
from dbt.adapters.mzs3.spark.sql import quote_literal
from dbt.adapters.mzs3.spark.tables import arrow_frame
from dbt.adapters.mzs3.store.failures import explained
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.opened import open_store
from dbt.adapters.mzs3.store.store import KEYS_PER_PAGE, ListedObject, Store

# More than there are tasks at a time, as some pieces hold more keys than others.
PIECES_PER_TASK = 4
# A piece is listed up to the end of a page: so many pages at least, lest that cost too much.
PAGES_PER_PIECE = 8
SAMPLE_ONE_IN = 4096
"""How many objects on record each one stands for by which a listing is cut into pieces."""
MAX_REQUESTS = 16
"""How many requests may be made to find folders by which a listing is cut into pieces."""
HOURS_AGAIN = 2
"""What was modified in the newest hours in which anything was is listed again: so many of them."""

_HOUR_OF_OPEN = 1 << 40
_S_PER_HOUR = 3600
_PIECES = pa.schema([("piece", pa.int32()), ("after", pa.string()), ("last", pa.string())])


def listing_name(definition: SourceDefinition) -> str:
    """What is listed, as the ledger names it: the location and the pattern."""
    return f"{definition.location.uri}{definition.pattern}"


def listing_start(ledger: Ledger, definition: SourceDefinition) -> tuple[str | None, int | None]:
    """The key that all keys of the listing sort after, None unless the source says that new keys
    sort after old ones; and when the listing begins, in seconds since 1970, if it is a full one
    that is to be put on record."""
    if not definition.keys_ascend:
        return None, None
    now = int(time.time())
    last = ledger.last_listing(listing_name(definition))
    if last is None or not 0 <= now - last < definition.full_listing_hours * _S_PER_HOUR:
        return None, now
    prefix = definition.location.uri_of("")
    lowest = _lowest(ledger.events().where(F.startswith("object", F.lit(prefix))))
    # Without its last character a key sorts before itself, and before little else.
    return None if lowest is None else lowest[len(prefix) : -1], None


def objects_after(
    after: str | None, location: S3Location, objects: DataFrame, beside: DataFrame | None
) -> DataFrame:
    """What is known of the objects that such a listing may have, and of those `beside` it."""
    if after is None:
        return objects
    start = F.lit(location.uri_of(after))
    listed = objects.where(F.col("object") > start)
    if beside is None:
        return listed
    before = objects.where(F.col("object") <= start)
    return listed.unionByName(before.join(beside.select("object"), "object", "left_semi"))


def _lowest(events: DataFrame) -> str | None:
    """The first object that is open, or of the newest hours; None without any."""
    # No more of each object than is asked for here: there may be millions.
    objects = events.groupBy("object").agg(
        F.max_by(F.struct("state", "last_modified"), "position").alias("latest"),
        F.max_by("state", F.when(F.col("is_decision"), F.col("position"))).alias("decision"),
    )
    is_open = F.col("latest.state").isin(*State.OPEN) | F.col("decision").isin(*State.OPEN)
    hour = F.floor(F.unix_timestamp("latest.last_modified") / _S_PER_HOUR)
    hours = objects.groupBy(F.when(is_open, F.lit(_HOUR_OF_OPEN)).otherwise(hour).alias("hour"))
    newest = hours.agg(F.min("object").alias("lowest")).orderBy(F.desc_nulls_last("hour"))
    found = newest.limit(HOURS_AGAIN + 1).collect()
    if found and found[0]["hour"] != _HOUR_OF_OPEN:
        found = found[:HOURS_AGAIN]
    return min((row["lowest"] for row in found), default=None)


def listed_objects(
    run: SourceRun, *, after: str | None = None, ledger: Ledger | None = None
) -> tuple[DataFrame, bool]:
    """The matching objects whose keys sort after `after`: object, etag, size, last_modified; and
    whether the driver has them all: else tasks list each time they are computed.

    There are none of a source that a queue alone tells of its objects. Raises S3Error.
    """
    if not run.definition.discovery.bucket_scan:
        return object_frame(run, []), True
    store = open_store(run.connection, run.definition.location)
    page = first_page(store, run.definition.location, run.definition.pattern, after)
    objects = object_frame(run, page.objects)
    if page.end is not None and not page.in_order:
        objects = _listed_by_tasks(run, [KeyRange(after)])
    elif page.end is not None:
        pieces = _pieces(run, store, page, page.end, ledger)
        objects = objects.unionAll(_listed_by_tasks(run, pieces))
    return objects, page.end is None


def object_frame(run: SourceRun, objects: list[ListedObject]) -> DataFrame:
    """These objects of the source's bucket: object, etag, size, last_modified."""
    table = pa.Table.from_batches([as_batch(objects)])
    return _with_uris(run, arrow_frame(run.spark, table))


def _with_uris(run: SourceRun, listed: DataFrame) -> DataFrame:
    bucket = quote_literal(run.definition.location.uri_of(""))
    return listed.selectExpr(f"concat({bucket}, key) AS object", "etag", "size", "last_modified")


def _pieces(
    run: SourceRun, store: Store, page: FirstPage, end: str, ledger: Ledger | None
) -> list[KeyRange]:
    """The key space after the first page, in as many pieces as are worth it."""
    location = run.definition.location
    if ledger is not None and (known := ledger.sample(SAMPLE_ONE_IN)):
        keys = [location.key_of(uri) for uri in known]
        worth = len(keys) * SAMPLE_ONE_IN // KEYS_PER_PAGE // PAGES_PER_PIECE
        most = PIECES_PER_TASK * default_parallelism(run.spark) if worth > 1 else 1
        return cut(keys, min(worth, most), end)
    if not page.folders:
        return [KeyRange(end)]
    prefix = listed_prefix(location, run.definition.pattern)
    most = PIECES_PER_TASK * default_parallelism(run.spark)
    # Folders of more than a page each: then one folder may be cut into pieces too.
    deep = page.folders == 1
    per_piece = 1 if deep else PAGES_PER_PIECE * page.folders
    within = replace(location, prefix=prefix)
    marks = folders_after(store, within, end, most * per_piece, deep=deep)
    return cut(marks, most if deep else min(most, len(marks) // per_piece), end)


def _listed_by_tasks(run: SourceRun, pieces: Sequence[KeyRange]) -> DataFrame:
    """The matching objects of the pieces, each listed by one task."""
    rows = [{"piece": number, **asdict(piece)} for number, piece in enumerate(pieces)]
    frame = run.spark.createDataFrame(pa.Table.from_pylist(rows, _PIECES))
    if len(pieces) > 1:
        frame = frame.repartitionById(len(pieces), F.col("piece"))
    location, pattern = run.definition.location, run.definition.pattern
    listing = shipped(list_objects, run.connection, location, pattern)
    return _with_uris(run, frame.select("after", "last").mapInArrow(listing, LISTING_DDL))


def folders_after(
    store: Store, within: S3Location, after: str, wanted: int, *, deep: bool
) -> list[str]:
    """Folders within a location that begin after a key, in order: `wanted` of them, about.

    Each ends in a slash. With `deep` folders in folders too, where there are not enough. There may
    be more of which nothing is known: at most `MAX_REQUESTS` are made. Raises S3Error.
    """
    found: set[str] = set()
    # Not every store shows the folder in which the listing begins, whose folders are wanted.
    start = "" if deep else after
    folders, requests = [within.prefix], 0
    # Level by level, as those of a level are about as large as each other.
    for folder in folders:
        with explained(f"listing {within.uri_of(folder)}", "s3:ListBucket"):
            for page in store.pages(folder, after=start, folders=True):
                found.update(name for name in page.folders if name > after)
                requests += 1
                if len(found) >= wanted or requests == MAX_REQUESTS:
                    return sorted(found)
                if deep:
                    folders += page.folders
    return sorted(found)
