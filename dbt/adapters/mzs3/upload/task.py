"""The task of an export: rows of whole parts in, open uploads out."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.errors import ExecutorError
from dbt.adapters.mzs3.formats.format import FileWriter, OpenFile
from dbt.adapters.mzs3.upload.folders import Run, folder_of, runs
from dbt.adapters.mzs3.upload.progress import ProgressReporter
from dbt.adapters.mzs3.upload.spec import WriteSpec
from dbt.adapters.mzs3.upload.upload import FileUpload, Uploader

REPORT_DDL = (
    "part int, number int, folder string, key string, upload_id string, etags array<string>, "
    "rows bigint, bytes bigint, sha256 string, stage int, tied boolean"
)
_REPORT_SCHEMA = pa.schema(
    [
        ("part", pa.int32()),
        ("number", pa.int32()),
        ("folder", pa.string()),
        ("key", pa.string()),
        ("upload_id", pa.string()),
        ("etags", pa.list_(pa.string())),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
        ("sha256", pa.string()),
        ("stage", pa.int32()),
        ("tied", pa.bool_()),
    ]
)
# So many closed files may wait for S3 before the oldest is reported.
_CLOSED = 64

Batches = Iterator[pa.RecordBatch]


class TaskContext(Protocol):
    """What a task knows of itself: Spark's own, which workers have."""

    def stageId(self) -> int:
        """Of the stage that the task is part of."""


def write_parts(
    spec: WriteSpec, context: Callable[[], TaskContext | None]
) -> Callable[[Batches], Batches]:
    """A function for `mapInArrow`: uploads its rows, yields one row for each file.

    The first input column is the part, the second the hash if `spec.sorted_by_hash`, the others
    are the query's; rows of a part are adjacent, in their final order, and those of a folder are
    adjacent among them. No upload is completed. On any failure the task's uploads are aborted.
    So are they if different rows have one hash.

    The last row is of no file: it has the task's `stage`, and is `tied` if different rows have
    one hash. A task without rows yields it too.
    """

    def copy_rows(batches: Batches) -> Batches:
        rows = coalesce_batches(batches)
        tied = False
        try:
            yield from _written(spec, drop_checked_hash(rows) if spec.sorted_by_hash else rows)
        except TiedRowsError:
            tied = True  # to fail would have Spark try again, with the same rows
        task = context()
        stage = None if task is None else task.stageId()
        yield pa.RecordBatch.from_pylist([{"stage": stage, "tied": tied}], schema=_REPORT_SCHEMA)

    return copy_rows


def _written(spec: WriteSpec, batches: Batches) -> Batches:
    with Uploader(spec) as uploader:
        writer = _Writer(spec, uploader)
        for batch in batches:
            for run in runs(batch, spec.partition_by):
                writer.write(run)
                yield from writer.reports(keep=_CLOSED)
        writer.finish()
        yield from writer.reports(keep=0)


def write_empty_part(spec: WriteSpec, schema: pa.Schema) -> list[dict[str, Any]]:
    """The one file of an export without rows: a header, a schema, or nothing at all.

    `schema` is that of the query's columns; the file is in no folder. Reports as `write_parts`.
    """
    content = [field for i, field in enumerate(schema) if i not in spec.partition_by]
    rows = pa.RecordBatch.from_pylist([], schema=pa.schema(content))
    with Uploader(spec) as uploader:
        writer = _Writer(spec, uploader)
        writer.write(Run(part=0, folder=(), rows=rows))
        writer.finish()
        return [report for batch in writer.reports(keep=0) for report in batch.to_pylist()]


class _Writer:
    """Writes runs of rows one after the other, each part's folder into files of its own."""

    def __init__(self, spec: WriteSpec, uploader: Uploader) -> None:
        self._spec = spec
        self._uploader = uploader
        self._names = [c.name for i, c in enumerate(spec.columns) if i not in spec.partition_by]
        self._folders = [spec.columns[i].name for i in spec.partition_by]
        self._files: FileWriter | None = None
        self._reporter: ProgressReporter | None = None
        self._place: tuple[int, tuple[Any, ...]] | None = None
        self._open: _NumberedFile | None = None
        self._closed: deque[_NumberedFile] = deque()

    def write(self, run: Run) -> None:
        """Append a run of rows; where the part or the folder changes, a new file begins."""
        rows = run.rows.rename_columns(self._names)
        if self._files is None:
            logical_types = [column.logical_type for column in self._spec.content]
            self._files = self._spec.format.writer(
                rows.schema, logical_types, self._spec.max_file_size
            )
        if self._reporter is None:
            self._reporter = ProgressReporter(self._spec.progress, run.part)
        place = (run.part, run.folder)
        if self._open is None or place != self._place:
            self._close()
            self._place = place
            self._begin(run.part, folder_of(self._folders, run.folder), self._spec.first_number)
        for piece in self._files.pieces(rows):
            self._append(piece)

    def finish(self) -> None:
        """Close the last file."""
        self._close()
        if self._reporter is not None:
            self._reporter.finish()

    def reports(self, keep: int) -> Batches:
        """Reports of closed files, but for the `keep` newest, which S3 may still be taking."""
        ready = []
        while len(self._closed) > keep:
            ready.append(self._closed.popleft().report())
        if ready:
            yield pa.RecordBatch.from_pylist(ready, schema=_REPORT_SCHEMA)

    def _append(self, piece: Any) -> None:
        row, rows = 0, len(piece)
        while row < rows:
            file = self._current()
            before = file.upload.bytes
            end = file.take(piece, row)
            if self._reporter is not None:
                self._reporter.add(end - row, file.upload.bytes - before)
            row = end
            if row < rows:
                self._roll()

    def _current(self) -> _NumberedFile:
        if self._open is None:
            raise RuntimeError("no file is open")
        return self._open

    def _roll(self) -> None:
        file = self._current()
        if self._spec.single_file is not None:
            raise ExecutorError(
                f"{file.upload.uri} would pass the size that S3 takes as one object; leave out "
                "single_file, and set max_file_size"
            )
        self._close()
        self._begin(file.part, file.folder, file.number + 1)

    def _begin(self, part: int, folder: str, number: int) -> None:
        if self._files is None:
            raise RuntimeError("no rows have been seen")
        name = self._spec.single_file or f"part-{part:04d}-{number:04d}{self._spec.format.suffix}"
        key = f"{self._spec.prefix}{folder}{name}"
        upload = self._uploader.open(key, self._spec.format.content_type)
        self._open = _NumberedFile(part, number, folder, upload, self._files.open(upload))

    def _close(self) -> None:
        if self._open is not None:
            file, self._open = self._open, None
            before = file.upload.bytes
            file.close()
            file.upload.finish()
            if self._reporter is not None:
                self._reporter.add(0, file.upload.bytes - before)
            self._closed.append(file)


class _NumberedFile:
    def __init__(
        self, part: int, number: int, folder: str, upload: FileUpload, content: OpenFile
    ) -> None:
        self.part = part
        self.number = number
        self.folder = folder
        self.upload = upload
        self._content: OpenFile | None = content
        self.rows = 0

    def take(self, piece: Any, start: int) -> int:
        """As `OpenFile.take`; counts the rows."""
        if self._content is None:
            raise RuntimeError("the file is closed")
        end = self._content.take(piece, start)
        self.rows += end - start
        return end

    def close(self) -> None:
        """No more rows; lets go of what a compressor holds, as many closed files may wait."""
        if self._content is not None:
            self._content.close()
            self._content = None

    def report(self) -> dict[str, object]:
        """A row of the reports; waits until S3 has the file."""
        place = {"part": self.part, "number": self.number, "folder": self.folder}
        return {**place, **self.upload.report(), "rows": self.rows}


class TiedRowsError(Exception):
    """Two rows that are not alike have one hash: it is not enough to sort by."""


_HASH = 1  # index of the column; the part is before it


def drop_checked_hash(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches without their second column, the hash, by which each part is sorted.

    Nothing in them is nested. Rows of one hash are alike bit by bit, but for the bits of a NaN,
    so any order of them is the same; raises TiedRowsError if two are not. Memory beside the batch:
    twice its rows of one hash.
    """
    before: pa.RecordBatch | None = None
    for batch in batches:
        if batch.num_rows == 0:
            continue
        if before is not None:
            _require_alike(before, batch.slice(0, 1))
        hashes = batch.column(_HASH)
        same = pc.equal(hashes.slice(0, batch.num_rows - 1), hashes.slice(1))
        if pc.any(same).as_py():
            first = pc.indices_nonzero(same)
            _require_alike(batch.take(first), batch.take(pc.add(first, 1)))
        before = batch.take(pa.array([batch.num_rows - 1]))  # lets go of the rest
        yield batch.select([i for i in range(batch.num_columns) if i != _HASH])


def _require_alike(left: pa.RecordBatch, right: pa.RecordBatch) -> None:
    """Raises if a row on the left has the hash of the one on the right, and is another."""
    if left.column(_HASH).equals(right.column(_HASH)) and not _all_alike(left, right):
        raise TiedRowsError


def _all_alike(left: pa.RecordBatch, right: pa.RecordBatch) -> bool:
    return all(
        _bits(mine).equals(_bits(other))
        for mine, other in zip(left.columns, right.columns, strict=True)
    )


def _bits(column: pa.Array) -> pa.Array:
    """Floats as what is stored of them: 0.0 is unlike -0.0. All NaNs are alike, as in files."""
    if not pa.types.is_floating(column.type):
        return column
    one_nan = pc.if_else(pc.is_nan(column), pa.scalar(math.nan, column.type), column)
    return one_nan.view(pa.int64() if pa.types.is_float64(column.type) else pa.int32())


_GATHERED_ROWS = 8_192
_GATHERED_BYTES = 4 << 20


def coalesce_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in the same order; small batches are joined, large ones come as they are.

    Memory beside the batches that come: less than 8 MiB held back, and as much again while they
    are joined.
    """
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if batch.nbytes >= _GATHERED_BYTES:
            yield from _joined(held)
            yield batch
            rows = size = 0
            continue
        held.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _GATHERED_ROWS or size >= _GATHERED_BYTES:
            yield from _joined(held)
            rows = size = 0
    yield from _joined(held)


def _joined(held: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The batches that were held as one, or none; they are held no more."""
    if not held:
        return []
    joined: list[pa.RecordBatch] = pa.Table.from_batches(held).combine_chunks().to_batches()
    held.clear()
    return joined
