"""The first of two passes over a large object: its ranges are fetched, and surveyed on the way."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dbt.adapters.mzs3.aws.client import s3_client
from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.csv_source.executor.problem import CsvProblem
from dbt.adapters.mzs3.csv_source.executor.ranges.survey import Ends, Survey
from dbt.adapters.mzs3.csv_source.executor.ranges.unclear import unclear
from dbt.adapters.mzs3.csv_source.executor.stream import ObjectReader
from dbt.adapters.mzs3.errors import ExecutorError, S3Error

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

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


def read_ranges(
    connection: AwsConnection, source: str, bucket: str, quote: bytes
) -> Callable[[Batches], Batches]:
    """For `mapInArrow` over rows of `RANGES_DDL`: each range's bytes, then its survey.

    A row of `BLOCKS_DDL` for each block, in order, and a last one that has the survey, as JSON,
    instead of data. One GET for each range; holds one block. Raises ExecutorError, that of
    `unclear` for what a task that reads the whole object must tell of.
    """

    def read(ranges: Batches) -> Batches:
        try:
            client = s3_client(connection)
        except S3Error as exc:
            raise ExecutorError(f"{source}: {exc}") from exc
        for batch in ranges:
            for one in batch.to_pylist():
                try:
                    yield from _range(client, bucket, quote, one)
                except CsvProblem as problem:
                    raise unclear(one["key"]) from problem

    return read


def _range(client: S3Client, bucket: str, quote: bytes, one: dict[str, Any]) -> Batches:
    span = (one["start"], one["end"])
    survey = Survey()
    reader = ObjectReader(client, bucket, one["key"], one["etag"], span=span)
    with contextlib.closing(reader):
        while data := reader.read(BLOCK_BYTES):
            survey = survey.extended(data, quote)
            yield _row(one, data, None)
    yield _row(one, None, json.dumps(asdict(survey)))


def survey_of(text: str) -> Survey:
    """The survey in the last row of a range."""
    value = json.loads(text)
    value["outside"] = Ends(**value["outside"])
    value["inside"] = Ends(**value["inside"])
    return Survey(**value)


def _row(one: dict[str, Any], data: bytes | None, survey: str | None) -> pa.RecordBatch:
    values = [[one["object"]], [one["range"]], [data], [survey]]
    arrays = [pa.array(value, field.type) for value, field in zip(values, _BLOCKS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_BLOCKS)
