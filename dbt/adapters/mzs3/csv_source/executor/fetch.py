"""Fetches listed objects and decodes them: the function a source's `mapInArrow` runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from dbt.adapters.mzs3.aws.client import s3_client
from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.csv_dialect import CsvDialect
from dbt.adapters.mzs3.csv_source.executor.chunks import BLOCK_BYTES, Chunk, RecordTooLarge
from dbt.adapters.mzs3.csv_source.executor.columns import Column
from dbt.adapters.mzs3.csv_source.executor.decode import Decoder
from dbt.adapters.mzs3.csv_source.executor.header import open_chunks, too_large, without_header
from dbt.adapters.mzs3.csv_source.executor.layout import Layout
from dbt.adapters.mzs3.csv_source.executor.output import ObjectRows, schema_ddl
from dbt.adapters.mzs3.csv_source.executor.problem import OF_RUN, CsvProblem, HeaderProblem
from dbt.adapters.mzs3.csv_source.executor.reading import Reading, too_many_rejects
from dbt.adapters.mzs3.csv_source.executor.sift import Reject, oversized
from dbt.adapters.mzs3.csv_source.executor.stream import ObjectReader
from dbt.adapters.mzs3.errors import ExecutorError, S3Error

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

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
    reading: Reading = field(default_factory=Reading)
    block_bytes: int = BLOCK_BYTES


def output_schema(spec: FetchSpec) -> str:
    """The schema of `fetch_objects`' rows in Spark's DDL."""
    return schema_ddl(spec.columns)


def fetch_objects(
    spec: FetchSpec,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For `mapInArrow` over rows `key, etag, size, last_modified`: the objects' records.

    One GET per object, streamed; an object that is no longer the one listed is an error.
    `_mz_record` counts an object's data records from 1, rejected ones too. Raises ExecutorError,
    which names the source, the object, and the line and byte of the record; what is rejected or
    skipped comes as a row with its problem. Holds one chunk of one object.
    """

    def fetch(listed: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = _Task(spec, _client(spec))
        for batch in listed:
            keys, etags = batch.column("key").to_pylist(), batch.column("etag").to_pylist()
            modified = batch.column("last_modified").cast(_INSTANT)
            for row, key in enumerate(keys):
                try:
                    yield from task.rows(key, etags[row], modified[row])
                except CsvProblem as problem:
                    text = problem.text(spec.bucket, key, spec.source)
                    raise ExecutorError(text, problem.cause) from problem

    return fetch


def _client(spec: FetchSpec) -> S3Client:
    try:
        return s3_client(spec.connection)
    except S3Error as exc:
        raise ExecutorError(f"{spec.source}: {exc}") from exc


class _Task:
    """Reads the objects of one task, one after the other."""

    def __init__(self, spec: FetchSpec, client: S3Client) -> None:
        self._spec = spec
        self._client = client
        self._decoder = Decoder(spec.columns, spec.dialect, spec.reading)
        self._rejects = 0
        self._first_reject = ""

    def rows(self, key: str, etag: str, modified: pa.Scalar) -> Iterator[pa.RecordBatch]:
        """One object's rows. Raises CsvProblem."""
        uri = f"s3://{self._spec.bucket}/{key}"
        to_rows = ObjectRows(self._spec.columns, uri, modified)
        with contextlib.closing(
            ObjectReader(self._client, self._spec.bucket, key, etag)
        ) as reader:
            try:
                yield from self._records(reader, key, to_rows)
            except HeaderProblem as problem:
                if not self._spec.reading.skips:
                    raise
                yield to_rows.skipped(f"{problem.place()}{problem.problem}")

    def _records(
        self, reader: ObjectReader, key: str, to_rows: ObjectRows
    ) -> Iterator[pa.RecordBatch]:
        spec = self._spec
        found = open_chunks(
            reader.read,
            key,
            spec.dialect,
            spec.compression,
            spec.reading.encoding,
            spec.block_bytes,
        )
        layout = None
        done = 0
        try:
            for chunk in found:
                if layout is None:
                    layout, chunk = self._begin(chunk)
                    if not chunk.data:
                        continue
                decoded = self._decoder.decode(chunk, layout)
                if decoded.length < len(chunk.data):
                    found.give_back(chunk.after(decoded.length), whole=decoded.length == 0)
                self._count(decoded.rejects, to_rows.uri)
                yield from to_rows.batches(decoded, done)
                done += decoded.count
        except RecordTooLarge as problem:
            if layout is None and spec.header is not None:
                raise too_large(problem) from problem
            if not spec.reading.rejects:
                raise
            reject = oversized(problem, spec.reading.encoding)
            self._count((reject,), to_rows.uri)
            yield to_rows.rejected((reject,), done)

    def _begin(self, chunk: Chunk) -> tuple[Layout, Chunk]:
        """Which fields are the columns, and the chunk without the header, which is checked."""
        if self._spec.header is None:
            return Layout.in_order(len(self._spec.columns)), chunk
        return without_header(chunk, self._spec.header, self._spec.dialect, self._spec.reading)

    def _count(self, rejects: Sequence[Reject], uri: str) -> None:
        """Raise ExecutorError once there are more rejects than one run may have."""
        if not rejects:
            return
        first = rejects[0]
        self._first_reject = self._first_reject or (
            f"object {uri}, line {first.line}, byte {first.byte}: {first.error}"
        )
        self._rejects += len(rejects)
        limit = self._spec.reading.max_rejects
        if limit is not None and self._rejects > limit:
            text = too_many_rejects(self._spec.source, limit, self._first_reject)
            raise ExecutorError(text, OF_RUN)
