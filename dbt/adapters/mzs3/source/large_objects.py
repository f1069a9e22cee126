"""Cuts large objects into ranges, so that several tasks read one; exact with quoted newlines.

Each range is fetched once. Its bytes wait on the executors' disks until all ranges are surveyed:
only then is it known where in a range a record begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.mzs3.formats.read.columns import RecordLayout
from dbt.adapters.mzs3.formats.read.compression import (
    NONE,
    compression_by_name,
    compression_of,
)
from dbt.adapters.mzs3.formats.read.csv import CsvFormat
from dbt.adapters.mzs3.formats.read.encoding import UTF_8
from dbt.adapters.mzs3.formats.read.format import CSV, EXACT, JSONL
from dbt.adapters.mzs3.formats.read.header import layout_of
from dbt.adapters.mzs3.formats.read.object_error import ObjectError
from dbt.adapters.mzs3.formats.read.signatures import LOOK_BYTES, require_text
from dbt.adapters.mzs3.ledger.rows_table import RowsTable
from dbt.adapters.mzs3.source.executor import ranges
from dbt.adapters.mzs3.source.executor.fetch import FetchSpec
from dbt.adapters.mzs3.source.executor.stored_object import S3Object
from dbt.adapters.mzs3.spark.frames import default_parallelism
from dbt.adapters.mzs3.spark.job import shipped
from dbt.adapters.mzs3.store.opened import open_store
from dbt.adapters.mzs3.store.prefix import map_concurrently

RANGE_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class LargeObject:
    """An object that is worth cutting; `layout` says which fields of its records are columns."""

    key: str
    etag: str
    size: int
    modified: datetime
    layout: RecordLayout

    def starts(self) -> range:
        """Where each range begins."""
        return range(0, self.size, RANGE_BYTES)


def large_objects(spec: FetchSpec, objects: DataFrame, total_bytes: int) -> list[LargeObject]:
    """Those of `objects` so large that one task would still read when all others are done.

    Each is more than half of what a core has to read. An object that is compressed, no text, in
    another encoding, or has a wrong header is left to a single task, which reads all of it and
    reports what is wrong.
    """
    if total_bytes < 2 * RANGE_BYTES:
        return []
    if spec.format not in (CSV, JSONL) or spec.reading.encoding != UTF_8:
        return []
    cores = default_parallelism(objects.sparkSession)
    if cores < 2:
        return []
    least = max(2 * RANGE_BYTES, total_bytes // (2 * cores))
    # There are at most twice as many such objects as cores.
    rows = objects.where(F.col("size") >= least).collect()
    plain = [row for row in rows if compression_by_name(row["key"], spec.compression) == NONE]
    large = [each for each in map_concurrently(plain, partial(_large_object, spec)) if each]
    return sorted(large, key=lambda each: (-each.size, each.key))


def utc(collected: datetime) -> datetime:
    """The UTC time of a timestamp that Spark returned: it has no zone, and is local time."""
    return collected.astimezone(timezone.utc)


def _large_object(spec: FetchSpec, row: Row) -> LargeObject | None:
    key, etag, size = row["key"], row["etag"], row["size"]
    store = open_store(spec.connection, spec.location)
    stored = S3Object(store, spec.location, key, etag, size)
    try:
        layout = _layout_if_plain(spec, stored)
    except ObjectError:
        return None
    if layout is None:
        return None
    return LargeObject(key, etag, size, utc(row["last_modified"]), layout)


def _layout_if_plain(spec: FetchSpec, stored: S3Object) -> RecordLayout | None:
    """The layout of the object's records; None if it is compressed. Raises ObjectError.

    Reads the object's first bytes: later ranges do not show whether it is compressed.
    """
    start = stored.part(0, min(LOOK_BYTES, stored.size))
    if compression_of(start, stored.key, spec.compression, spec.reading.encoding) != NONE:
        return None
    require_text(start, spec.reading.encoding)
    if spec.format == JSONL or spec.header is None or spec.reading.header_match == EXACT:
        # Compared later: keys by the task of every range, the header by that of the first range.
        return RecordLayout.in_order(len(spec.columns))
    fields = CsvFormat(spec.dialect, NONE, spec.reading).fields(stored) or ()
    names = [field.name for field in fields]
    return layout_of(names, spec.header, spec.reading.header_match)


@contextmanager
def rows_in_ranges(
    spark: SparkSession, spec: FetchSpec, objects: Sequence[LargeObject], table: RowsTable
) -> Iterator[DataFrame]:
    """The rows of these objects, the same that `fetch_objects` makes; valid inside the context.

    On entry, fetches all objects to the executors' disks. Raises what Spark raises.
    """
    pieces = [
        (number, each.key, each.etag, index, start, min(start + RANGE_BYTES, each.size))
        for number, each in enumerate(objects)
        for index, start in enumerate(each.starts())
    ]
    numbered = [(*values, position) for position, values in enumerate(pieces)]
    quote = b"" if spec.format == JSONL else spec.dialect.quote.encode()
    read = shipped(ranges.read_ranges, spec.connection, spec.source, spec.location, quote)
    blocks = (
        spark.createDataFrame(numbered, f"{ranges.RANGES_DDL}, position int")
        .repartitionById(len(pieces), F.col("position"))
        .drop("position")
        .mapInArrow(read, ranges.BLOCKS_DDL)
        .persist(StorageLevel.DISK_ONLY)
    )
    try:
        range_of = _ranges(objects, blocks)
        yield table.rows_from(blocks, spec, ranges.range_rows, range_of, ranges.records_of(spec))
    finally:
        blocks.unpersist()


def _ranges(
    objects: Sequence[LargeObject], blocks: DataFrame
) -> dict[tuple[int, int], ranges.RangeOfObject]:
    """Every range, by its object's number and its own, from the surveys in `blocks`."""
    surveys: dict[int, list[ranges.Survey]] = {}
    rows = blocks.where(F.col("survey").isNotNull()).select("object", "range", "survey").collect()
    for row in sorted(rows, key=lambda row: (row["object"], row["range"])):
        surveys.setdefault(row["object"], []).append(ranges.survey_of(row["survey"]))
    return {
        (number, index): ranges.RangeOfObject(
            each.key, each.etag, each.modified, each.layout, start, plan
        )
        for number, each in enumerate(objects)
        for index, (start, plan) in enumerate(
            zip(each.starts(), ranges.plan_ranges(surveys[number]), strict=True)
        )
    }
