"""Reads one large object in two passes of many tasks; exact with quotes that contain newlines.

A newline ends a record if the number of quotes before it is even. Whether that number is even
where a range begins depends on all ranges before it, which other tasks read at the same time. So
the first pass surveys each range for both cases, and afterwards the driver knows which one holds
(the parity method; Ge et al., SIGMOD 2019, call the two passes pessimistic). The second pass reads
the records of the ranges. In JSON lines each newline ends a record; the first pass counts them.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

import pyarrow as pa

from dbt.adapters.mzs3.errors import ExecutorError
from dbt.adapters.mzs3.formats.read.chunks import BLOCK_BYTES, Chunk, Chunks, has_stray_quote
from dbt.adapters.mzs3.formats.read.columns import RecordLayout, arrow_schema
from dbt.adapters.mzs3.formats.read.csv import Decoder
from dbt.adapters.mzs3.formats.read.encoding import ReadBytes
from dbt.adapters.mzs3.formats.read.format import CSV, JSONL, Records
from dbt.adapters.mzs3.formats.read.header import without_header
from dbt.adapters.mzs3.formats.read.jsonl import JsonDecoder
from dbt.adapters.mzs3.formats.read.object_error import UNCLEAR, ObjectError
from dbt.adapters.mzs3.source.executor.fetch import Batches, FetchSpec, ObjectRows
from dbt.adapters.mzs3.source.executor.stored_object import ObjectReader, task_store
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.store import Store
from dbt.adapters.mzs3.types.table import arrow_type

SURVEY_BLOCK_BYTES = 2 * 1024 * 1024
RANGES_DDL = "object int, key string, etag string, `range` int, start bigint, `end` bigint"
BLOCKS_DDL = "object int, `range` int, data binary, survey string"
_BLOCKS = arrow_schema(BLOCKS_DDL)

RangeNumber = tuple[int, int]
"""The number of an object, and of a range of it."""


@dataclass(frozen=True)
class Ends:
    """The ends of records in a range, for one of the two cases.

    `first` is the offset in the range just after the first end, None if there is none.
    `first_line` counts the newlines before that offset, those inside quotes included.
    """

    count: int = 0
    first: int | None = None
    first_line: int = 0


@dataclass(frozen=True)
class Survey:
    """The facts about a range: its bytes, its quotes and newlines, and the ends of its records.

    `outside` are the ends if the range begins outside quotes, `inside` if it begins inside.
    """

    size: int = 0
    quotes: int = 0
    newlines: int = 0
    outside: Ends = field(default_factory=Ends)
    inside: Ends = field(default_factory=Ends)

    def extended(self, data: bytes, quote: bytes) -> Survey:
        """The survey of this range with `data` added; a few passes in C, none over quotes."""
        pieces = data.split(quote) if quote else [data]
        # Every second piece is inside quotes if the data begins outside, and the others if not.
        begins_inside = self.quotes % 2
        return Survey(
            size=self.size + len(data),
            quotes=self.quotes + len(pieces) - 1,
            newlines=self.newlines + data.count(b"\n"),
            outside=self._extended(self.outside, data, pieces, begins_inside),
            inside=self._extended(self.inside, data, pieces, 1 - begins_inside),
        )

    def _extended(self, ends: Ends, data: bytes, pieces: list[bytes], first: int) -> Ends:
        """`ends` and those in every second piece of the data, beginning with piece `first`."""
        count = ends.count + b"".join(pieces[first::2]).count(b"\n")
        if ends.first is not None or not count:
            return replace(ends, count=count)
        # One quote is between two pieces; `index` is that of the first piece with a newline.
        newlines = map(bytes.count, pieces[first::2], itertools.repeat(b"\n"))
        index = next(itertools.compress(itertools.count(first, 2), newlines))
        after = sum(map(len, pieces[:index])) + index + pieces[index].index(b"\n") + 1
        line = self.newlines + data.count(b"\n", 0, after)
        return Ends(count, self.size + after, line)


def read_ranges(
    connection: AwsConnection, source: str, location: S3Location, quote: bytes
) -> Callable[[Batches], Batches]:
    """For `mapInArrow` over rows of `RANGES_DDL`: each range's blocks, then its survey as JSON.

    Returns rows of `BLOCKS_DDL`. If `quote` is empty, each line is a record. One GET for each
    range; holds one block. Raises ExecutorError, with the cause UNCLEAR if a task has to read the
    whole object to find out what is wrong.
    """

    def read(ranges: Batches) -> Batches:
        store = task_store(connection, location, source)
        for batch in ranges:
            for one in batch.to_pylist():
                try:
                    yield from _range(store, quote, one)
                except ObjectError as problem:
                    raise unclear_error(location.uri_of(one["key"])) from problem

    return read


def _range(store: Store, quote: bytes, one: dict[str, Any]) -> Batches:
    survey = Survey()
    span = (one["start"], one["end"])
    reader = ObjectReader(store, one["key"], one["etag"], span=span)
    with contextlib.closing(reader):
        while data := reader.read(SURVEY_BLOCK_BYTES):
            survey = survey.extended(data, quote)
            yield pa.RecordBatch.from_pylist([{**one, "data": data}], _BLOCKS)
    yield pa.RecordBatch.from_pylist([{**one, "survey": json.dumps(asdict(survey))}], _BLOCKS)


def survey_of(text: str) -> Survey:
    """The survey in the last row of a range."""
    value = json.loads(text)
    ends = {case: Ends(**value[case]) for case in ("outside", "inside")}
    return Survey(**{**value, **ends})


@dataclass(frozen=True)
class RangePlan:
    """The whole records of a range, from `start` to `end`; each belongs to exactly one range.

    The range itself ends at `range_end`; its last record may end in a later range. `line` and
    `record` count the lines and the records before `start`, a header included. A range in which no
    record ends has no records: `start` is `end`.
    """

    start: int
    range_end: int
    end: int
    line: int = 0
    record: int = 0


def plan_ranges(surveys: Sequence[Survey]) -> list[RangePlan]:
    """A plan for each range of one object, from the surveys of these ranges in order."""
    plans: list[RangePlan] = []  # at first each ends where its range does
    inside = False
    offset = line = record = 0
    for survey in surveys:
        ends = survey.inside if inside else survey.outside
        range_end = offset + survey.size
        if not plans:
            plans.append(RangePlan(0, range_end, range_end))
        elif ends.first is None:
            plans.append(RangePlan(range_end, range_end, range_end))
        else:
            start, first_line = offset + ends.first, line + ends.first_line
            plans.append(RangePlan(start, range_end, range_end, first_line, record + 1))
        inside ^= survey.quotes % 2 == 1
        offset, line, record = range_end, line + survey.newlines, record + ends.count
    # A range's last record ends where the records of the next range that has any begin.
    with_records = [index for index, plan in enumerate(plans) if index == 0 or plan.record]
    ends_of_records = [*(plans[index].start for index in with_records[1:]), offset]
    for index, end in zip(with_records, ends_of_records, strict=False):
        plans[index] = replace(plans[index], end=end)
    return plans


def unclear_error(uri: str) -> ExecutorError:
    """The error of a task that can't read a range of the object."""
    text = f"{uri} can't be read in ranges, and is read again by one task"
    return ExecutorError(text, UNCLEAR, uri)


@dataclass(frozen=True)
class RangeOfObject:
    """A range of an object: its `plan`, and `offset`, where the range itself begins."""

    key: str
    etag: str
    modified: datetime
    layout: RecordLayout
    offset: int
    plan: RangePlan

    @property
    def first(self) -> Chunk:
        """An empty chunk, at the position where the records begin."""
        return Chunk(b"", self.plan.start, self.plan.line + 1)


def records_of(spec: FetchSpec) -> Callable[[FetchSpec], RecordsOfRange]:
    """The function that opens the format. The driver chooses it, so that the code of other formats
    is not sent with the tasks."""
    return _json_records if spec.format == JSONL else _csv_records


def range_rows(
    spec: FetchSpec,
    ranges: Mapping[RangeNumber, RangeOfObject],
    opened: Callable[[FetchSpec], RecordsOfRange],
) -> Callable[[Batches], Batches]:
    """For `mapInArrow` over the rows of `read_ranges`: the rows that `fetch_objects` would make.

    The end of a range's last record, which is in a later range, is fetched again. Raises
    ExecutorError, with the cause UNCLEAR if a task has to read the whole object to judge it.
    """

    def read(batches: Batches) -> Batches:
        store = task_store(spec.connection, spec.location, spec.source)
        task = _RangeTask(spec, store, opened(spec))
        for place, blocks in itertools.groupby(_blocks(batches), lambda block: block[0]):
            one = ranges[place]
            try:
                yield from task.rows(one, (data for _, data in blocks))
            except ObjectError as problem:
                raise unclear_error(spec.location.uri_of(one.key)) from problem

    return read


def _blocks(batches: Batches) -> Iterator[tuple[RangeNumber, memoryview]]:
    for batch in batches:
        places = zip(batch["object"].to_pylist(), batch["range"].to_pylist(), strict=True)
        for place, data in zip(places, batch["data"], strict=True):
            if data.is_valid:
                yield place, memoryview(data.as_buffer())


class _RangeTask:
    """Reads the ranges of one task, one after the other."""

    def __init__(self, spec: FetchSpec, store: Store, records: RecordsOfRange) -> None:
        self._spec = spec
        self._store = store
        self._records = records
        self._rejects = 0

    def rows(self, one: RangeOfObject, blocks: Iterator[memoryview]) -> Batches:
        """The rows of one range. Raises ObjectError, ExecutorError."""
        spec, plan = self._spec, one.plan
        modified = pa.scalar(one.modified, arrow_type("timestamp"))
        to_rows = ObjectRows(spec, spec.location.uri_of(one.key), modified)
        header_records = 1 if spec.header is not None and spec.format == CSV else 0
        done = max(0, plan.record - header_records)
        span = (plan.range_end, max(plan.range_end, plan.end))
        reader = ObjectReader(self._store, one.key, one.etag, span=span)
        with contextlib.closing(reader):
            data = range_reader(blocks, plan.start - one.offset, reader.read)
            for records in self._records(one, data):
                self._count(one, records)
                yield from to_rows.batches(records, done)
                done += records.count

    def _count(self, one: RangeOfObject, records: Records) -> None:
        """Raises UNCLEAR for too many rejects: a task that reads in order then reports them."""
        self._rejects += len(records.rejects)
        limit = self._spec.reading.max_rejects
        if limit is not None and self._rejects > limit:
            raise unclear_error(self._spec.location.uri_of(one.key))


RecordsOfRange = Callable[[RangeOfObject, ReadBytes], Iterator[Records]]
"""The records of a range, from its plan's start on.

Raises ObjectError; and an UNCLEAR ExecutorError if they depend on where the object is cut.
"""


def _csv_records(spec: FetchSpec) -> RecordsOfRange:
    decoder = Decoder(spec.columns, spec.dialect, spec.reading)
    quote = spec.dialect.quote.encode()

    def read_records(one: RangeOfObject, read: ReadBytes) -> Iterator[Records]:
        header = spec.header if one.plan.start == 0 else None
        for chunk in Chunks(read, spec.dialect, one.first, BLOCK_BYTES):
            if header is not None:
                _, chunk = without_header(chunk, header, spec.dialect, spec.reading)
                header = None
                if not chunk.data:
                    continue
            records = decoder.decode(chunk, one.layout)
            # If quotes are wrong, where a record ends depends on all data before it.
            if records.rejects or records.length < len(chunk.data):
                not_closed = quote and chunk.data.count(quote) % 2 == 1
                if not_closed or has_stray_quote(chunk.data, spec.dialect):
                    raise unclear_error(spec.location.uri_of(one.key))
            yield records

    return read_records


def _json_records(spec: FetchSpec) -> RecordsOfRange:
    assert spec.header is not None
    decoder = JsonDecoder(spec.header, spec.columns, spec.reading)

    def read_records(one: RangeOfObject, read: ReadBytes) -> Iterator[Records]:
        for chunk in Chunks(read, None, one.first, BLOCK_BYTES):
            records = decoder.decode(chunk)
            # The plans of later ranges count a blank line as a record.
            if records.count < chunk.data.count(b"\n"):
                raise unclear_error(spec.location.uri_of(one.key))
            yield records

    return read_records


def range_reader(blocks: Iterator[memoryview], skip: int, tail: ReadBytes) -> ReadBytes:
    """Reads the blocks after their first `skip` bytes, and then from `tail`."""
    held = memoryview(b"")

    def read(size: int) -> bytes:
        nonlocal held, skip
        while not held:
            following = next(blocks, None)
            if following is None:
                return tail(size)
            held = following[skip:]
            skip = max(0, skip - len(following))
        data, held = bytes(held[:size]), held[size:]
        return data

    return read
