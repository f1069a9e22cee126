"""Reads columns from the files of a batch, and compares the two encodings of a file."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.mzs3.arrow.arrays import float_bits
from dbt.adapters.mzs3.arrow.parquet import RandomAccessFile, batch_rows
from dbt.adapters.mzs3.arrow.version import require_version
from dbt.adapters.mzs3.errors import ExecutorError
from dbt.adapters.mzs3.shard.batch.footer import (
    MESSAGES,
    OTHERS,
    Bounds,
    Tally,
    may_hold,
    sizes,
)
from dbt.adapters.mzs3.shard.batch.structured import from_storage, nearest_doubles
from dbt.adapters.mzs3.shard.batch.write import TRUSTED, layout_of
from dbt.adapters.mzs3.shard.codec.decode import decode_rows, values_of_datums
from dbt.adapters.mzs3.shard.codec.encode import datums
from dbt.adapters.mzs3.shard.types import EXTENSION_KEY, Column, Type, extension_name, wire_type
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.failures import (
    READS_OBJECT,
    MissingError,
    PreconditionFailedError,
    StoreError,
    describe,
)
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.opened import open_store
from dbt.adapters.mzs3.store.reader import ObjectStream
from dbt.adapters.mzs3.store.store import ListedObject, Store

FILES_SCHEMA = pa.schema(
    [("task", pa.int32()), ("key", pa.string()), ("size", pa.int64()), ("etag", pa.string())]
)
REPORT = "report"
COMPARED_DDL = "key string, compared bigint, differing map<int, bigint>"
_COMPARED = pa.schema(
    {"key": pa.string(), "compared": pa.int64(), "differing": pa.map_(pa.int32(), pa.int64())}
)
_IF_DAMAGED = (
    "If it is damaged, restore the object, or read the shard as of a time before its batch"
)

# The end of the file, with the footer: pyarrow requests this many bytes first.
TAIL_BYTES = 64 * 1024


class BatchError(ValueError):
    """A file can't be read as a batch; the text says why, but does not name the file."""


@dataclass(frozen=True)
class FileComparison:
    """How many values of a file were compared, and how many differ, by column tag.

    Nothing is compared unless the file has both encodings, and this version may read both.
    """

    compared: int
    differing: dict[int, int]


def read_batch(
    source: Any,
    wanted: Sequence[Column],
    *,
    bounds: Sequence[Bounds] = (),
    tally: Tally | None = None,
) -> Iterator[pa.RecordBatch]:
    """Record batches of `t`, `d` and the wanted columns in wire form, named by tag, in file order.

    Reads structured columns if their version is trusted, else messages. Skips row groups if
    trusted statistics show that no row is within the bounds, which are of wanted columns. The
    `tally` counts what was fetched. Memory holds the wanted columns of one row group. Raises
    BatchError.
    """
    tally = Tally() if tally is None else tally
    with _errors_of_file():
        yield from _BatchReader(source, wanted).batches(bounds, tally)


def compare_encodings(source: Any) -> FileComparison:
    """Compares all columns of a file, floats by their bits; memory holds one row group.

    Raises BatchError for a file that can't be read, or a value that is invalid in an encoding.
    """
    with _errors_of_file():
        return _BatchReader(source, (), both=True).compare()


@contextlib.contextmanager
def _errors_of_file() -> Iterator[None]:
    try:
        yield
    except BatchError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BatchError(f"it can't be read: {error}. {_IF_DAMAGED}") from error


def _opened(source: Any, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
    """Opens the file so that all needed columns of a row group are fetched first, and kept."""
    return pq.ParquetFile(
        source, metadata=metadata, pre_buffer=True, page_checksum_verification=True
    )


class _BatchReader:
    """Reads columns of a batch's file; with `both`, all columns in both encodings, or none if only
    one of the encodings can be read."""

    def __init__(self, source: Any, wanted: Sequence[Column], *, both: bool = False) -> None:
        self._source = source
        self._wanted = wanted
        with _opened(source) as file:
            self._metadata, schema = file.metadata, file.schema_arrow
        self._layout = layout = layout_of(schema.metadata)
        is_trusted = layout.has_structure and layout.version in TRUSTED
        tags = set(layout.columns if both else (want.tag for want in wanted))
        self._columns = {tag: kind for tag, kind in layout.columns.items() if tag in tags}
        self._reads_columns = is_trusted and all(
            _is_known(schema.field("k_s").type.field(str(tag)), kind)
            for tag, kind in self._columns.items()
        )
        if not self._reads_columns and not layout.has_codec:
            raise BatchError(
                f"its structured columns, of batch version {layout.version}, are none that this "
                "version of dbt-mzs3 may read, and its rows are in no other form; use the version "
                "that wrote it, or a later one"
            )
        # For numerics that are wanted as doubles, the exact digits are not read.
        doubles = {want.tag for want in wanted if want.kind.name == "double"}
        numbers = (tag for tag, kind in self._columns.items() if kind.name == "numeric")
        self._subfields = {} if both else {tag: ".lossy" for tag in numbers if tag in doubles}
        self._reads_messages = both or (not self._reads_columns and bool(self._columns))
        if both and not (self._reads_columns and layout.has_codec):
            self._columns = {}

    def batches(self, bounds: Sequence[Bounds], tally: Tally) -> Iterator[pa.RecordBatch]:
        tags = [str(want.tag) for want in self._wanted]
        for batch in self._pieces(["t", "d", *self._names()], bounds, tally):
            columns = self._messages(batch) if self._reads_messages else self._structured(batch)
            arrays = [batch.column("t"), batch.column("d")]
            arrays += [self._values(want, columns, batch.num_rows) for want in self._wanted]
            yield pa.RecordBatch.from_arrays(arrays, ["t", "d", *tags])

    def compare(self) -> FileComparison:
        compared, differing = 0, Counter[int]()
        for batch in self._pieces(self._names(), (), Tally()) if self._columns else ():
            messages = self._messages(batch)
            for tag, values in self._structured(batch).items():
                compared += len(values)
                with self._errors_of(tag):
                    differing[tag] += _differing(values, messages[tag], self._columns[tag])
        return FileComparison(compared, dict(+differing))

    def _names(self) -> list[str]:
        names = ["k"] if self._reads_messages else []
        if self._reads_columns:
            names += [f"k_s.{tag}{self._subfields.get(tag, '')}" for tag in self._columns]
        return names

    def _pieces(
        self, names: Sequence[str], bounds: Sequence[Bounds], tally: Tally
    ) -> Iterator[pa.RecordBatch]:
        if self._reads_messages or not self._reads_columns:
            bounds = ()  # messages have no statistics of columns
        fetched = [*self._columns] if self._reads_columns else []
        if self._reads_messages:
            fetched.append(MESSAGES)
        tally.files += 1
        for number in range(self._metadata.num_row_groups):
            group = self._metadata.row_group(number)
            tally.groups += 1
            if not may_hold(group, bounds, self._columns):
                tally.skipped += 1
                continue
            in_file = sizes(group)
            tally.bytes.update({tag: in_file[tag] for tag in fetched})
            rows = batch_rows(group)
            with _opened(self._source, self._metadata) as file:
                yield from file.iter_batches(
                    rows, row_groups=[number], columns=names, use_threads=False
                )

    def _structured(self, batch: pa.RecordBatch) -> dict[int, pa.Array]:
        """The columns from the structured encoding, by tag, in the types of the file."""
        columns = {}
        for tag, kind in self._columns.items():
            with self._errors_of(tag):
                values = pc.struct_field(batch.column("k_s"), [str(tag)])
                if tag in self._subfields:
                    columns[tag] = pc.struct_field(values, ["lossy"])
                else:
                    columns[tag] = from_storage(values, kind)
        return columns

    def _messages(self, batch: pa.RecordBatch) -> dict[int, pa.Array]:
        """The columns from the messages, by tag, in the types of the file."""
        columns = self._layout.columns
        places = {place for place, tag in enumerate(columns) if tag in self._columns}
        decoded = decode_rows(batch.column("k"), list(columns.values()), places)
        return dict(zip(self._columns, decoded, strict=True))

    def _values(self, want: Column, columns: Mapping[int, pa.Array], rows: int) -> pa.Array:
        with self._errors_of(want.tag):
            if want.tag in columns:
                values = columns[want.tag]
                if want.kind.name == "double" and pa.types.is_decimal(values.type):
                    return nearest_doubles(values)
                return values.cast(wire_type(want.kind))
            default = values_of_datums(pa.array([want.default], pa.binary()), want.kind)
        return default.take(pa.repeat(pa.scalar(0, pa.int32()), rows))

    @contextlib.contextmanager
    def _errors_of(self, tag: int) -> Iterator[None]:
        """Turns an error about a value into a BatchError that names the column."""
        try:
            yield
        except (pa.ArrowException, ValueError) as error:
            names = [want.name for want in self._wanted if want.tag == tag and want.name]
            column = f"column {names[0]} (tag {tag})" if names else f"the column with tag {tag}"
            raise BatchError(f"{column} can't be read: {error}. {_IF_DAMAGED}") from error


def _differing(values: pa.Array, others: pa.Array, kind: Type) -> int:
    # Floats are compared by their bits: to Arrow, 0.0 equals -0.0, and NaN does not equal NaN.
    if float_bits(values).equals(float_bits(others)):
        return 0
    # As messages, values of any type can be compared. Only NULL becomes an empty message.
    first, second = (pc.fill_null(datums(each, kind), b"") for each in (values, others))
    return int(pc.sum(pc.not_equal(first, second)).as_py())


def _is_known(field: pa.Field, kind: Type) -> bool:
    """Whether this version knows the extension names of the field and of all fields inside."""
    stored = field.type
    if pa.types.is_map(stored):
        inside = [stored.key_field, stored.item_field]
    else:
        inside = [stored.field(place) for place in range(stored.num_fields)]
    name = (field.metadata or {}).get(EXTENSION_KEY, b"").decode()
    return name == extension_name(kind) and all(map(_is_known, inside, kind.children))


def read_files(
    connection: AwsConnection,
    location: S3Location,
    wanted: Sequence[Column],
    *,
    every: int,
    bounds: Sequence[Bounds],
    reports: bool,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Returns a function for `mapInArrow` that reads the files listed in rows of FILES_SCHEMA.

    Reads every `every`-th row of a file, from the first on, as `t`, `d`, c0, c1, …. With `reports`
    adds a column REPORT: NULL, except in an extra last row, with a Tally's report and `d` = 0.
    Raises ExecutorError, which names the file and, for a wrong value, the column.
    """

    def read(listed: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        require_version()
        store = open_store(connection, location)
        names = ["t", "d", *(f"c{place}" for place in range(len(wanted)))]
        if reports:
            names.append(REPORT)
        tally = Tally()
        for row in (row for batch in listed for row in batch.to_pylist()):
            before = tally.bytes.total()
            with _opened_file(store, location, row) as source:
                batches = read_batch(source, wanted, bounds=bounds, tally=tally)
                for rows in _every_nth(batches, every):
                    empty = [pa.nulls(rows.num_rows, pa.string())] if reports else []
                    yield pa.RecordBatch.from_arrays([*rows.columns, *empty], names)
            tally.bytes[OTHERS] += source.fetched - (tally.bytes.total() - before)
        if reports:
            zero = pa.array([0], pa.int64())
            nulls = [pa.nulls(1, wire_type(want.kind)) for want in wanted]
            report = pa.array([tally.report()])
            yield pa.RecordBatch.from_arrays([zero, zero, *nulls, report], names)

    return read


def compare_files(
    connection: AwsConnection, location: S3Location
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Returns a function for `mapInArrow`: for each row of FILES_SCHEMA, a row of COMPARED_DDL.

    Raises ExecutorError, which names the file and, for a wrong value, the column.
    """

    def compare(listed: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        require_version()
        store = open_store(connection, location)
        for row in (row for batch in listed for row in batch.to_pylist()):
            with _opened_file(store, location, row) as source:
                counts = compare_encodings(source)
            result = {**vars(counts), "key": row["key"], "differing": [*counts.differing.items()]}
            yield pa.RecordBatch.from_pylist([result], _COMPARED)

    return compare


def _every_nth(batches: Iterator[pa.RecordBatch], every: int) -> Iterator[pa.RecordBatch]:
    if every == 1:
        yield from batches
        return
    start = 0  # the first row to read in the next batch
    for batch in batches:
        places = range(start, batch.num_rows, every)
        yield batch.take(pa.array(places, pa.int64()))
        start += len(places) * every - batch.num_rows


@contextlib.contextmanager
def _opened_file(
    store: Store, location: S3Location, row: Mapping[str, Any]
) -> Iterator[RandomAccessFile]:
    """Opens the file in a row of FILES_SCHEMA. Turns BatchError to ExecutorError with its URI."""
    file = ListedObject(row["key"], row["etag"], row["size"])
    try:
        yield open_file(store, location, file)
    except BatchError as error:
        raise ExecutorError(f"{location.uri_of(file.key)}: {error}") from error


def open_file(store: Store, location: S3Location, file: ListedObject) -> RandomAccessFile:
    """The object as a file, fetched by ranges.

    Reads raise ExecutorError, which names the object, if it is gone, was replaced, or can't be
    fetched.
    """
    uri = location.uri_of(file.key)

    def fetch(start: int, end: int) -> bytes:
        stream = ObjectStream(store, file.key, file.etag, byte_range=(start, end))
        try:
            with contextlib.closing(stream):
                return stream.rest()
        except (PreconditionFailedError, MissingError) as exc:
            raise ExecutorError(
                f"{uri} is not the file that the shard's state named. If compact_shard has "
                "removed it since this run began, run again, and have it keep files for more "
                "hours; else something other than dbt-mzs3 removed or replaced it: restore it"
            ) from exc
        except StoreError as exc:
            raise ExecutorError(describe(exc, f"reading {uri}", READS_OBJECT)) from exc

    return RandomAccessFile(file.size, fetch, tail=TAIL_BYTES)
