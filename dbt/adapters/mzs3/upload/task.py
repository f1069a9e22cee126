"""The Spark tasks of an export: they upload the rows of whole parts."""

from __future__ import annotations

import contextlib
import json
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.arrow.arrays import concatenated_bytes, float_bits, is_string
from dbt.adapters.mzs3.arrow.packed import unpacked
from dbt.adapters.mzs3.arrow.version import require_version
from dbt.adapters.mzs3.errors import ExecutorError
from dbt.adapters.mzs3.formats.write.format import OpenFile
from dbt.adapters.mzs3.upload.file_upload import FileUpload, Uploader
from dbt.adapters.mzs3.upload.folders import Run, folder_of, runs
from dbt.adapters.mzs3.upload.progress import ProgressReporter
from dbt.adapters.mzs3.upload.spec import WriteSpec

REPORT_DDL = "report string"
# If more closed files are still being sent to S3, the task waits for the oldest.
_MAX_CLOSED = 64

Batches = Iterator[pa.RecordBatch]


def write_parts(spec: WriteSpec, context: Callable[[], Any]) -> Callable[[Batches], Batches]:
    """Returns a function for `mapInArrow` that uploads its rows, and yields reports as JSON.

    The first input column is the part; with `spec.packed`, the second is the hash, and the others
    are packed; else the others are the query's. Rows of a part, and of a folder in it, are
    adjacent and in their final order. Uploads stay open. All are aborted if the task fails, or if
    its rows refute an assumption about them. `context` is `TaskContext.get`.

    `PendingFile.from_dict` parses the report of a file, which is yielded once all of it is in S3.
    The last report is the task's: its `stage`, what its rows have `refuted`, if anything, and the
    `sums` of the positive and of the negative numbers in the column `summed` of the spec.
    """

    def copy_rows(batches: Batches) -> Batches:
        rows = coalesce_batches(batches, spec.max_batch_bytes)
        refuted = None
        if spec.packed:
            rows = (unpacked(batch, spec.packed, 1) for batch in drop_checked_hash(rows))
        if spec.max_batch_bytes is not None:
            rows = map(_undoubted, rows)
        sums = [0, 0]
        summed = _summed(rows, spec, sums)
        all_runs = (run for batch in summed for run in runs(batch, spec.partition_by))
        try:
            with contextlib.closing(_write_runs(spec, all_runs)) as reports:
                yield from map(_report, reports)
        except RefutedError as error:
            refuted = str(error)  # after a failure, Spark would retry with the same rows
        task = context()
        yield _report({"stage": task and task.stageId(), "refuted": refuted, "sums": sums})

    return copy_rows


def _report(values: Mapping[str, object]) -> pa.RecordBatch:
    return pa.record_batch({"report": [json.dumps(values)]})


def _write_runs(spec: WriteSpec, all_runs: Iterable[Run]) -> Generator[dict[str, object]]:
    """Uploads the runs as files; yields the report of each file once S3 has it."""
    require_version()
    with Uploader(spec) as uploader:
        writer = None
        for run in all_runs:
            writer = writer or _Writer(spec, uploader, run)
            writer.write(run)
            yield from writer.reports(keep=_MAX_CLOSED)
        if writer is not None:
            writer.finish()
            yield from writer.reports(keep=0)


def write_empty_part(spec: WriteSpec, schema: pa.Schema) -> list[dict[str, object]]:
    """Uploads the one file of an export without rows; returns its report.

    With partition columns, it is in the folder of NULLs: readers derive the columns from folders.
    """
    content = [field for i, field in enumerate(schema) if i not in spec.partition_by]
    rows = pa.RecordBatch.from_pylist([], schema=pa.schema(content))
    folder = (None,) * len(spec.partition_by)
    return list(_write_runs(spec, [Run(part=0, folder=folder, rows=rows)]))


class _Writer:
    """Writes runs to files, of which one at a time is open."""

    def __init__(self, spec: WriteSpec, uploader: Uploader, first: Run) -> None:
        self._spec = spec
        self._uploader = uploader
        self._names = [column.name for column in spec.content]
        self._folders = [spec.columns[i].name for i in spec.partition_by]
        self._files = spec.format.writer(
            first.rows.rename_columns(self._names).schema,
            [column.logical_type for column in spec.content],
            spec.max_file_size,
        )
        self._reporter = ProgressReporter(spec.progress, first.part)
        self._open: _NumberedFile | None = None
        self._closed: deque[tuple[dict[str, object], FileUpload]] = deque()

    def write(self, run: Run) -> None:
        file, folder = self._open, folder_of(self._folders, run.folder)
        if file is None or (file.part, file.folder) != (run.part, folder):
            file = self._begin(run.part, folder, self._spec.first_number)
        for piece in self._files.pieces(run.rows.rename_columns(self._names)):
            row = 0
            while row < len(piece):
                before = file.upload.bytes
                end = file.content.take(piece, row)
                file.rows += end - row
                self._reporter.add(end - row, file.upload.bytes - before)
                row = end
                if row < len(piece):
                    if self._spec.single_file is not None:
                        raise ExecutorError(
                            f"{file.upload.uri} would pass the size that S3 takes as one object; "
                            "leave out single_file, and set max_file_size"
                        )
                    file = self._begin(file.part, file.folder, file.number + 1)

    def finish(self) -> None:
        self._close()
        self._reporter.finish()

    def reports(self, keep: int) -> Iterator[dict[str, object]]:
        """Waits until S3 has all closed files except the `keep` newest; yields their reports."""
        while len(self._closed) > keep:
            head, upload = self._closed.popleft()
            yield {**head, **upload.report()}

    def _begin(self, part: int, folder: str, number: int) -> _NumberedFile:
        self._close()
        suffix, content_type = self._spec.format.file_type
        name = self._spec.single_file or f"part-{part:04d}-{number:04d}{suffix}"
        upload = FileUpload(self._uploader, self._spec.location.key(folder + name), content_type)
        self._open = _NumberedFile(part, number, folder, upload, self._files.open(upload))
        return self._open

    def _close(self) -> None:
        file, self._open = self._open, None
        if file is None:
            return
        before = file.upload.bytes
        file.content.close()
        file.upload.finish()
        self._reporter.add(0, file.upload.bytes - before)
        head = {"part": file.part, "number": file.number, "folder": file.folder, "rows": file.rows}
        # The OpenFile is not kept, as its compressor takes memory, and many files may be closed.
        self._closed.append((head, file.upload))


@dataclass
class _NumberedFile:
    part: int
    number: int
    folder: str
    upload: FileUpload
    content: OpenFile
    rows: int = 0


class RefutedError(Exception):
    """What was assumed is wrong: rows have `equal hashes`, or Comet sends `doubtful batches`."""


_HASH = 1  # the index of its column, after that of the part


def drop_checked_hash(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Removes the hash, the second column, from batches that are sorted by it.

    Raises RefutedError if rows with the same hash differ, except in the bits of a NaN. Columns
    must not be nested. Needs memory for two copies of the rows that share a hash.
    """
    last_row: pa.RecordBatch | None = None
    for batch in batches:
        if batch.num_rows == 0:
            continue
        if last_row is not None:
            _require_alike(last_row, batch.slice(0, 1))
        hashes = batch.column(_HASH)
        same = pc.equal(hashes.slice(0, batch.num_rows - 1), hashes.slice(1))
        if pc.any(same).as_py():
            indexes = pc.indices_nonzero(same)
            _require_alike(batch.take(indexes), batch.take(pc.add(indexes, 1)))
        last_row = batch.take(pa.array([batch.num_rows - 1]))  # a slice would keep all
        yield batch.select([i for i in range(batch.num_columns) if i != _HASH])


def _require_alike(left: pa.RecordBatch, right: pa.RecordBatch) -> None:
    """Raises RefutedError if rows of `left` and `right` have equal hashes, but differ."""
    if not left.column(_HASH).equals(right.column(_HASH)):
        return
    for column, other_column in zip(left.columns, right.columns, strict=True):
        if not float_bits(column).equals(float_bits(other_column)):
            raise RefutedError("equal hashes")


# By types' ids, the first value that is the same in files of Spark 2, which had another calendar:
# 1582-10-15 in days and, by Spark's own rule, 1900-01-01 in microseconds.
_FIRST = {pa.date32().id: -141_427, pa.timestamp("us").id: -2_208_988_800_000_000}


def _undoubted(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch, which Comet has sent. Raises RefutedError if it has doubtful values."""
    if any(map(_is_doubtful, batch.columns)):
        raise RefutedError("doubtful batches")
    return batch


def _is_doubtful(values: pa.Array) -> bool:
    """Whether Spark may have read other values; docs/engines/native.md says why."""
    kind = values.type
    if pa.types.is_nested(kind):
        inner = values.flatten()  # maps are lists of structs here
        return any(map(_is_doubtful, inner if pa.types.is_struct(kind) else [inner]))
    if is_string(kind):
        text = concatenated_bytes(pc.cast(values, pa.binary())).to_pybytes()
        return not text.isascii() and b"\xef\xbf\xbd" in text
    is_local = pa.types.is_timestamp(kind) and kind.tz is None  # Spark 2 had no such type
    return kind.id in _FIRST and not is_local and (pc.min(values).value or 0) < _FIRST[kind.id]


def _summed(batches: Batches, spec: WriteSpec, sums: list[int]) -> Batches:
    """The batches, whose first column is the part. Adds to the `sums` of the task's report."""
    for batch in batches:
        if spec.summed is not None:
            numbers = batch.column(1 + spec.summed)
            for sign, part in enumerate((pc.max_element_wise, pc.min_element_wise)):
                sums[sign] += pc.sum(part(numbers, 0)).as_py() or 0
        yield batch


_GATHERED_ROWS = 16_384
_GATHERED_BYTES = 4 << 20


def coalesce_batches(batches: Batches, max_bytes: int | None = None) -> Batches:
    """Joins small batches to larger ones, without changing rows or their order. Keeps less than
    8 MiB in memory, and twice that while joining them. Raises RefutedError if a batch has more
    than `max_bytes` even without its last row, with which Spark's own end."""
    gathered: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        is_large = batch.nbytes >= _GATHERED_BYTES
        if max_bytes is not None and batch[:-1].nbytes > max_bytes:
            raise RefutedError("doubtful batches")
        if not is_large:
            gathered.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
        if is_large or rows >= _GATHERED_ROWS or size >= _GATHERED_BYTES:
            yield from _join(gathered)
            rows = size = 0
        if is_large:
            yield batch
    yield from _join(gathered)


def _join(gathered: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Empties `gathered`, and returns its batches joined to one; [] if there are none."""
    if not gathered:
        return []
    joined: list[pa.RecordBatch] = pa.Table.from_batches(gathered).combine_chunks().to_batches()
    gathered.clear()
    return joined
