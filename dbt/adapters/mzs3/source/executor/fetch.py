"""Fetches listed objects and decodes them to the rows that a source stores."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.arrow.arrays import running_total
from dbt.adapters.mzs3.arrow.version import require_version
from dbt.adapters.mzs3.errors import ExecutorError
from dbt.adapters.mzs3.formats.read.avro import avro_file
from dbt.adapters.mzs3.formats.read.columns import PROBLEM_COLUMN, Column
from dbt.adapters.mzs3.formats.read.csv import CsvFormat
from dbt.adapters.mzs3.formats.read.dialect import SourceDialect
from dbt.adapters.mzs3.formats.read.format import (
    AVRO,
    CSV,
    JSONL,
    PARQUET,
    ObjectDecoder,
    ObjectFormat,
    Reading,
    Records,
    Reject,
    too_many_rejects,
)
from dbt.adapters.mzs3.formats.read.jsonl import JsonLinesFormat
from dbt.adapters.mzs3.formats.read.object_error import OF_RUN, HeaderProblem, ObjectError
from dbt.adapters.mzs3.formats.read.parquet import parquet_file
from dbt.adapters.mzs3.formats.read.typed import TypedFormat
from dbt.adapters.mzs3.source.executor.stored_object import S3Object, object_groups, task_store
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.types.table import arrow_type

# NULL for a good row. Without `raw`, the problem is not a record's, but why an object was skipped.
_PROBLEM_FIELDS = {
    "line": "bigint",
    "byte": "bigint",
    "raw": "string",
    "column": "string",
    "error": "string",
}
_PROBLEM_DDL = f"struct<{', '.join(f'`{k}`: {v}' for k, v in _PROBLEM_FIELDS.items())}>"
_PROBLEM_TYPE = pa.struct([(name, arrow_type(kind)) for name, kind in _PROBLEM_FIELDS.items()])

_METADATA_COLUMNS = (
    Column("_mz_object", "string"),
    Column("_mz_record", "bigint"),
    Column("_mz_last_modified", "timestamp"),
    Column(PROBLEM_COLUMN, _PROBLEM_DDL),
)


Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class HeaderFrom:
    """Where the header comes from that objects are compared with. If it `is_found` in an object,
    `origin` is that object's URI, if known. In the `is_first` run nothing is pinned yet."""

    is_first: bool = False
    is_found: bool = False
    origin: str | None = None


@dataclass(frozen=True)
class FetchSpec:
    """What a task needs to fetch a source's objects; it is sent to the executors.

    `header` is the pinned header, None for objects without one.
    """

    connection: AwsConnection
    location: S3Location
    source: str
    header: tuple[str, ...] | None
    columns: tuple[Column, ...]
    dialect: SourceDialect
    compression: str
    reading: Reading = field(default_factory=Reading)
    format: str = CSV
    header_from: HeaderFrom = field(default_factory=HeaderFrom)

    @property
    def ddl(self) -> str:
        """The schema of the rows that tasks make, in Spark's DDL."""
        return schema_ddl(self.stored_columns, with_problem=self.has_problems)

    @property
    def stored_columns(self) -> tuple[Column, ...]:
        """The columns of these rows that have the values of records."""
        return self.reading.with_rescued(self.columns)

    @property
    def schema(self) -> pa.Schema:
        """The schema of these rows in Arrow."""
        columns = (*self.stored_columns, *_METADATA_COLUMNS[:-1])
        kinds = [(column.name, arrow_type(column.data_type)) for column in columns]
        return pa.schema([*kinds, (PROBLEM_COLUMN, _PROBLEM_TYPE)] if self.has_problems else kinds)

    @property
    def has_problems(self) -> bool:
        """Whether there may be rows of rejected records or skipped objects.

        If not, rows have no column for their problem: to write its NULLs takes a tenth of the time
        of a task.
        """
        return self.reading.rejects or self.reading.skips


def open_format(
    name: str, dialect: SourceDialect, compression: str, reading: Reading
) -> ObjectFormat:
    """The format of that name; `dialect` is for CSV only, `compression` for CSV and JSON lines."""
    if name == CSV:
        return CsvFormat(compression, reading, dialect)
    if name == JSONL:
        return JsonLinesFormat(compression, reading)
    return TypedFormat(reading, {AVRO: avro_file, PARQUET: parquet_file}[name])


def schema_ddl(columns: Sequence[Column], *, with_problem: bool = True) -> str:
    """The schema of the rows of a source with these columns, in Spark's DDL.

    With `with_problem`, the last column is a row's problem.
    """
    every = (*columns, *(_METADATA_COLUMNS if with_problem else _METADATA_COLUMNS[:-1]))
    quoted = ((column.name.replace("`", "``"), column.data_type) for column in every)
    return ", ".join(f"`{name}` {data_type}" for name, data_type in quoted)


def format_of(spec: FetchSpec) -> ObjectFormat:
    """The format of the objects. The driver opens it, so that the code of other formats is not
    sent with the tasks."""
    return open_format(spec.format, spec.dialect, spec.compression, spec.reading)


def fetch_objects(spec: FetchSpec, object_format: ObjectFormat) -> Callable[[Batches], Batches]:
    """For `mapInArrow` over rows `key, etag, size, last_modified`: the objects' records.

    An object that was replaced after it was listed is an error. `_mz_record` numbers an object's
    data records from 1, rejected ones too. Rejected records and skipped objects are rows with a
    problem. Raises ExecutorError, which names the source, the object, and the place of the record.
    Each object is one GET, and a large one is streamed: memory holds one part of it (of CSV, a
    chunk) and a group of small objects.
    """

    def fetch(listed: Batches) -> Batches:
        require_version()
        decoder = object_format.decoder(spec.header, spec.columns)
        limit = RejectLimit(spec)
        store = task_store(spec.connection, spec.location, spec.source)
        for batch in listed:
            modified = batch.column("last_modified").cast(arrow_type("timestamp"))
            objects = batch.select(["key", "etag", "size"]).to_pylist()
            stored = (S3Object(store, spec.location, **row) for row in objects)
            done = 0
            with contextlib.closing(object_groups(stored)) as groups:
                for group in groups:
                    times = modified.slice(done, len(group))
                    yield from _group_rows(spec, decoder, limit, group, times)
                    done += len(group)

    return fetch


def _group_rows(
    spec: FetchSpec,
    decoder: ObjectDecoder,
    limit: RejectLimit,
    group: Sequence[S3Object],
    modified: pa.Array,
) -> Batches:
    """The objects' rows; decodes several objects together if it can. Raises ExecutorError."""
    found = decoder.together(group) if len(group) > 1 else None
    if found is not None:
        batch, counts = found
        if batch.num_rows:
            uris = [stored.uri for stored in group]
            yield rows_of_group(spec, batch.columns, uris, modified, counts)
        return
    for stored, time in zip(group, modified, strict=True):
        rows = ObjectRows(spec, stored.uri, time)
        try:
            with contextlib.closing(decoder(stored)) as records:
                yield from rows.rows(records, limit)
        except ObjectError as problem:
            if isinstance(problem, HeaderProblem) and spec.reading.skips:
                where = f"{problem.place}: " if problem.place else ""
                yield rows.skipped(f"{where}{problem.problem}")
                continue
            text = problem.text(stored.uri, spec.source)
            raise ExecutorError(text, problem.cause, stored.uri) from problem


class RejectLimit:
    """Counts the rejects of one task."""

    def __init__(self, spec: FetchSpec) -> None:
        self._spec = spec
        self._count = 0
        self._first = ("", "")  # the object's URI, and what is wrong with it

    def count(self, rejects: Sequence[Reject], uri: str) -> None:
        """Adds rejects of the object. Raises ExecutorError if a run may not have as many."""
        if rejects and not self._count:
            first = rejects[0]
            problem = f"object {uri}, line {first.line}, byte {first.byte}: {first.error}"
            self._first = uri, problem
        self._count += len(rejects)
        limit = self._spec.reading.max_rejects
        if limit is not None and self._count > limit:
            uri, problem = self._first
            text = too_many_rejects(self._spec.source, limit, problem)
            raise ExecutorError(text, OF_RUN, uri)


@dataclass(frozen=True)
class ObjectRows:
    """Makes the rows of one object, as in `spec.ddl`; `modified` is its LastModified."""

    spec: FetchSpec
    uri: str
    modified: pa.Scalar

    def rows(self, found: Iterable[Records], limit: RejectLimit, before: int = 0) -> Batches:
        """The rows of these records; `before` others of the object precede them.

        Raises ExecutorError for too many rejects.
        """
        for records in found:
            limit.count(records.rejects, self.uri)
            batch, rejects = records.batch, records.rejects
            if batch.num_rows:
                if records.numbers is None:
                    ones = pa.repeat(pa.scalar(1, pa.int64()), batch.num_rows)
                    numbers = pc.cumulative_sum(ones, start=before)
                else:
                    numbers = pc.add(records.numbers, pa.scalar(before + 1, pa.int64()))
                yield self._rows(numbers, values=batch.columns)
            if rejects:
                problems = pa.array([vars(reject) for reject in rejects], _PROBLEM_TYPE)
                numbers = pa.array([before + reject.number + 1 for reject in rejects], pa.int64())
                yield self._rows(numbers, problems)
            before += records.count

    def skipped(self, error: str) -> pa.RecordBatch:
        """The one row of an object that is skipped, which has the reason."""
        problem = pa.array([{"error": error}], _PROBLEM_TYPE)
        return self._rows(pa.nulls(1, pa.int64()), problem)

    def _rows(
        self,
        numbers: pa.Array,
        problems: pa.Array | None = None,
        values: Sequence[pa.Array] = (),
    ) -> pa.RecordBatch:
        kinds = (arrow_type(column.data_type) for column in self.spec.stored_columns)
        values = values or [pa.nulls(len(numbers), kind) for kind in kinds]
        uris, times = (pa.repeat(one, len(numbers)) for one in (self.uri, self.modified))
        return _batch(self.spec, [*values, uris, numbers, times], problems)


def rows_of_group(
    spec: FetchSpec,
    values: Sequence[pa.Array],
    uris: Sequence[str],
    modified: pa.Array,
    counts: Sequence[int],
) -> pa.RecordBatch:
    """The rows of several objects without a problem; `counts` are their numbers of records."""
    starts = running_total(pa.array(counts, pa.int32()))
    length = len(values[0])
    every = pa.ListArray.from_arrays(starts, pa.nulls(length))
    owners = pc.list_parent_indices(every)
    ones = pa.repeat(pa.scalar(1, pa.int64()), length)
    numbers = pc.subtract(pc.cumulative_sum(ones), starts.take(owners))
    metadata = [pa.array(uris).take(owners), numbers, modified.take(owners)]
    return _batch(spec, [*values, *metadata])


def _batch(
    spec: FetchSpec, arrays: Sequence[pa.Array], problems: pa.Array | None = None
) -> pa.RecordBatch:
    """The rows with these values; without `problems`, all of them are good."""
    names = [column.name for column in (*spec.stored_columns, *_METADATA_COLUMNS)]
    assert problems is None or spec.has_problems
    if spec.has_problems:
        problems = pa.nulls(len(arrays[0]), _PROBLEM_TYPE) if problems is None else problems
        arrays = [*arrays, problems]
    return pa.RecordBatch.from_arrays(arrays, names=names[: len(arrays)])
