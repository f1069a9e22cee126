"""The listing of a source's location as a DataFrame: small ones at once, large ones by tasks.

The driver lists the first page. The rest of the key space is cut into pieces that tasks list in
parallel; each key is in exactly one piece, whatever keys are added and removed meanwhile. The cuts
matter only for the speed: they follow the keys in the ledger, or, without any, the folders. If
there are no folders either, there is one piece.
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

# Pieces for each task that can run at a time: some hold many more keys than others.
PIECES_PER_TASK = 4
# The fewest pages of a piece: its task lists whole pages, and so reads beyond its end.
PAGES_PER_PIECE = 8
SAMPLE_ONE_IN = 4096
"""A listing is cut at a sample of the ledger's objects: one in this many."""
MAX_REQUESTS = 16
"""The most requests that are made to find folders at which a listing is cut."""
HOURS_AGAIN = 2
"""With ascending keys, objects of this many newest hours are listed again."""

_HOUR_OF_OPEN = 1 << 40  # stands for all open objects; later than any hour
_S_PER_HOUR = 3600
_PIECES = pa.schema([("piece", pa.int32()), ("after", pa.string()), ("last", pa.string())])


def listing_name(definition: SourceDefinition) -> str:
    """The name of a listing in the ledger: the location and the pattern."""
    return f"{definition.location.uri}{definition.pattern}"


def listing_start(ledger: Ledger, definition: SourceDefinition) -> tuple[str | None, int | None]:
    """Returns the key after which to list, None for a full listing; and the start of the listing
    in seconds since 1970, if the ledger has to record it. It records the full listings of sources
    whose new keys sort after old ones."""
    if not definition.keys_ascend:
        return None, None
    now = int(time.time())
    last = ledger.last_listing(listing_name(definition))
    if last is None or not 0 <= now - last < definition.full_listing_hours * _S_PER_HOUR:
        return None, now
    prefix = definition.location.uri_of("")
    lowest = _lowest(ledger.events().where(F.startswith("object", F.lit(prefix))))
    # A key without its last character sorts before the key, and few others are between them.
    return None if lowest is None else lowest[len(prefix) : -1], None


def objects_after(
    after: str | None, location: S3Location, objects: DataFrame, beside: DataFrame | None
) -> DataFrame:
    """The ledger's objects that a listing after this key may have, or that `beside` has."""
    if after is None:
        return objects
    start = F.lit(location.uri_of(after))
    listed = objects.where(F.col("object") > start)
    if beside is None:
        return listed
    before = objects.where(F.col("object") <= start)
    return listed.unionByName(before.join(beside.select("object"), "object", "left_semi"))


def _lowest(events: DataFrame) -> str | None:
    """The lowest object that is open, or was modified in the newest hours; None if none is."""
    # Only the columns that are needed here: there may be millions of objects.
    objects = events.groupBy("object").agg(
        F.max_by(F.struct("state", "last_modified"), "position").alias("latest"),
        F.max_by("state", F.when(F.col("is_decision"), F.col("position"))).alias("decision"),
    )
    is_open = F.col("latest.state").isin(*State.OPEN) | F.col("decision").isin(*State.OPEN)
    hour = F.floor(F.unix_timestamp("latest.last_modified") / _S_PER_HOUR)
    hours = objects.groupBy(F.when(is_open, F.lit(_HOUR_OF_OPEN)).otherwise(hour).alias("hour"))
    newest = hours.agg(F.min("object").alias("lowest")).orderBy(F.desc_nulls_last("hour"))
    hour_rows = newest.limit(HOURS_AGAIN + 1).collect()
    if hour_rows and hour_rows[0]["hour"] != _HOUR_OF_OPEN:
        hour_rows = hour_rows[:HOURS_AGAIN]
    return min((row["lowest"] for row in hour_rows), default=None)


def listed_objects(
    run: SourceRun, *, after: str | None = None, ledger: Ledger | None = None
) -> tuple[DataFrame, bool]:
    """The matching objects whose keys sort after `after`: object, etag, size, last_modified; and
    whether the driver has them all. If not, tasks list them each time the frame is computed.

    Empty for a source that has only a queue. Raises S3Error.
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
    """Cuts the key space after the first page into as many pieces as are worthwhile."""
    location = run.definition.location
    if ledger is not None and (sampled := ledger.sample(SAMPLE_ONE_IN)):
        keys = [location.key_of(uri) for uri in sampled]
        worthwhile = len(keys) * SAMPLE_ONE_IN // KEYS_PER_PAGE // PAGES_PER_PIECE
        max_pieces = PIECES_PER_TASK * default_parallelism(run.spark) if worthwhile > 1 else 1
        return cut(keys, min(worthwhile, max_pieces), end)
    if not page.folders:
        return [KeyRange(end)]
    prefix = listed_prefix(location, run.definition.pattern)
    max_pieces = PIECES_PER_TASK * default_parallelism(run.spark)
    # The first page is in one folder: as folders may be large, their subfolders count too.
    deep = page.folders == 1
    per_piece = 1 if deep else PAGES_PER_PIECE * page.folders
    within = replace(location, prefix=prefix)
    marks = folders_after(store, within, end, max_pieces * per_piece, deep=deep)
    return cut(marks, max_pieces if deep else min(max_pieces, len(marks) // per_piece), end)


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
    """About `wanted` folders within a location that sort after a key, in order.

    Each ends in a slash. With `deep`, also folders in folders, if there are not enough. At most
    `MAX_REQUESTS` requests are made, so some folders may be missing. Raises S3Error.
    """
    names: set[str] = set()
    # Not every store returns the folder in which `after` is; with `deep`, it is needed.
    start = "" if deep else after
    folders, requests = [within.prefix], 0
    # Level by level, as folders of the same level are about equally large.
    for folder in folders:
        with explained(f"listing {within.uri_of(folder)}", "s3:ListBucket"):
            for page in store.pages(folder, after=start, folders=True):
                names.update(name for name in page.folders if name > after)
                requests += 1
                if len(names) >= wanted or requests == MAX_REQUESTS:
                    return sorted(names)
                if deep:
                    folders += page.folders
    return sorted(names)
