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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

import pyarrow as pa

from dbt.adapters.mzs3.errors import ExecutorError
from dbt.adapters.mzs3.formats.read.chunks import Chunk
from dbt.adapters.mzs3.formats.read.columns import RecordLayout, arrow_schema
from dbt.adapters.mzs3.formats.read.encoding import ReadBytes
from dbt.adapters.mzs3.formats.read.format import Records
from dbt.adapters.mzs3.formats.read.object_error import UNCLEAR, ObjectError
from dbt.adapters.mzs3.formats.read.text import TextFormat
from dbt.adapters.mzs3.source.executor.fetch import Batches, FetchSpec, ObjectRows, RejectLimit
from dbt.adapters.mzs3.source.executor.stored_object import ObjectReader, task_store
from dbt.adapters.mzs3.store.store import Store
from dbt.adapters.mzs3.types.table import arrow_type

SURVEY_BLOCK_BYTES = 2 * 1024 * 1024
RANGES_DDL = "object int, key string, etag string, `range` int, start bigint, `end` bigint"
BLOCKS_DDL = "object int, `range` int, data binary, survey string"
_BLOCKS = arrow_schema(BLOCKS_DDL)


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


def read_ranges(spec: FetchSpec, quote: bytes) -> Callable[[Batches], Batches]:
    """For `mapInArrow` over rows of `RANGES_DDL`: each range's blocks, then its survey as JSON.

    Returns rows of `BLOCKS_DDL`. If `quote` is empty, each line is a record. One GET for each
    range; holds one block. Raises ExecutorError, with the cause UNCLEAR if a task has to read the
    whole object to find out what is wrong.
    """

    def read(ranges: Batches) -> Batches:
        store = task_store(spec.connection, spec.location, spec.source)
        for batch in ranges:
            for row in batch.to_pylist():
                try:
                    yield from _range(store, quote, row)
                except ObjectError as problem:
                    raise unclear_error(spec.location.uri_of(row["key"])) from problem

    return read


def _range(store: Store, quote: bytes, row: dict[str, Any]) -> Batches:
    """The blocks and the survey of the range in a row of `RANGES_DDL`."""
    survey = Survey()
    byte_range = (row["start"], row["end"])
    reader = ObjectReader(store, row["key"], row["etag"], byte_range=byte_range)
    with contextlib.closing(reader):
        while data := reader.read(SURVEY_BLOCK_BYTES):
            survey = survey.extended(data, quote)
            yield pa.RecordBatch.from_pylist([{**row, "data": data}], _BLOCKS)
    yield pa.RecordBatch.from_pylist([{**row, "survey": json.dumps(asdict(survey))}], _BLOCKS)


def survey_of(text: str) -> Survey:
    """The survey in the last row of a range."""
    value = json.loads(text)
    ends = {case: Ends(**value[case]) for case in ("outside", "inside")}
    return Survey(**{**value, **ends})


@dataclass(frozen=True)
class LargeObject:
    """An object that is worth cutting; its records begin at the empty chunk `start`."""

    key: str
    etag: str
    size: int
    modified: datetime
    start: Chunk
    layout: RecordLayout


@dataclass(frozen=True)
class RangePlan:
    """The whole records of a range, from `start` to `end`; each belongs to exactly one range.

    The range itself is from `range_start` to `range_end`; its last record may end in a later
    range. `line` and `record` count the lines and the records before `start`, and `count` the
    records, if others follow. Only the first range has records
    if none ends in it; for others `start` is then `end`.
    """

    range_start: int
    range_end: int
    start: int
    end: int
    line: int = 0
    record: int = 0
    count: int | None = None


def plan_ranges(surveys: Sequence[Survey], first: Chunk) -> list[RangePlan]:
    """A plan for each range of one object, from the surveys of these ranges in order.

    The first range begins where the records do, at the empty chunk `first`.
    """
    plans: list[RangePlan] = []
    inside = False
    offset, line, record = first.byte, first.line - 1, 0
    end = offset + sum(survey.size for survey in surveys)
    for survey in surveys:
        ends = survey.inside if inside else survey.outside
        range_end = offset + survey.size
        if not plans:
            plans.append(RangePlan(offset, range_end, offset, end, line))
        elif ends.first is None:
            plans.append(RangePlan(offset, range_end, range_end, range_end))
        else:
            start, first_line = offset + ends.first, line + ends.first_line
            plans.append(RangePlan(offset, range_end, start, end, first_line, record + 1))
        inside ^= survey.quotes % 2 == 1
        offset, line, record = range_end, line + survey.newlines, record + ends.count
    # A range's last record ends where the records of the next range that has any begin.
    with_records = [index for index, plan in enumerate(plans) if index == 0 or plan.record]
    for index, following in itertools.pairwise(with_records):
        plan, next_plan = plans[index], plans[following]
        count = next_plan.record - plan.record
        plans[index] = replace(plan, end=next_plan.start, count=count)
    return plans


def unclear_error(uri: str) -> ExecutorError:
    """The error of a task that can't read a range of the object."""
    text = f"{uri} can't be read in ranges, and is read again by one task"
    return ExecutorError(text, UNCLEAR, uri)


def range_rows(
    spec: FetchSpec,
    object_format: TextFormat,
    objects: Sequence[tuple[LargeObject, Sequence[RangePlan]]],
) -> Callable[[Batches], Batches]:
    """For `mapInArrow` over the rows of `read_ranges`: the rows that `fetch_objects` would make.

    The end of a range's last record, which is in a later range, is fetched again. Raises
    ExecutorError, with the cause UNCLEAR if a task has to read the whole object to judge it.
    """

    def read(batches: Batches) -> Batches:
        store = task_store(spec.connection, spec.location, spec.source)
        decoder = object_format.decoder(spec.header, spec.columns)
        limit = RejectLimit(spec)
        for (number, index), blocks in itertools.groupby(_blocks(batches), lambda block: block[0]):
            stored, plans = objects[number]
            plan, uri = plans[index], spec.location.uri_of(stored.key)
            unclear = unclear_error(uri)
            rows = ObjectRows(spec, uri, pa.scalar(stored.modified, arrow_type("timestamp")))
            byte_range = (plan.range_end, max(plan.range_end, plan.end))
            reader = ObjectReader(store, stored.key, stored.etag, byte_range=byte_range)
            blocks_of_range = (data for _, data in blocks)
            text = range_reader(blocks_of_range, plan.start - plan.range_start, reader.read)
            start = Chunk(b"", plan.start, plan.line + 1)
            found = _certain(decoder.records(text, start, stored.layout), plan.count, unclear)
            with contextlib.closing(reader):
                try:
                    yield from rows.rows(found, limit, plan.record)
                # A task that reads the whole object then reports what is wrong.
                except ObjectError as problem:
                    raise unclear from problem
                except ExecutorError:  # the driver would parse the first of two in a traceback
                    raise unclear from None

    return read


def _blocks(batches: Batches) -> Iterator[tuple[tuple[int, int], memoryview]]:
    """Each block with the number of its object, and of its range in that."""
    for batch in batches:
        places = zip(batch["object"].to_pylist(), batch["range"].to_pylist(), strict=True)
        for place, data in zip(places, batch["data"], strict=True):
            if data.is_valid:
                yield place, memoryview(data.as_buffer())


def _certain(
    found: Iterator[Records], planned: int | None, unclear: ExecutorError
) -> Iterator[Records]:
    """The records of a range. Raises `unclear` if they may not be those of the whole object, or
    are not as many as planned."""
    count = 0
    for records in found:
        if not records.is_certain:
            raise unclear
        count += records.count
        yield records
    # The plans of later ranges count a blank line of JSON as a record, which it is not.
    if planned not in (None, count):
        raise unclear


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
