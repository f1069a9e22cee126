"""What has to be known of a range of an object before its records can be told apart.

A newline ends a record if the number of quotes before it is even. Whether that number is even
where a range begins depends on all ranges before it, which other tasks read at the same time. So
a range is surveyed for both cases, and the driver knows afterwards which of them is the case
(the parity method; Ge et al., SIGMOD 2019, call the two passes pessimistic).
"""

from __future__ import annotations

import contextlib
import json
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.csv_source.executor.object_error import ObjectError
from dbt.adapters.mzs3.csv_source.executor.stream import ObjectReader, task_client
from dbt.adapters.mzs3.errors import ExecutorError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

NEWLINE = b"\n"

BLOCK_BYTES = 2 * 1024 * 1024
RANGES_DDL = "object int, key string, etag string, `range` int, start bigint, `end` bigint"
BLOCKS_DDL = "object int, `range` int, data binary, survey string"
_BLOCKS = pa.schema(
    [
        ("object", pa.int32()),
        ("range", pa.int32()),
        ("data", pa.large_binary()),
        ("survey", pa.string()),
    ]
)

Batches = Iterator[pa.RecordBatch]

_UNCLEAR = "dbt-mzs3: this object can't be read in ranges and is read again by one task: "


@dataclass(frozen=True)
class Ends:
    """The ends of records in a range, for one of the two cases.

    `first` is the offset behind the first of them, relative to the range; None if there is none.
    `first_line` counts the newlines before that offset, those inside quotes included.
    """

    count: int = 0
    first: int | None = None
    first_line: int = 0


@dataclass(frozen=True)
class Survey:
    """A range: its size in bytes, its quotes and newlines, and its ends of records.

    `outside` holds if the range begins outside quotes, `inside` if it begins inside.
    """

    size: int = 0
    quotes: int = 0
    newlines: int = 0
    outside: Ends = field(default_factory=Ends)
    inside: Ends = field(default_factory=Ends)

    def extended(self, data: bytes, quote: bytes) -> Survey:
        """The survey of this range continued by `data`; a few passes in C, none over quotes."""
        pieces = data.split(quote)
        # Every second piece is inside quotes if the data begins outside, and the others if not.
        begins_inside = self.quotes % 2
        return Survey(
            size=self.size + len(data),
            quotes=self.quotes + len(pieces) - 1,
            newlines=self.newlines + data.count(NEWLINE),
            outside=self._extended(self.outside, data, pieces, begins_inside),
            inside=self._extended(self.inside, data, pieces, 1 - begins_inside),
        )

    def _extended(self, ends: Ends, data: bytes, pieces: list[bytes], first: int) -> Ends:
        """The ends with those in every second piece of the data, from the `first` on."""
        text = b"".join(pieces[first::2])
        count = ends.count + text.count(NEWLINE)
        if ends.first is not None or not count:
            return replace(ends, count=count)
        behind = _offset(pieces, first, text.find(NEWLINE)) + 1
        line = self.newlines + data.count(NEWLINE, 0, behind)
        return Ends(count, self.size + behind, line)


def _offset(pieces: list[bytes], first: int, position: int) -> int:
    """Where in all pieces, with a quote between any two, a position in every second one is."""
    lengths = list(accumulate(map(len, pieces[first::2]), initial=0))
    index = bisect_right(lengths, position) - 1
    piece = first + 2 * index
    return sum(map(len, pieces[:piece])) + piece + position - lengths[index]


def read_ranges(
    connection: AwsConnection, source: str, bucket: str, quote: bytes
) -> Callable[[Batches], Batches]:
    """For `mapInArrow` over rows of `RANGES_DDL`: each range's bytes, then its survey.

    A row of `BLOCKS_DDL` for each block, in order, and a last one that has the survey, as JSON,
    instead of data. One GET for each range; holds one block. Raises ExecutorError, that of
    `unclear` for what a task that reads the whole object must tell of.
    """

    def read(ranges: Batches) -> Batches:
        client = task_client(connection, source)
        for batch in ranges:
            for one in batch.to_pylist():
                try:
                    yield from _range(client, bucket, quote, one)
                except ObjectError as problem:
                    raise unclear(one["key"]) from problem

    return read


def _range(client: S3Client, bucket: str, quote: bytes, one: dict[str, Any]) -> Batches:
    span = (one["start"], one["end"])
    survey = Survey()
    reader = ObjectReader(client, bucket, one["key"], one["etag"], span=span)
    with contextlib.closing(reader):
        while data := reader.read(BLOCK_BYTES):
            survey = survey.extended(data, quote)
            yield pa.RecordBatch.from_pylist([{**one, "data": data}], _BLOCKS)
    yield pa.RecordBatch.from_pylist([{**one, "survey": json.dumps(asdict(survey))}], _BLOCKS)


def survey_of(text: str) -> Survey:
    """The survey in the last row of a range."""
    value = json.loads(text)
    value["outside"] = Ends(**value["outside"])
    value["inside"] = Ends(**value["inside"])
    return Survey(**value)


@dataclass(frozen=True)
class RangePlan:
    """The records that one range reads: whole ones, and each record is of exactly one range.

    They are the object's bytes from `start` to `end`. The range itself ends at `range_end`; what
    is behind that, the end of its last record, is in the ranges that follow. `line` and `record`
    count the lines and the records before `start`, a header included. A range in which no record
    ends has none of its own: `start` is `end`.
    """

    start: int
    range_end: int
    end: int
    line: int = 0
    record: int = 0


def plan_ranges(surveys: Sequence[Survey]) -> list[RangePlan]:
    """A plan for each range of one object, whose surveys these are, in order."""
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


def unclear(key: str) -> ExecutorError:
    """The error of a task that can't read a range of the object."""
    return ExecutorError(f"{_UNCLEAR}{key}")


def unclear_object(message: str) -> str | None:
    """The object of which a task's error says so; None for any other error."""
    if not message.startswith(_UNCLEAR):
        return None
    return message.removeprefix(_UNCLEAR)
