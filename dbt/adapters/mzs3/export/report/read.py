"""Reads the history of exports, and writes the page about it to a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.export.history_table import TABLE
from dbt.adapters.mzs3.export.report.page import render_report
from dbt.adapters.mzs3.export.report.summary import MAX_RUNS, ReportedRun
from dbt.adapters.mzs3.spark.failure import explain
from dbt.adapters.mzs3.spark.sql import qualified_name, quote_identifier

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MOMENTS = ("started", "ended")

MOST_DAYS = 3660
_FILE = "copy_report.html"


def write_report(spark: SparkSession, request: ReportRequest) -> Path:
    """Writes the page, atomically replacing an existing file; returns its path.

    If the schema has no history, the page says so. Raises ConfigError for a path that can't be
    written, and an Mzs3Error if Spark can't read the table.
    """
    now = datetime.now(timezone.utc)
    since = now - timedelta(days=request.days)
    page = render_report(
        read_runs(spark, request.schema, since=since),
        now=now,
        since=since,
        subject=f"Schema {request.schema}",
    )
    path = request.path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # The file is replaced atomically, so that no browser loads half a page.
        whole = path.with_name(f".{path.name}.{os.getpid()}")
        whole.write_text(page, encoding="utf-8")
        whole.replace(path)
    except (OSError, ValueError) as exc:  # ValueError: a name that no file can have
        problem = f"path {str(path)!r} can't be written: {exc}"
        raise ConfigError("copy_report", [problem]) from exc
    return path


def read_runs(spark: SparkSession, schema: str, *, since: datetime) -> Iterator[ReportedRun]:
    """The runs that started at `since` or later, newest first, at most MAX_RUNS + 1.

    Empty if there is no table. Raises an Mzs3Error if Spark can't read it.
    """
    table = qualified_name(schema, TABLE)
    micros = (since - _EPOCH) // timedelta(microseconds=1)
    try:
        if not spark.catalog.tableExists(table):
            return
        # Runs of an earlier version have made a table with fewer columns.
        present = spark.table(table).columns
        # Times are read as numbers: PySpark would convert them to the machine's time zone.
        columns = (
            f"unix_micros({name}) as {name}" if name in _MOMENTS else quote_identifier(name)
            for name, default in ((each.name, each.default) for each in fields(ReportedRun))
            if name in present or default is MISSING
        )
        query = f"""
            select {", ".join(columns)}
            from {table}
            where day >= '{since.astimezone(timezone.utc).date()}'
              and started >= timestamp_micros({micros})
            order by started desc
            limit {MAX_RUNS + 1}
        """
        yield from map(_run, spark.sql(query).toLocalIterator(prefetchPartitions=False))
    except PySparkException as exc:
        raise explain(exc) from exc


def _run(row: Row) -> ReportedRun:
    values = row.asDict()
    for moment in _MOMENTS:
        if values[moment] is not None:
            values[moment] = _EPOCH + timedelta(microseconds=values[moment])
    return ReportedRun(**values)


@dataclass(frozen=True)
class ReportRequest:
    """A page to write to `path`, about the last `days` days of the history in `schema`."""

    schema: str
    path: Path
    days: int

    @classmethod
    def of(cls, schema: Any, path: Any, days: Any) -> ReportRequest:
        """Parses a user's arguments. Raises ConfigError with all their problems."""
        problems = []
        if not isinstance(schema, str) or not all(part.strip() for part in schema.split(".")):
            problems.append(
                f"schema must be a name such as analytics or catalog.schema, not {schema!r}"
            )
        if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= MOST_DAYS:
            problems.append(f"days must be a whole number from 1 to {MOST_DAYS}, not {days!r}")
        if not isinstance(path, str) or not path.strip():
            problems.append(f"path must name a file, such as target/{_FILE}, not {path!r}")
        elif path.endswith("/") or os.path.isdir(path):  # noqa: PTH112 - False for what can't be a path
            problems.append(
                f"path must name a file, and {path!r} is a directory; a file in it would be "
                f"{str(Path(path) / _FILE)!r}"
            )
        if problems:
            raise ConfigError("copy_report", problems)
        return cls(schema, Path(path), days)
