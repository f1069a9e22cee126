"""What a queue told, as a run needs it: new objects for its plan, the rest for the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from dbt.adapters.mzs3.csv_source.decisions import TAKEN_COLUMNS, is_any, is_visible
from dbt.adapters.mzs3.csv_source.events import (
    FETCHED,
    LISTED,
    OPEN_STATES,
    REMOVED,
    RETRIED,
    SETTLED_STATES,
)
from dbt.adapters.mzs3.csv_source.ledger import Ledger, next_epoch
from dbt.adapters.mzs3.csv_source.queue.inbox import MAX_MESSAGES
from dbt.adapters.mzs3.spark.persisted import persisted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from dbt.adapters.mzs3.csv_source.definition import SourceDefinition
    from dbt.adapters.mzs3.csv_source.queue.events import ObjectEvent
    from dbt.adapters.mzs3.csv_source.queue.inbox import Inbox
    from dbt.adapters.mzs3.csv_source.voice import Voice

_OBJECTS = pa.schema(
    [
        ("object", pa.string()),
        ("etag", pa.string()),
        ("size", pa.int64()),
        ("last_modified", pa.timestamp("us", tz="UTC")),
    ]
)
_GONE_SCHEMA = pa.schema(
    [("object", pa.string()), ("announced", pa.bool_()), ("text", pa.string())]
)


def announced(spark: SparkSession, definition: SourceDefinition, inbox: Inbox) -> DataFrame:
    """The objects that the queue told of and S3 has: object, etag, size, last_modified."""
    found = inbox.found
    columns = [
        [f"s3://{definition.location.bucket}/{one.key}" for one in found],
        [one.etag for one in found],
        [one.size for one in found],
        [one.last_modified for one in found],
    ]
    return spark.createDataFrame(pa.table(columns, schema=_OBJECTS))


def look_again(definition: SourceDefinition, ledger: Ledger, inbox: Inbox) -> None:
    """The inbox has what failed, or is to be taken again, as S3 has it now.

    A queue does not tell of it again, and without a listing nothing else does. What only waits
    for its turn is not looked at: it may be much.
    """
    if definition.discovery.bucket_scan:
        return
    shown = F.col("shown.state")
    since_planned = F.col("shown.epoch") > F.coalesce(F.col("known.epoch"), F.lit(0))
    again = is_any(shown, (RETRIED,)) | (is_any(shown, OPEN_STATES) & since_planned)
    open_ones = ledger.objects().where(F.col("object").isNotNull() & again)
    # What was planned beside others and never tried comes last: it is as it was most likely.
    first = open_ones.orderBy(is_any(shown, (LISTED,)), "object").limit(MAX_MESSAGES)
    start = len(f"s3://{definition.location.bucket}/")
    inbox.look_again([row["object"][start:] for row in first.select("object").collect()])


def note_what_is_gone(
    spark: SparkSession,
    definition: SourceDefinition,
    ledger: Ledger,
    inbox: Inbox,
    voice: Voice,
) -> None:
    """The ledger says of every object that is gone why it is not taken, or that its rows stay.

    An object whose rows are visible is fetched, or what else was settled, and has the reason
    beside it. Any other that waits, that failed, or that was announced and is gone, is removed.
    What was removed and never known is counted in the log. Safe to repeat: nothing is noted twice.
    """
    events = [
        *((False, one) for one in inbox.removed),
        *((True, one) for one in inbox.gone),
    ]
    if not events:
        return
    columns = [
        [f"s3://{definition.location.bucket}/{event.key}" for _, event in events],
        [was_announced for was_announced, _ in events],
        [_text(was_announced, event) for was_announced, event in events],
    ]
    told = spark.createDataFrame(pa.table(columns, schema=_GONE_SCHEMA))
    with persisted(_with_what_is_known(told, ledger)) as known:
        counts = known.agg(
            F.count_if(F.col("noteworthy")).alias("notes"),
            F.count_if(F.col("unknown") & ~F.col("announced")).alias("unknown"),
        ).first()
        if counts["notes"]:
            notes = known.where("noteworthy").drop("noteworthy", "unknown", "announced")
            ledger.write_note(next_epoch(ledger.epochs()), notes)
    if unknown := counts["unknown"]:
        noun = "object that was" if unknown == 1 else "objects that were"
        voice.say(f"{definition.name}: the queue told of {unknown} removed {noun} never ingested")


def _with_what_is_known(told: DataFrame, ledger: Ledger) -> DataFrame:
    """What was told with the columns of a note; whether it is one, and of an unknown object."""
    known = ledger.objects().where(F.col("object").isNotNull()).alias("k")
    joined = told.alias("t").join(known, F.col("t.object") == F.col("k.object"), "left")
    unknown = F.col("k.object").isNull()
    settled = is_any(F.col("k.known.state"), SETTLED_STATES)
    is_open = is_any(F.col("k.shown.state"), OPEN_STATES)
    said = F.coalesce(F.col("k.known.error") == F.col("t.text"), F.lit(False))
    visible = is_visible("k.") & ~said
    state = F.when(settled, F.col("k.known.state")).when(is_visible("k."), F.lit(FETCHED))

    def last(name: str) -> Column:
        known = F.coalesce(F.col(f"k.known.{name}"), F.col(f"k.shown.{name}"))
        # Rows that stay do so under the ETag they have, whatever was to take their place.
        kept = is_visible("k.") & ~settled
        return F.when(kept, F.col(f"k.taken.{name}")).otherwise(known).alias(name)

    return joined.select(
        F.col("t.object").alias("object"),
        last("etag"),
        last("size"),
        last("last_modified"),
        F.coalesce(state, F.lit(REMOVED)).alias("state"),
        *(F.when(state == FETCHED, F.col(f"k.taken.{n}")).alias(n) for n in TAKEN_COLUMNS),
        F.col("t.text").alias("error"),
        (visible | is_open | (unknown & F.col("t.announced"))).alias("noteworthy"),
        unknown.alias("unknown"),
        F.col("t.announced").alias("announced"),
    )


def _text(was_announced: bool, event: ObjectEvent) -> str:
    if not event.name:
        return (
            "it was gone when its turn came again, or the pattern leaves it out; rows that were "
            "ingested of it stay"
        )
    if was_announced:
        what = "it was announced, and was gone when it was looked for"
    else:
        what = "it was removed from S3"
    return f"{what} ({event.name}, {event.time}); rows that were ingested of it stay"
