"""What a queue told, beside new objects, put on record; then its messages are deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from dbt.adapters.mzs3.csv_source.ledger import OBJECT_COLUMNS, Ledger, next_epoch
from dbt.adapters.mzs3.csv_source.queue.events import ObjectEvent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from dbt.adapters.mzs3.csv_source.definition import SourceDefinition
    from dbt.adapters.mzs3.csv_source.queue.inbox import Inbox
    from dbt.adapters.mzs3.csv_source.voice import Voice

REMOVED = "removed"
GONE = "gone"
_SCHEMA = pa.schema([("object", pa.string()), ("state", pa.string()), ("error", pa.string())])
_OBJECTS = pa.schema(
    [
        ("object", pa.string()),
        ("etag", pa.string()),
        ("size", pa.int64()),
        ("last_modified", pa.timestamp("us", tz="UTC")),
    ]
)


def announced(spark: SparkSession, inbox: Inbox, bucket: str) -> DataFrame:
    """The objects that the queue told of and S3 has: object, etag, size, last_modified."""
    inbox.receive()
    found = inbox.found
    columns = [
        [f"s3://{bucket}/{one.key}" for one in found],
        [one.etag for one in found],
        [one.size for one in found],
        [one.last_modified for one in found],
    ]
    return spark.createDataFrame(pa.table(columns, schema=_OBJECTS))


def settle(
    spark: SparkSession,
    definition: SourceDefinition,
    ledger: Ledger,
    inbox: Inbox,
    voice: Voice,
) -> None:
    """All that the messages told is on record, and the messages are deleted.

    Call it once what was `announced` is committed, or known, or in the backlog. A removed object
    keeps its rows: that is noted in the ledger if it was ingested, else counted in the log. So is
    an object that was announced and gone when it was looked for.
    """
    events = [*((REMOVED, one) for one in inbox.removed), *((GONE, one) for one in inbox.gone)]
    if events:
        _write_notes(spark, definition, ledger, events, voice)
    inbox.acknowledge()


def _write_notes(
    spark: SparkSession,
    definition: SourceDefinition,
    ledger: Ledger,
    events: list[tuple[str, ObjectEvent]],
    voice: Voice,
) -> None:
    columns = [
        [f"s3://{definition.location.bucket}/{event.key}" for _, event in events],
        [state for state, _ in events],
        [_text(state, event) for state, event in events],
    ]
    told = spark.createDataFrame(pa.table(columns, schema=_SCHEMA))
    ingested = ledger.committed().select("object").distinct().withColumn("known", F.lit(True))
    nothing = [F.lit(None).alias(name) for name in OBJECT_COLUMNS if name != "object"]
    notes = (
        told.join(ingested, "object", "left")
        .where((F.col("state") == GONE) | F.col("known"))
        .select("object", *nothing, "state", "error")
        .persist()
    )
    try:
        count = notes.count()
        if count:
            ledger.write_note(next_epoch(ledger.epochs()), notes)
    finally:
        notes.unpersist()
    if unknown := len(events) - count:
        noun = "object that was" if unknown == 1 else "objects that were"
        voice.say(f"{definition.name}: the queue told of {unknown} removed {noun} never ingested")


def _text(state: str, event: ObjectEvent) -> str:
    if state == REMOVED:
        return f"it was removed from S3 ({event.name}, {event.time}); its rows stay"
    return (
        f"it was announced ({event.name}, {event.time}), and gone when it was looked for; rows "
        "that were ingested of it before stay"
    )
