"""What a queue and the ledger know of each other: objects to look up again, and those gone."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt.adapters.mzs3.ledger.events import OBJECT_COLUMNS, State, is_any_sql
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.source.listing.reconcile import TAKEN_COLUMNS, with_facts
from dbt.adapters.mzs3.source.queue.inbox import MAX_MESSAGES, Inbox
from dbt.adapters.mzs3.source.queue.messages import Kind, ObjectEvent
from dbt.adapters.mzs3.source.run import SourceRun
from dbt.adapters.mzs3.spark.frames import first_row, persisted


def look_again(run: SourceRun, ledger: Ledger, inbox: Inbox) -> None:
    """Looks up in S3 what failed, or is to be taken again, as if the queue had announced it.

    A queue does not tell of it again, and without a listing nothing else does. What only waits
    for its turn is not looked at: it may be much.
    """
    if run.definition.discovery.bucket_scan:
        return
    retried = is_any_sql("latest.state", (State.RETRIED,))
    since_planned = "latest.epoch > coalesce(decision.epoch, 0)"
    again = f"{retried} OR ({is_any_sql('latest.state', State.OPEN)} AND {since_planned})"
    open_ones = ledger.objects().where(f"object IS NOT NULL AND ({again})")
    # What was planned beside others and never tried comes last: it is as it was most likely.
    order = (F.expr(is_any_sql("latest.state", (State.LISTED,))), "object")
    first = open_ones.orderBy(*order).limit(MAX_MESSAGES)
    start = len(run.definition.location.uri_of(""))
    inbox.look_again([row["object"][start:] for row in first.select("object").collect()])


def note_what_is_gone(run: SourceRun, ledger: Ledger, inbox: Inbox) -> None:
    """Puts on record of every object that is gone why it is not taken, or that its rows stay.

    An object whose rows are visible is fetched, or what else was settled, and has the reason
    beside it. Any other that waits, that failed, or that was announced and is gone, is removed.
    What was removed and never known is counted in the log. Safe to repeat: nothing is noted twice.
    """
    if not inbox.gone:
        return
    columns = {
        "object": [run.definition.location.uri_of(event.key) for event in inbox.gone],
        "announced": [event.kind is Kind.CREATED for event in inbox.gone],
        "text": [_text(event) for event in inbox.gone],
    }
    announced = run.spark.createDataFrame(pa.table(columns))
    with persisted(_with_what_is_known(announced, ledger)) as known:
        never_ingested = "count_if(unknown AND NOT announced) AS unknown"
        counts = first_row(known.selectExpr("count_if(noteworthy) AS notes", never_ingested))
        if counts["notes"]:
            ledger.write_note(known.where("noteworthy").drop("noteworthy", "unknown", "announced"))
    if unknown := counts["unknown"]:
        noun = "object that was" if unknown == 1 else "objects that were"
        run.log.say(
            f"{run.definition.name}: the queue told of {unknown} removed {noun} never ingested"
        )


def _with_what_is_known(announced: DataFrame, ledger: Ledger) -> DataFrame:
    """The events with the columns of a note; whether it is one, and of an unknown object."""
    known = ledger.objects().where("object IS NOT NULL").alias("k")
    both = announced.alias("t").join(known, F.expr("t.object = k.object"), "left")
    gone = both.selectExpr(
        "t.*",
        "k.object IS NULL AS unknown",
        "false AS found",
        "CAST(NULL AS struct<etag: string, size: bigint, last_modified: timestamp>) AS now",
        "k.* EXCEPT (object)",
    )
    return with_facts(gone, complete=True).selectExpr(
        *(f"`{name}`" for name in (*OBJECT_COLUMNS, "state", *TAKEN_COLUMNS)),
        "text AS error",
        "visible AND NOT coalesce(decision.error = text, false) OR is_open "
        "OR (unknown AND announced) AS noteworthy",
        "unknown",
        "announced",
    )


def _text(event: ObjectEvent) -> str:
    what = "it was gone when its turn came again, or the pattern leaves it out"
    if event.name:
        what = "it was announced, and was gone when it was looked for"
        if event.kind is Kind.REMOVED:
            what = "it was removed from S3"
        what += f" ({event.name}, {event.time})"
    return f"{what}; rows that were ingested of it stay"
