"""Fetches listed objects and decodes them: the function a source's `mapInArrow` runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.aws.client import s3_client
from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.csv_dialect import CsvDialect
from dbt.adapters.mzs3.csv_source.executor.chunks import BLOCK_BYTES, Chunk, chunks
from dbt.adapters.mzs3.csv_source.executor.columns import (
    LAST_MODIFIED_COLUMN,
    OBJECT_COLUMN,
    RECORD_COLUMN,
    Column,
    ddl,
)
from dbt.adapters.mzs3.csv_source.executor.decode import Decoder
from dbt.adapters.mzs3.csv_source.executor.header import require_header
from dbt.adapters.mzs3.csv_source.executor.problem import CsvProblem
from dbt.adapters.mzs3.csv_source.executor.stream import ObjectReader, plain_reader
from dbt.adapters.mzs3.errors import ExecutorError, S3Error

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

METADATA_COLUMNS = (
    Column(OBJECT_COLUMN, "string"),
    Column(RECORD_COLUMN, "bigint"),
    Column(LAST_MODIFIED_COLUMN, "timestamp"),
)
_INSTANT = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class FetchSpec:
    """What a task needs to fetch a source's objects; it travels to the executors.

    `header` is the pinned one, None for objects without.
    """

    connection: AwsConnection
    bucket: str
    source: str
    header: tuple[str, ...] | None
    columns: tuple[Column, ...]
    dialect: CsvDialect
    compression: str
    block_bytes: int = BLOCK_BYTES


def output_schema(spec: FetchSpec) -> str:
    """The schema of `fetch_objects`' rows in Spark's DDL: the columns, then the metadata."""
    return ddl((*spec.columns, *METADATA_COLUMNS))


def fetch_objects(
    spec: FetchSpec,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For `mapInArrow` over rows `key, etag, size, last_modified`: the objects' records.

    One GET per object, streamed; an object that is no longer the one listed is an error.
    `_mz_record` counts an object's data records from 1. Raises ExecutorError, which names the
    source, the object, and the line and byte of the record. Holds one chunk of one object.
    """

    def fetch(listed: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        client = _client(spec)
        decoder = Decoder(spec.columns, spec.dialect)
        for batch in listed:
            keys, etags = batch.column("key").to_pylist(), batch.column("etag").to_pylist()
            modified = batch.column("last_modified").cast(_INSTANT)
            for row, key in enumerate(keys):
                try:
                    yield from _object_rows(spec, client, decoder, key, etags[row], modified[row])
                except CsvProblem as problem:
                    raise ExecutorError(problem.text(spec.bucket, key, spec.source)) from problem

    return fetch


def _client(spec: FetchSpec) -> S3Client:
    try:
        return s3_client(spec.connection)
    except S3Error as exc:
        raise ExecutorError(f"{spec.source}: {exc}") from exc


def _object_rows(
    spec: FetchSpec, client: S3Client, decoder: Decoder, key: str, etag: str, modified: Any
) -> Iterator[pa.RecordBatch]:
    uri = pa.scalar(f"s3://{spec.bucket}/{key}")
    done = 0
    with contextlib.closing(ObjectReader(client, spec.bucket, key, etag)) as reader:
        for chunk in _data_chunks(spec, reader, key):
            batch = decoder.decode(chunk)
            count = batch.num_rows
            numbers = pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count), start=done)
            arrays = [*batch.columns, pa.repeat(uri, count), numbers, pa.repeat(modified, count)]
            names = [c.name for c in (*spec.columns, *METADATA_COLUMNS)]
            yield pa.RecordBatch.from_arrays(arrays, names=names)
            done += count


def _data_chunks(spec: FetchSpec, reader: ObjectReader, key: str) -> Iterator[Chunk]:
    """The object's chunks without its header, which is checked; none of them empty."""
    read = plain_reader(reader, key, spec.compression)
    expects_header = spec.header is not None
    for chunk in chunks(read, spec.dialect, block_bytes=spec.block_bytes):
        if expects_header and spec.header is not None:
            expects_header = False
            chunk = require_header(chunk, spec.header, spec.dialect)
            if not chunk.data:
                continue
        yield chunk
