"""The task of an export: rows of whole parts in, open uploads out."""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.aws.client import s3_client
from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.copy.executor.csv.encode import CsvEncoder
from dbt.adapters.mzs3.copy.executor.upload import FileUpload
from dbt.adapters.mzs3.csv_dialect import CsvDialect
from dbt.adapters.mzs3.errors import ExecutorError, S3Error

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

PART_COLUMN = "_mz_part"
EVERY_COLUMN = "*"
REPORT_DDL = (
    "part int, number int, key string, upload_id string, etags array<string>, "
    "rows bigint, bytes bigint, sha256 string"
)
_REPORT_SCHEMA = pa.schema(
    [
        ("part", pa.int32()),
        ("number", pa.int32()),
        ("key", pa.string()),
        ("upload_id", pa.string()),
        ("etags", pa.list_(pa.string())),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
        ("sha256", pa.string()),
    ]
)
_MAX_IN_FLIGHT = 4
_CONTENT_TYPE = "text/csv; charset=utf-8"

Batches = Iterator[pa.RecordBatch]
Report = dict[str, object]


@dataclass(frozen=True)
class WriteSpec:
    """What a worker needs to write its parts; travels to it with the job, and only so.

    `columns` are the names for the header, in the order of the data columns.
    """

    connection: AwsConnection = field(repr=False)
    bucket: str
    prefix: str
    columns: tuple[str, ...]
    dialect: CsvDialect
    header: bool
    force_quote: tuple[str, ...]
    max_file_size: int
    part_size: int
    max_bytes_in_memory: int

    @property
    def quoted_columns(self) -> frozenset[str] | Literal["*"]:
        """The columns whose values are quoted whatever they are."""
        return "*" if EVERY_COLUMN in self.force_quote else frozenset(self.force_quote)

    @property
    def in_flight(self) -> int:
        """How many upload parts may wait for S3 at a time, within the memory bound."""
        return max(1, min(_MAX_IN_FLIGHT, self.max_bytes_in_memory // self.part_size - 1))


def write_parts(spec: WriteSpec) -> Callable[[Batches], Batches]:
    """A function for `mapInArrow`: uploads its rows, yields one row for each file.

    The first input column is the part, the others the data; rows of a part are adjacent and in
    their final order. No upload is completed. On any failure the task's uploads are aborted.
    """

    def copy_rows(batches: Batches) -> Batches:
        with ThreadPoolExecutor(spec.in_flight) as pool, _Writer(spec, pool) as writer:
            for batch in batches:
                for part, rows in _split_by_part(batch):
                    writer.write(part, rows)
            reports = writer.finish()
        yield pa.RecordBatch.from_pylist(reports, schema=_REPORT_SCHEMA)

    return copy_rows


def write_empty_part(spec: WriteSpec, schema: pa.Schema) -> list[Report]:
    """The one file of an export without rows: a header, or nothing at all; as `write_parts`."""
    with ThreadPoolExecutor(1) as pool, _Writer(spec, pool) as writer:
        writer.write(0, pa.RecordBatch.from_pylist([], schema=schema))
        return writer.finish()


def _split_by_part(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The batch cut where the part changes; mostly it does not."""
    parts, data = batch.column(0), batch.drop_columns([batch.schema.names[0]])
    counts = pc.value_counts(parts)  # in order of first appearance, and equal parts are adjacent
    start = 0
    for entry in counts.to_pylist():
        yield entry["values"], data.slice(start, entry["counts"])
        start += entry["counts"]


class _Writer:
    """Writes parts one after the other, each into files of at most `max_file_size`.

    A row is never split: one that is larger than the limit by itself gets a file of its own.
    """

    def __init__(self, spec: WriteSpec, pool: ThreadPoolExecutor) -> None:
        self._spec = spec
        self._pool = pool
        self._client = _client(spec.connection)
        self._encoder: CsvEncoder | None = None
        self._header = b""
        self._part = -1
        self._number = 0
        self._file: FileUpload | None = None
        self._rows = 0
        self._open: list[FileUpload] = []
        self._reports: list[Report] = []

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, failure: object, *_: object) -> None:
        if failure is not None:
            for file in self._open:
                with contextlib.suppress(Exception):
                    file.abort()

    def write(self, part: int, rows: pa.RecordBatch) -> None:
        """Append rows to a part; the first call for a part begins it."""
        named = rows.rename_columns(list(self._spec.columns))
        encoder = self._encoder_for(named.schema)
        if part != self._part:
            self._close_file()
            self._part, self._number = part, 0
            self._open_file()
        for lines in encoder.encode_in_pieces(named):
            self._append(lines)

    def finish(self) -> list[Report]:
        """Close the last file; the reports of all files."""
        self._close_file()
        return self._reports

    def _encoder_for(self, schema: pa.Schema) -> CsvEncoder:
        if self._encoder is None:
            self._encoder = CsvEncoder(schema, self._spec.dialect, self._spec.quoted_columns)
            self._header = self._encoder.header() if self._spec.header else b""
        return self._encoder

    def _append(self, lines: pa.Array) -> None:
        """Whole lines, as many as fit into each file; found by bisection, not by a loop."""
        offsets, data = _offsets_and_data(lines)
        row, rows = 0, len(lines)
        while row < rows:
            file = self._current_file()
            room = max(0, self._spec.max_file_size - file.bytes)
            end = bisect_right(offsets, offsets[row] + room, lo=row, hi=rows + 1) - 1
            if end == row:
                if self._rows:
                    self._roll()
                    continue
                end = row + 1
            file.append(data[offsets[row] : offsets[end]])
            self._rows += end - row
            row = end

    def _current_file(self) -> FileUpload:
        if self._file is None:
            raise RuntimeError("no file is open")
        return self._file

    def _roll(self) -> None:
        self._close_file()
        self._open_file()

    def _open_file(self) -> None:
        spec = self._spec
        self._number += 1
        self._rows = 0
        self._file = FileUpload(
            self._client,
            self._pool,
            bucket=spec.bucket,
            key=f"{spec.prefix}part-{self._part:04d}-{self._number:04d}.csv",
            part_size=spec.part_size,
            in_flight=spec.in_flight,
            content_type=_CONTENT_TYPE,
        )
        self._open.append(self._file)
        if self._header:
            self._file.append(memoryview(self._header))

    def _close_file(self) -> None:
        if self._file is None:
            return
        file, self._file = self._file, None
        etags = file.finish()
        self._reports.append(
            {
                "part": self._part,
                "number": self._number,
                "key": file.key,
                "upload_id": file.upload_id,
                "etags": list(etags),
                "rows": self._rows,
                "bytes": file.bytes,
                "sha256": file.sha256,
            }
        )


def _client(connection: AwsConnection) -> S3Client:
    try:
        return s3_client(connection)
    except S3Error as exc:
        raise ExecutorError(f"on an executor, {exc}") from exc


def _offsets_and_data(lines: pa.Array) -> tuple[memoryview, memoryview]:
    """The row boundaries and the bytes of an encoder's lines, without copying either.

    `offsets[i]:offsets[i + 1]` is line i in the data.
    """
    _, offsets, data = lines.buffers()
    return (
        memoryview(offsets).cast("q")[: len(lines) + 1],
        memoryview(data) if data is not None else memoryview(b""),
    )
