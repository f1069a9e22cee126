"""The second pass over a large object: the records of its ranges, now that they are known."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow as pa

from dbt.adapters.mzs3.csv_source.executor.chunks import Chunk, Chunks, has_stray_quote
from dbt.adapters.mzs3.csv_source.executor.columns import RecordLayout
from dbt.adapters.mzs3.csv_source.executor.decode import Decoder
from dbt.adapters.mzs3.csv_source.executor.fetch import FetchSpec
from dbt.adapters.mzs3.csv_source.executor.header import without_header
from dbt.adapters.mzs3.csv_source.executor.object_error import ObjectError
from dbt.adapters.mzs3.csv_source.executor.output import ObjectRows
from dbt.adapters.mzs3.csv_source.executor.ranges.survey import RangePlan, unclear
from dbt.adapters.mzs3.csv_source.executor.sift import Decoded
from dbt.adapters.mzs3.csv_source.executor.stream import ObjectReader, Read, task_client

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_INSTANT = pa.timestamp("us", tz="UTC")

Batches = Iterator[pa.RecordBatch]
RangeNumber = tuple[int, int]
"""The number of an object, and of a range of it."""


@dataclass(frozen=True)
class RangeOfObject:
    """A range of an object: its `plan`, and `offset`, where the range itself begins.

    `layout` says which fields of the object's records are the columns.
    """

    key: str
    etag: str
    modified: datetime
    layout: RecordLayout
    offset: int
    plan: RangePlan


def range_rows(
    spec: FetchSpec, ranges: Mapping[RangeNumber, RangeOfObject]
) -> Callable[[Batches], Batches]:
    """For `mapInArrow` over the rows of `read_ranges`: the rows that `fetch_objects` would make.

    The end of a range's last record, which is in the next range, is fetched again. Raises
    ExecutorError, that of `unclear` for what a task that reads the whole object must judge.
    """

    def read(batches: Batches) -> Batches:
        task = _RangeTask(spec, task_client(spec.connection, spec.source))
        for place, blocks in groupby(_blocks(batches), lambda block: block[0]):
            one = ranges[place]
            try:
                yield from task.rows(one, (data for _, data in blocks))
            except ObjectError as problem:
                raise unclear(one.key) from problem

    return read


def _blocks(batches: Batches) -> Iterator[tuple[RangeNumber, memoryview]]:
    for batch in batches:
        places = zip(batch["object"].to_pylist(), batch["range"].to_pylist(), strict=True)
        for place, data in zip(places, batch["data"], strict=True):
            if data.is_valid:
                yield place, memoryview(data.as_buffer())


class _RangeTask:
    """Reads the ranges of one task, one after the other."""

    def __init__(self, spec: FetchSpec, client: S3Client) -> None:
        self._spec = spec
        self._client = client
        self._decoder = Decoder(spec.columns, spec.dialect, spec.reading)
        self._rejects = 0

    def rows(self, one: RangeOfObject, blocks: Iterator[memoryview]) -> Batches:
        """The rows of one range. Raises ObjectError, ExecutorError."""
        uri = f"s3://{self._spec.bucket}/{one.key}"
        to_rows = ObjectRows(self._spec.columns, uri, pa.scalar(one.modified, _INSTANT))
        header = self._spec.header if one.plan.start == 0 else None
        done = one.plan.record
        if self._spec.header is not None and one.plan.record:
            done -= 1
        for chunk in self._chunks(one, blocks):
            if header is not None:
                reading = self._spec.reading
                _, chunk = without_header(chunk, header, self._spec.dialect, reading)
                header = None
                if not chunk.data:
                    continue
            decoded = self._decoder.decode(chunk, one.layout)
            self._require_clear(one, chunk, decoded)
            yield from to_rows.batches(decoded, done)
            done += decoded.count

    def _chunks(self, one: RangeOfObject, blocks: Iterator[memoryview]) -> Iterator[Chunk]:
        plan = one.plan
        span = (plan.range_end, max(plan.range_end, plan.end))
        reader = ObjectReader(self._client, self._spec.bucket, one.key, one.etag, span=span)
        with contextlib.closing(reader):
            yield from Chunks(
                joined(blocks, plan.start - one.offset, reader.read),
                self._spec.dialect,
                block_bytes=self._spec.block_bytes,
                byte=plan.start,
                line=plan.line + 1,
            )

    def _require_clear(self, one: RangeOfObject, chunk: Chunk, decoded: Decoded) -> None:
        """Records are the same however an object is cut, unless something is wrong with quotes.

        Where quotes are wrong, what is a record depends on all that is before it. Of too many
        rejects the task tells that reads them in order.
        """
        if not decoded.rejects and decoded.length == len(chunk.data):
            return
        dialect = self._spec.dialect
        not_closed = chunk.data.count(dialect.quote.encode()) % 2 == 1
        self._rejects += len(decoded.rejects)
        limit = self._spec.reading.max_rejects
        too_many = limit is not None and self._rejects > limit
        if too_many or not_closed or has_stray_quote(chunk.data, dialect):
            raise unclear(one.key)


def joined(blocks: Iterator[memoryview], skip: int, tail: Read) -> Read:
    """Reads the blocks without their first `skip` bytes, and what `tail` reads behind them."""
    held = memoryview(b"")

    def read(size: int) -> bytes:
        nonlocal held, skip
        while not held:
            following = next(blocks, None)
            if following is None:
                return tail(size)
            passed = min(skip, len(following))
            skip -= passed
            held = following[passed:]
        data, held = bytes(held[:size]), held[size:]
        return data

    return read
