"""Cuts large objects into ranges, so that several tasks read one; exact with quoted newlines.

Each range is fetched once. Its bytes wait on the executors' disks until all ranges are surveyed:
only then is it known where in a range a record begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.mzs3.formats.read.chunks import BLOCK_BYTES
from dbt.adapters.mzs3.formats.read.compression import NONE, compression_by_name
from dbt.adapters.mzs3.formats.read.encoding import UTF_8
from dbt.adapters.mzs3.formats.read.format import CSV, JSONL
from dbt.adapters.mzs3.formats.read.object_error import ObjectError
from dbt.adapters.mzs3.formats.read.text import TextFormat
from dbt.adapters.mzs3.ledger.rows_table import RowsTable
from dbt.adapters.mzs3.source.executor import ranges
from dbt.adapters.mzs3.source.executor.fetch import FetchSpec, format_of
from dbt.adapters.mzs3.source.executor.ranges import LargeObject
from dbt.adapters.mzs3.source.executor.stored_object import S3Object
from dbt.adapters.mzs3.spark.frames import default_parallelism
from dbt.adapters.mzs3.spark.job import shipped
from dbt.adapters.mzs3.store.opened import open_store
from dbt.adapters.mzs3.store.prefix import map_concurrently

RANGE_BYTES = 32 * 1024 * 1024


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
    if spec.format == CSV and not spec.dialect.can_be_cut:
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
    """The object, with where its records begin; None if it is not plain text with this header.

    Only its start shows that: in a later range, compressed bytes can't be told from text.
    """
    key, etag, size = row["key"], row["etag"], row["size"]
    stored = S3Object(open_store(spec.connection, spec.location), spec.location, key, etag, size)
    plain = format_of(replace(spec, compression=NONE))
    assert isinstance(plain, TextFormat)
    with suppress(ObjectError):
        decoder = plain.decoder(spec.header, spec.columns)
        # Several such objects may be looked at at the same time, on the driver.
        begin = plain.first(stored, decoder.begin, BLOCK_BYTES)
        if begin is not None and begin[1].byte < size:
            layout, chunk = begin
            start = chunk._replace(data=b"")
            return LargeObject(key, etag, size, utc(row["last_modified"]), start, layout)
    return None


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
        for index, start in enumerate(range(each.start.byte, each.size, RANGE_BYTES))
    ]
    numbered = [(*values, position) for position, values in enumerate(pieces)]
    by_line = spec.format == JSONL or spec.dialect.lines_are_records
    quote = b"" if by_line else spec.dialect.quote.encode()
    read = shipped(ranges.read_ranges, spec, quote)
    blocks = (
        spark.createDataFrame(numbered, f"{ranges.RANGES_DDL}, position int")
        .repartitionById(len(pieces), F.col("position"))
        .drop("position")
        .mapInArrow(read, ranges.BLOCKS_DDL)
        .persist(StorageLevel.DISK_ONLY)
    )
    try:
        surveys: list[list[ranges.Survey]] = [[] for _ in objects]
        ends = blocks.where(F.col("survey").isNotNull()).select("object", "range", "survey")
        for row in sorted(ends.collect(), key=lambda row: (row["object"], row["range"])):
            surveys[row["object"]].append(ranges.survey_of(row["survey"]))
        planned = [
            (each, ranges.plan_ranges(surveys_of_object, each.start))
            for each, surveys_of_object in zip(objects, surveys, strict=True)
        ]
        yield table.rows_from(blocks, spec, ranges.range_rows, format_of(spec), planned)
    finally:
        blocks.unpersist()
