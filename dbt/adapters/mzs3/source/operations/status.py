"""The status of a source, from its ledger alone."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from dbt.adapters.mzs3.ledger.compaction import committed_epochs
from dbt.adapters.mzs3.ledger.events import IS_VISIBLE, State, is_any_sql
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.source.listing.plan import run_limits
from dbt.adapters.mzs3.source.options import SourceDefinition
from dbt.adapters.mzs3.source.report import objects_hint
from dbt.adapters.mzs3.source.run import source_settings
from dbt.adapters.mzs3.source.tables import existing_relations
from dbt.adapters.mzs3.spark.frames import first_row
from dbt.adapters.mzs3.text import bytes_text, largest_units, table_lines

OK = "ok"
WAITING = "waiting"
IN_ERROR = "in error"
NEVER = "never ingested"

_RIGHT = dict.fromkeys(("objects", "waiting", "bytes waiting", "runs left", "lag", "epochs"), ">")
_ALIGNED = {"source": "<", "state": "<", **_RIGHT, "last event": "<"}

_IS_OPEN = f"object IS NOT NULL AND {is_any_sql('latest.state', State.OPEN)}"
_HAS_FAILED = f"object IS NOT NULL AND latest.state = '{State.FAILED}'"
_NONE_FAILED = f"object IS NULL AND latest.state = '{State.FAILED}'"
_TOTALS = (
    f"count_if(object IS NOT NULL AND {IS_VISIBLE}) AS objects",
    f"count_if({_IS_OPEN}) AS waiting",
    f"coalesce(sum(latest.size) FILTER (WHERE {_IS_OPEN}), 0) AS waiting_bytes",
    f"unix_timestamp(min(latest.last_modified) FILTER (WHERE {_IS_OPEN})) AS oldest",
    "unix_timestamp(max(latest.at)) AS last_event",
    f"max(struct(latest.epoch, latest.error, object)) FILTER (WHERE {_HAS_FAILED}) AS of_object",
    f"max(struct(latest.epoch, latest.error)) FILTER (WHERE {_NONE_FAILED}) AS of_none",
    "coalesce(max(fetched.epoch), 0) AS last_commit",
)
# A failure without an object counts until the next commit.
_UNNAMED = "CASE WHEN of_none.epoch > last_commit THEN of_none.error END"
_SUMMARY = (
    *("objects", "waiting", "waiting_bytes", "last_event", "of_object.object AS failed"),
    "CASE WHEN oldest IS NOT NULL THEN greatest(0, unix_timestamp() - oldest) END AS lag",
    f"coalesce(of_object.error, {_UNNAMED}) AS last_error",
)


@dataclass(frozen=True)
class SourceStatus:
    """The status of a source by its ledger, which lacks objects that no run has seen yet.

    `objects` have rows in the source; `waiting` objects are listed, failed or to be ingested
    again, which takes about `waiting_runs` runs. `lag` is how many seconds ago the oldest waiting
    object was last modified. `epochs` were committed. `last_event` is in seconds since 1970.
    `failed` is the object of the last error, if that has one.
    """

    source: str
    state: str
    objects: int = 0
    waiting: int = 0
    waiting_bytes: int = 0
    waiting_runs: int = 0
    lag: int | None = None
    epochs: int = 0
    last_event: int | None = None
    last_error: str | None = None
    failed: str | None = None

    def cells(self) -> tuple[str, ...]:
        """The status as cells of a table, without the error."""
        at = self.last_event
        return (
            self.source,
            self.state,
            str(self.objects),
            str(self.waiting),
            bytes_text(self.waiting_bytes) if self.waiting else "-",
            str(self.waiting_runs) if self.waiting else "-",
            "-" if self.lag is None else lag_text(self.lag),
            str(self.epochs),
            "-" if at is None else time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(at)),
        )


def read_status(spark: SparkSession, definition: SourceDefinition) -> SourceStatus:
    """The source's status now; takes no lock and writes nothing. Raises SourceError."""
    name, relations = definition.name, definition.relations
    with source_settings(spark, name):
        if not spark.catalog.tableExists(relations.ledger):
            return SourceStatus(name, NEVER)
        ledger = Ledger(spark, existing_relations(spark, definition))
        epochs = ledger.epochs()
        summary = first_row(ledger.objects().selectExpr(*_TOTALS).selectExpr(*_SUMMARY))
        committed = committed_epochs(ledger, epochs)
        runs, waiting = 0, summary["waiting"]
        if waiting:
            limits = run_limits(ledger, definition.intake)
            runs = limits.runs(waiting, summary["waiting_bytes"])
    state = IN_ERROR if summary["last_error"] else WAITING if waiting else OK
    state = state if epochs else NEVER
    return SourceStatus(
        name,
        state,
        epochs=committed,
        waiting_runs=runs,
        **summary.asDict(),
    )


def status_table(statuses: Sequence[SourceStatus]) -> list[str]:
    """The lines of a table of the sources, sorted by name, with errors below it."""
    ordered = sorted(statuses, key=lambda status: status.source)
    rows = [(*_ALIGNED,), *(status.cells() for status in ordered)]
    lines = table_lines(rows, [*_ALIGNED.values()])
    for status in ordered:
        if status.last_error is None:
            continue
        # An error that names its source already does not name it twice.
        lines.append(f"{status.source}: {status.last_error.removeprefix(f'{status.source}: ')}")
        if status.failed is not None:
            skip = objects_hint("skip_s3_objects", status.source, [status.failed])
            lines[-1] += f"\n  to go on without it: {skip}"
    return lines


def lag_text(seconds: int) -> str:
    """The time in the two largest units it has, such as `2d 3h`."""
    return " ".join(f"{count}{unit[0]}" for count, unit in largest_units(seconds))
