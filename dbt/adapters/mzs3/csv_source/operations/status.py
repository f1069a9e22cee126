"""How a source stands, from its ledger alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.mzs3.csv_source.access import reading
from dbt.adapters.mzs3.csv_source.definition import SourceDefinition
from dbt.adapters.mzs3.csv_source.ledger.compaction import committed_epochs
from dbt.adapters.mzs3.csv_source.ledger.events import IS_VISIBLE, State
from dbt.adapters.mzs3.csv_source.ledger.ledger import Ledger
from dbt.adapters.mzs3.csv_source.report import objects_hint, size_text

OK = "ok"
WAITING = "waiting"
IN_ERROR = "in error"
NEVER = "never ingested"

_ALIGNED = {
    "source": str.ljust,
    "state": str.ljust,
    "objects": str.rjust,
    "waiting": str.rjust,
    "bytes waiting": str.rjust,
    "lag": str.rjust,
    "epochs": str.rjust,
    "last event": str.ljust,
}


@dataclass(frozen=True)
class SourceStatus:
    """What the ledger says of a source: never of objects that no run has seen yet.

    `objects` have rows in the source; `waiting` ones are listed, failed or to be taken again.
    `lag` is how long ago the oldest of those was last modified. `epochs` were committed. `failed`
    is the object that the last error is of, if it is of one.
    """

    source: str
    state: str
    objects: int = 0
    waiting: int = 0
    waiting_bytes: int = 0
    lag: timedelta | None = None
    epochs: int = 0
    last_event: datetime | None = None
    last_error: str | None = None
    failed: str | None = None

    def cells(self) -> tuple[str, ...]:
        """The status as a line of a table, but for the error."""
        at = self.last_event
        return (
            self.source,
            self.state,
            str(self.objects),
            str(self.waiting),
            size_text(self.waiting_bytes) if self.waiting else "-",
            "-" if self.lag is None else lag_text(self.lag),
            str(self.epochs),
            "-" if at is None else at.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%SZ"),
        )


def read_status(spark: SparkSession, definition: SourceDefinition) -> SourceStatus:
    """How the source stands now; waits for nobody, and writes nothing. Raises SourceError."""
    name, relations = definition.name, definition.relations
    with reading(spark, name):
        if not spark.catalog.tableExists(relations.ledger):
            return SourceStatus(name, NEVER)
        ledger = Ledger(spark, relations)
        epochs = ledger.epochs()
        found = _summary(ledger.objects())
        committed = committed_epochs(ledger, epochs)
    state = IN_ERROR if found["last_error"] else WAITING if found["waiting"] else OK
    lag, at = found.pop("lag"), found.pop("at")
    return SourceStatus(
        name,
        state if epochs else NEVER,
        lag=None if lag is None else timedelta(seconds=lag),
        epochs=committed,
        last_event=None if at is None else datetime.fromtimestamp(at, timezone.utc),
        **found,
    )


def _summary(objects: DataFrame) -> dict[str, Any]:
    """What the status says, times as seconds."""
    known = F.col("object").isNotNull()
    waits = known & F.col("shown.state").isin(*State.OPEN)
    failed = F.col("shown.state") == State.FAILED
    now = F.unix_timestamp(F.current_timestamp())
    oldest = F.unix_timestamp(F.min(F.when(waits, F.col("shown.last_modified"))))
    of_object = F.struct("shown.epoch", "shown.error", "object")
    # A failure of no object in particular is over once anything is committed.
    totals = objects.agg(
        F.count_if(known & F.expr(IS_VISIBLE)).alias("objects"),
        F.count_if(waits).alias("waiting"),
        F.coalesce(F.sum(F.when(waits, F.col("shown.size"))), F.lit(0)).alias("waiting_bytes"),
        F.when(oldest.isNotNull(), F.greatest(F.lit(0), now - oldest)).alias("lag"),
        F.unix_timestamp(F.max("shown.at")).alias("at"),
        F.max(F.when(failed & known, of_object)).alias("of_object"),
        F.max(F.when(failed & ~known, F.struct("shown.epoch", "shown.error"))).alias("of_none"),
        F.coalesce(F.max("taken.epoch"), F.lit(0)).alias("latest"),
    )
    unnamed = F.when(F.col("of_none.epoch") > F.col("latest"), F.col("of_none.error"))
    error = F.coalesce(F.col("of_object.error"), unnamed).alias("last_error")
    columns = ("objects", "waiting", "waiting_bytes", "lag", "at")
    found = totals.select(*columns, error, F.col("of_object.object").alias("failed")).first()
    return dict(found.asDict())


def status_table(statuses: Sequence[SourceStatus]) -> list[str]:
    """The lines of a table of the sources, in order of their names, errors below it."""
    ordered = sorted(statuses, key=lambda status: status.source)
    rows = [tuple(_ALIGNED), *(status.cells() for status in ordered)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = zip(_ALIGNED.values(), row, widths, strict=True)
        lines.append("  ".join(align(cell, width) for align, cell, width in cells).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    for status in ordered:
        if status.last_error is None:
            continue
        # An error that names its source already does not name it twice.
        lines.append(f"{status.source}: {status.last_error.removeprefix(f'{status.source}: ')}")
        if status.failed is not None:
            skip = objects_hint("skip_s3_objects", status.source, [status.failed])
            lines[-1] += f"\n  to go on without it: {skip}"
    return lines


def lag_text(lag: timedelta) -> str:
    """The time in the two largest units it has, such as `2d 3h`."""
    seconds = int(lag.total_seconds())
    parts = (seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60, seconds % 60)
    units = [f"{part}{unit}" for part, unit in zip(parts, "dhms", strict=True)]
    first = next((n for n, part in enumerate(parts) if part), 3)
    return " ".join(units[first : first + 2])
