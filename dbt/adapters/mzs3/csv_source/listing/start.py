"""Where the listing of a source starts: at its first key, unless new keys sort after old ones."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dbt.adapters.mzs3.csv_source.config.intake import KeyOrder
from dbt.adapters.mzs3.csv_source.ledger.events import State

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dbt.adapters.mzs3.csv_source.definition import SourceDefinition
    from dbt.adapters.mzs3.csv_source.ledger.ledger import Ledger

HOURS_AGAIN = 2
"""What was modified in the newest hours in which anything was is listed again: so many of them."""

_OPEN = 1 << 40
_S_PER_HOUR = 3600


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
    is_open = F.col("shown.state").isin(*State.OPEN) | F.col("known").isin(*State.OPEN)
    hour = F.floor(F.unix_timestamp("shown.last_modified") / _S_PER_HOUR)
    hours = objects.groupBy(F.when(is_open, F.lit(_OPEN)).otherwise(hour).alias("hour"))
    newest = hours.agg(F.min("object").alias("lowest")).orderBy(F.desc_nulls_last("hour"))
    found = newest.limit(HOURS_AGAIN + 1).collect()
    if found and found[0]["hour"] != _OPEN:
        found = found[:HOURS_AGAIN]
    return min((row["lowest"] for row in found), default=None)
