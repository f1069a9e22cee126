"""Columns of a batch's file, and nothing else of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.mzs3.arrow.arrays import float_bits
from dbt.adapters.mzs3.arrow.parquet import batch_rows
from dbt.adapters.mzs3.aws.failures import (
    READS_OBJECT,
    AwsFailure,
    describe,
    error_code,
    is_missing,
)
from dbt.adapters.mzs3.errors import ExecutorError
from dbt.adapters.mzs3.objects.reader import RandomAccessFile, ReplacedError, read_range
from dbt.adapters.mzs3.shard.executor.batch.write import BatchLayout, layout_of
from dbt.adapters.mzs3.shard.executor.codec.decode import decoded_rows, values_of_datums
from dbt.adapters.mzs3.shard.executor.codec.encode import datums
from dbt.adapters.mzs3.shard.executor.structured import unstored
from dbt.adapters.mzs3.shard.types.kind import Type
from dbt.adapters.mzs3.shard.types.storage import (
    EXTENSION_KEY,
    extension_name,
    storage_fields_inside,
    wire_type,
)

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

COMPARED = "compared"
_IF_DAMAGED = (
    "If it is damaged, restore the object, or read the shard as of a time before its batch"
)

# Of the end, where the footer is, as much is fetched at once as pyarrow asks for first.
TAIL_BYTES = 64 * 1024
_CHANGED = frozenset({"PreconditionFailed", "412"})


class BatchError(ValueError):
    """A file can't be read as a batch; the text says why, not which file."""


@dataclass(frozen=True)
class ReadColumn:
    """A column to read: its tag, the type to have it in, and its value where a file lacks it.

    `default` is a message `Datum`; an empty one is NULL. `name` is what users call the column,
    for errors alone.
    """

    tag: int
    kind: Type
    default: bytes = b""
    name: str = ""


def read_batch(
    source: Any, wanted: Sequence[ReadColumn], *, validate: bool = False
) -> Iterator[pa.RecordBatch]:
    """`t`, `d` and the wanted columns in wire form, named by tag; rows in the file's order.

    `source` is a file that can be read anywhere; of the columns that are not wanted nothing is
    read where the file has its rows as structured columns of a version that is trusted. Otherwise
    they are decoded from messages, if one of them is in the file. With `validate`, all columns of
    a file that has both are, and compared, and a last column COMPARED has for each row how many of
    its values were. Holds what is wanted of one row group, as it is in the
    file, and some rows. Raises BatchError.
    """
    try:
        with _opened(source) as file:
            layout = layout_of(file.schema_arrow.metadata)
            reader = _Reader(source, file, layout, wanted, validate=validate)
        yield from reader.batches()
    except BatchError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BatchError(f"it can't be read: {error}. {_IF_DAMAGED}") from error


def _opened(source: Any, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
    """The file; what it fetches ahead, all that is wanted of the row groups read, it keeps."""
    return pq.ParquetFile(
        source, metadata=metadata, pre_buffer=True, page_checksum_verification=True
    )


class _Reader:
    def __init__(
        self,
        source: Any,
        file: pq.ParquetFile,
        layout: BatchLayout,
        wanted: Sequence[ReadColumn],
        *,
        validate: bool,
    ) -> None:
        self._source = source
        self._metadata = file.metadata
        self._schema = file.schema_arrow
        self._layout = layout
        self._wanted = wanted
        self._counts = validate
        validate = validate and layout.is_trusted and layout.has_codec
        there = {column.tag: column for column in layout.columns}
        tags = there.keys() if validate else {want.tag for want in wanted}
        self._columns = [column for tag, column in there.items() if tag in tags]
        self._structure = layout.is_trusted and self._names_are_known()
        if not self._structure and not layout.has_codec:
            raise BatchError(
                f"its structured columns, of batch version {layout.version}, are none that this "
                "version of dbt-mzs3 may read, and its rows are in no other form; use the version "
                "that wrote it, or a later one"
            )
        self._codec = validate or (not self._structure and bool(self._columns))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, some at a time."""
        names = ["t", "d"]
        if self._codec:
            names.append("k")
        if self._structure:
            names += [f"k_s.{column.tag}" for column in self._columns]
        for batch in self._read(names):
            found = self._decoded(batch)
            arrays = [batch.column("t"), batch.column("d")]
            arrays += [self._values(want, found, batch.num_rows) for want in self._wanted]
            tags = [str(want.tag) for want in self._wanted]
            if self._counts:
                arrays.append(pa.repeat(pa.scalar(self._compared, pa.int64()), batch.num_rows))
                tags.append(COMPARED)
            yield pa.RecordBatch.from_arrays(arrays, ["t", "d", *tags])

    def _read(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        for number in range(self._metadata.num_row_groups):
            rows = batch_rows(self._metadata.row_group(number))
            with _opened(self._source, self._metadata) as file:
                yield from file.iter_batches(
                    rows, row_groups=[number], columns=names, use_threads=False
                )

    @property
    def _compared(self) -> int:
        """How many values of each row there are in both encodings."""
        return len(self._columns) if self._structure and self._codec else 0

    def _decoded(self, batch: pa.RecordBatch) -> dict[int, tuple[Type, pa.Array]]:
        structured = self._from_structure(batch) if self._structure else None
        messages = self._from_codec(batch) if self._codec else None
        if structured is not None and messages is not None:
            self._compare(structured, messages)
        found = structured if structured is not None else messages or []
        return {
            column.tag: (column.kind, values)
            for column, values in zip(self._columns, found, strict=True)
        }

    def _from_structure(self, batch: pa.RecordBatch) -> list[pa.Array]:
        if not self._columns:
            return []
        stored = batch.column("k_s")
        children = dict(zip((field.name for field in stored.type), stored.flatten(), strict=True))
        arrays = []
        for column in self._columns:
            with self._told_of(column.tag):
                arrays.append(unstored(children[str(column.tag)], column.kind))
        return arrays

    def _from_codec(self, batch: pa.RecordBatch) -> list[pa.Array]:
        columns = self._layout.columns
        tags = {column.tag for column in self._columns}
        places = {place for place, column in enumerate(columns) if column.tag in tags}
        return decoded_rows(batch.column("k"), [column.kind for column in columns], places)

    def _compare(self, structured: list[pa.Array], messages: list[pa.Array]) -> None:
        for column, one, other in zip(self._columns, structured, messages, strict=True):
            # Of numbers the bits count: Arrow has zeros of both signs as equal, and no NaNs.
            if not float_bits(one).equals(float_bits(other)):
                raise BatchError(
                    f"its two encodings differ in {self._shown(column.tag)}. One of the two is "
                    "wrong: if the object is what was written, report it with the versions of "
                    "dbt-mzs3 and pyarrow; without `validate`, its structured columns are read"
                )

    def _values(
        self, want: ReadColumn, found: dict[int, tuple[Type, pa.Array]], rows: int
    ) -> pa.Array:
        with self._told_of(want.tag):
            if want.tag in found:
                kind, values = found[want.tag]
                return widened(values, kind, want.kind)
            one = values_of_datums(pa.array([want.default], pa.binary()), want.kind)
        return one.take(pa.repeat(pa.scalar(0, pa.int32()), rows))

    @contextlib.contextmanager
    def _told_of(self, tag: int) -> Iterator[None]:
        """Errors of values, as errors of their column."""
        try:
            yield
        except (pa.ArrowException, ValueError) as error:
            text = f"{self._shown(tag)} can't be read: {error}. {_IF_DAMAGED}"
            raise BatchError(text) from error

    def _shown(self, tag: int) -> str:
        """The column as its users know it; one that is not asked for has a tag alone."""
        names = [want.name for want in self._wanted if want.tag == tag and want.name]
        return f"column {names[0]} (tag {tag})" if names else f"the column with tag {tag}"

    def _names_are_known(self) -> bool:
        """Whether every wanted column is stored as this version knows it, nested ones too."""
        structure = self._schema.field("k_s").type
        return all(_is_known(structure.field(str(c.tag)), c.kind) for c in self._columns)


def _is_known(field: pa.Field, kind: Type) -> bool:
    """Whether the field, and each inside of it, has the name that this version writes."""
    name = (field.metadata or {}).get(EXTENSION_KEY, b"").decode()
    inside = storage_fields_inside(field.type, kind)
    return name == extension_name(kind) and all(_is_known(f, k) for f, k in inside)


@dataclass(frozen=True)
class StoredFile:
    """A file as the shard's state names it; the size in bytes."""

    key: str
    size: int
    etag: str


def open_file(client: S3Client, bucket: str, file: StoredFile) -> RandomAccessFile:
    """The file, to be read anywhere; ranges come from S3 as they are asked for, the end once.

    Reading raises ExecutorError, which names the object, if it is gone, is another one than the
    state names, or can't be fetched.
    """
    uri = f"s3://{bucket}/{file.key}"

    def fetch(start: int, end: int) -> bytes:
        try:
            return read_range(client, bucket, file.key, file.etag, (start, end))
        except (*AwsFailure, ReplacedError, OSError) as exc:
            if isinstance(exc, ReplacedError) or is_missing(exc) or error_code(exc) in _CHANGED:
                raise ExecutorError(
                    f"{uri} is not the file that the shard's state named. If compact_shard has "
                    "removed it since this run began, run again, and have it keep files for more "
                    "hours; else something other than dbt-mzs3 removed or replaced it: restore it"
                ) from exc
            raise ExecutorError(describe(exc, f"reading {uri}", READS_OBJECT)) from exc

    return RandomAccessFile(file.size, fetch, tail=TAIL_BYTES)


def widened(values: pa.Array, kind: Type, target: Type) -> pa.Array:
    """Wire values of `kind` as those of `target`, each the same value.

    Raises ArrowInvalid for a value that `target` does not have.
    """
    if kind == target:
        return values
    return values.cast(wire_type(target))


def widened_datum(message: bytes, kind: Type, target: Type) -> bytes:
    """The message `Datum` of a value of `kind` as that of the same value of `target`."""
    if not message:
        return message
    [one] = datums(widened(values_of_datums(pa.array([message]), kind), kind, target), target)
    return bytes(one.as_py())
