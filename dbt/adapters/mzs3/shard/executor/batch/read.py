"""Reading columns of a batch's files."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.mzs3.arrow.arrays import float_bits
from dbt.adapters.mzs3.arrow.parquet import batch_rows
from dbt.adapters.mzs3.arrow.version import require_version
from dbt.adapters.mzs3.aws.client import s3_client
from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.aws.failures import (
    READS_OBJECT,
    AwsFailure,
    describe,
    error_code,
    is_missing,
)
from dbt.adapters.mzs3.errors import ExecutorError
from dbt.adapters.mzs3.objects.prefix import ListedObject
from dbt.adapters.mzs3.objects.reader import ObjectStream, RandomAccessFile, ReplacedError
from dbt.adapters.mzs3.shard.executor.batch.write import TRUSTED, layout_of
from dbt.adapters.mzs3.shard.executor.codec.decode import decoded_rows, values_of_datums
from dbt.adapters.mzs3.shard.executor.structured import nearest_doubles, unstored
from dbt.adapters.mzs3.shard.types import EXTENSION_KEY, Column, Type, extension_name, wire_type

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

FILES_DDL = "task int, key string, size bigint, etag string"
COMPARED = "compared"
_IF_DAMAGED = (
    "If it is damaged, restore the object, or read the shard as of a time before its batch"
)

# Of the end, where the footer is, as much is fetched at once as pyarrow asks for first.
TAIL_BYTES = 64 * 1024
_CHANGED = frozenset({"PreconditionFailed", "412"})


class BatchError(ValueError):
    """A file can't be read as a batch; the text says why, but does not name the file."""


def read_batch(
    source: Any, wanted: Sequence[Column], *, validate: bool = False
) -> Iterator[pa.RecordBatch]:
    """Record batches of `t`, `d` and the wanted columns in wire form, named by tag, in file order.

    Structured columns are read if their version is trusted, else messages. With `validate`, all
    columns of a file with both encodings are compared, and a last column COMPARED has the number
    of compared values of each row. Memory holds what is wanted of one row group. Raises
    BatchError.
    """
    try:
        yield from _Reader(source, wanted, validate=validate).batches()
    except BatchError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BatchError(f"it can't be read: {error}. {_IF_DAMAGED}") from error


def _opened(source: Any, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
    """The file, which keeps what it prefetches: all that is wanted of the row groups read."""
    return pq.ParquetFile(
        source, metadata=metadata, pre_buffer=True, page_checksum_verification=True
    )


class _Reader:
    def __init__(self, source: Any, wanted: Sequence[Column], *, validate: bool) -> None:
        self._source = source
        self._wanted = wanted
        with _opened(source) as file:
            self._metadata, schema = file.metadata, file.schema_arrow
        self._layout = layout = layout_of(schema.metadata)
        is_trusted = layout.has_structure and layout.version in TRUSTED
        compares = validate and is_trusted and layout.has_codec
        tags = {want.tag for want in wanted}
        self._columns = {t: kind for t, kind in layout.columns.items() if compares or t in tags}
        self._structure = is_trusted and all(
            _is_known(schema.field("k_s").type.field(str(tag)), kind)
            for tag, kind in self._columns.items()
        )
        if not self._structure and not layout.has_codec:
            raise BatchError(
                f"its structured columns, of batch version {layout.version}, are none that this "
                "version of dbt-mzs3 may read, and its rows are in no other form; use the version "
                "that wrote it, or a later one"
            )
        # Of numbers that are wanted as doubles no digits are read.
        doubles = {want.tag for want in wanted if want.kind.name == "double"}
        numbers = (tag for tag, kind in self._columns.items() if kind.name == "numeric")
        self._part = {} if compares else {tag: ".lossy" for tag in numbers if tag in doubles}
        self._codec = compares or (not self._structure and bool(self._columns))
        compared = len(self._columns) if self._structure and self._codec else 0
        self._count = pa.scalar(compared, pa.int64()) if validate else None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, some at a time."""
        names = ["t", "d"]
        if self._codec:
            names.append("k")
        if self._structure:
            names += [f"k_s.{tag}{self._part.get(tag, '')}" for tag in self._columns]
        tags = [str(want.tag) for want in self._wanted]
        if self._count is not None:
            tags.append(COMPARED)
        for number in range(self._metadata.num_row_groups):
            rows = batch_rows(self._metadata.row_group(number))
            how = {"row_groups": [number], "columns": names, "use_threads": False}
            with _opened(self._source, self._metadata) as file:
                for batch in file.iter_batches(rows, **how):
                    found = self._decoded(batch)
                    arrays = [batch.column("t"), batch.column("d")]
                    arrays += [self._values(want, found, batch.num_rows) for want in self._wanted]
                    if self._count is not None:
                        arrays.append(pa.repeat(self._count, batch.num_rows))
                    yield pa.RecordBatch.from_arrays(arrays, ["t", "d", *tags])

    def _decoded(self, batch: pa.RecordBatch) -> dict[int, pa.Array]:
        """The columns that are in the file, by tag, in the types that they have there."""
        structured = {}
        if self._structure:
            for tag, kind in self._columns.items():
                with self._errors_of(tag):
                    values = pc.struct_field(batch.column("k_s"), [str(tag)])
                    if tag in self._part:
                        structured[tag] = pc.struct_field(values, ["lossy"])
                    else:
                        structured[tag] = unstored(values, kind)
        if not self._codec:
            return structured
        columns = self._layout.columns
        places = {place for place, tag in enumerate(columns) if tag in self._columns}
        found = decoded_rows(batch.column("k"), list(columns.values()), places)
        messages = dict(zip(self._columns, found, strict=True))
        for tag, values in structured.items():
            # Of numbers the bits count: Arrow has zeros of both signs as equal, and no NaNs.
            if not float_bits(values).equals(float_bits(messages[tag])):
                raise BatchError(
                    f"its two encodings differ in {self._shown(tag)}. One of the two is "
                    "wrong: if the object is what was written, report it with the versions of "
                    "dbt-mzs3 and pyarrow; without `validate`, its structured columns are read"
                )
        return structured or messages

    def _values(self, want: Column, found: Mapping[int, pa.Array], rows: int) -> pa.Array:
        with self._errors_of(want.tag):
            if want.tag in found:
                values = found[want.tag]
                if want.kind.name == "double" and pa.types.is_decimal(values.type):
                    return nearest_doubles(values)
                return values.cast(wire_type(want.kind))
            one = values_of_datums(pa.array([want.default], pa.binary()), want.kind)
        return one.take(pa.repeat(pa.scalar(0, pa.int32()), rows))

    @contextlib.contextmanager
    def _errors_of(self, tag: int) -> Iterator[None]:
        """An error of a value becomes a BatchError that names the column."""
        try:
            yield
        except (pa.ArrowException, ValueError) as error:
            text = f"{self._shown(tag)} can't be read: {error}. {_IF_DAMAGED}"
            raise BatchError(text) from error

    def _shown(self, tag: int) -> str:
        """The column as its users know it, or its tag where it is only compared."""
        names = [want.name for want in self._wanted if want.tag == tag and want.name]
        return f"column {names[0]} (tag {tag})" if names else f"the column with tag {tag}"


def _is_known(field: pa.Field, kind: Type) -> bool:
    """Whether the field and all inside of it have the extension names of this version."""
    stored = field.type
    if pa.types.is_map(stored):
        inside = [stored.key_field, stored.item_field]
    else:
        inside = [stored.field(place) for place in range(stored.num_fields)]
    name = (field.metadata or {}).get(EXTENSION_KEY, b"").decode()
    return name == extension_name(kind) and all(map(_is_known, inside, kind.children))


def read_files(
    connection: AwsConnection, bucket: str, wanted: Sequence[Column], *, validate: bool, every: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For `mapInArrow` over rows of FILES_DDL: as `read_batch`, with the columns c0, c1, ….

    Of each file, reads the first row and then every `every`-th one. Raises ExecutorError, which
    names the file and, for a wrong value, the column.
    """

    def read(listed: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        require_version()
        client = s3_client(connection)
        names = ["t", "d", *(f"c{place}" for place in range(len(wanted)))]
        if validate:
            names.append(COMPARED)
        for row in (row for batch in listed for row in batch.to_pylist()):
            file = ListedObject(row["key"], row["etag"], row["size"])
            source = open_file(client, bucket, file)
            try:
                found = read_batch(source, wanted, validate=validate)
                for rows in _sampled(found, every):
                    yield pa.RecordBatch.from_arrays(rows.columns, names)
            except BatchError as error:
                raise ExecutorError(f"s3://{bucket}/{file.key}: {error}") from error

    return read


def _sampled(batches: Iterator[pa.RecordBatch], every: int) -> Iterator[pa.RecordBatch]:
    if every == 1:
        yield from batches
        return
    start = 0  # of the next batch, the first row that is taken
    for batch in batches:
        taken = range(start, batch.num_rows, every)
        yield batch.take(pa.array(taken, pa.int64()))
        start += len(taken) * every - batch.num_rows


def open_file(client: S3Client, bucket: str, file: ListedObject) -> RandomAccessFile:
    """The object as a file, read by ranges.

    Reading it raises ExecutorError, which names the object, if it is gone, was replaced, or can't
    be fetched.
    """
    uri = f"s3://{bucket}/{file.key}"

    def fetch(start: int, end: int) -> bytes:
        stream = ObjectStream(client, bucket, file.key, file.etag, span=(start, end))
        try:
            with contextlib.closing(stream):
                return stream.rest()
        except (*AwsFailure, ReplacedError, OSError) as exc:
            if isinstance(exc, ReplacedError) or is_missing(exc) or error_code(exc) in _CHANGED:
                raise ExecutorError(
                    f"{uri} is not the file that the shard's state named. If compact_shard has "
                    "removed it since this run began, run again, and have it keep files for more "
                    "hours; else something other than dbt-mzs3 removed or replaced it: restore it"
                ) from exc
            raise ExecutorError(describe(exc, f"reading {uri}", READS_OBJECT)) from exc

    return RandomAccessFile(file.size, fetch, tail=TAIL_BYTES)
