"""The interfaces of the file formats that are written, and what they share."""

from __future__ import annotations

import io
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Protocol, TypeVar

import pyarrow as pa

# The size of a piece: large enough for Arrow's speed, small enough for a worker's memory.
PIECE_BYTES = 8 << 20

# Columns that are sent to workers with the rows, but not written to files.
PART_COLUMN = "_mz_part"
HASH_COLUMN = "_mz_hash"

Content = TypeVar("Content")
Kind = Literal["plain", "list", "struct", "map", "interval", "variant"]


@dataclass(frozen=True)
class LogicalType:
    """The meaning of a column, or of a nested value, as Spark sends it.

    plain: the Arrow type is the meaning. list, struct: `children` are the element or the fields.
    map: a list of structs `(key, value)`, sorted by key; `children` are key and value. interval: a
    struct `(months int32, days int32, micros int64)`. variant: a string that contains JSON.
    """

    kind: Kind = "plain"
    children: tuple[LogicalType, ...] = ()

    def of_children(self, count: int) -> tuple[LogicalType, ...]:
        """The meanings of `count` nested values, plain by default."""
        return self.children or (PLAIN,) * count


PLAIN = LogicalType()


@dataclass(frozen=True)
class ExportedColumn:
    """A column of the query: its name, and what its values mean."""

    name: str
    logical_type: LogicalType = PLAIN


class Sink(Protocol):
    """The bytes of one file, in order."""

    @property
    def bytes(self) -> int:
        """The number of bytes so far."""

    def append(self, data: memoryview) -> None:
        """Appends `data`, whose buffer must not change afterwards."""


class SinkFile(io.RawIOBase):
    """A sink as a file for Arrow; ignores writes once `is_given_up`."""

    def __init__(self, sink: Sink) -> None:
        super().__init__()
        self._sink = sink
        self.is_given_up = False

    def write(self, data: Any, /) -> int:
        """Appends a copy, as the writer may reuse its buffer."""
        copy = bytes(data)
        if not self.is_given_up:
            self._sink.append(memoryview(copy))
        return len(copy)

    def writable(self) -> bool:
        """True."""
        return True


class OpenFile(Protocol):
    """One file that is being written."""

    def take(self, piece: Any, start: int) -> int:
        """Writes the rows from index `start` on that fit. Returns the index of the next row.

        If rows remain, the file is full. A file without rows takes at least one row.
        """

    def close(self) -> None:
        """Writes the rows that are held back, and the end of the file."""


@dataclass(frozen=True)
class RowBlock(Generic[Content]):
    """Rows prepared for a file: row i has `ends[i + 1] - ends[i]` bytes."""

    content: Content
    ends: memoryview

    def __len__(self) -> int:
        return len(self.ends) - 1

    def end_within(self, start: int, room: int) -> int:
        """The end of the rows from `start` on that fit into `room` bytes."""
        limit = self.ends[start] + max(0, room)
        return bisect_right(self.ends, limit, lo=start, hi=len(self.ends)) - 1


def in_pieces(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows in slices of at most PIECE_BYTES, or of a single row that is larger."""
    if rows.num_rows > 1 and rows.nbytes > PIECE_BYTES:
        half = rows.num_rows // 2
        yield from in_pieces(rows.slice(0, half))
        yield from in_pieces(rows.slice(half))
    else:
        yield rows


@dataclass(frozen=True)
class FileWriter:
    """Writes rows of one schema to files, whose bytes do not depend on how rows were batched.

    `prepare` converts rows to a piece, which has a length; `open` starts a file that takes pieces.
    """

    prepare: Callable[[pa.RecordBatch], Any]
    open: Callable[[Sink], OpenFile]

    def pieces(self, rows: pa.RecordBatch) -> Iterator[Any]:
        """The prepared rows, in pieces small enough for a worker's memory."""
        return map(self.prepare, in_pieces(rows))


class Format(Protocol):
    """A file format with its options; it is sent to the workers."""

    @property
    def file_type(self) -> FileType:
        """The suffix of files' names, and the media type of their objects."""

    @abstractmethod
    def writer(
        self, schema: pa.Schema, logical_types: Sequence[LogicalType], max_file_size: int
    ) -> FileWriter:
        """The writer for rows of `schema`, with the columns' real names; sizes are in bytes.

        Raises ExecutorError that lists every column for which the format has no type.
        """


class FileType(NamedTuple):
    """The suffix of files' names, such as `.csv`, and the media type of their objects."""

    suffix: str
    content_type: str


@dataclass(frozen=True)
class ExportFormat(Format):
    """A format of `copy_to_s3` with its options; `formats.write.FORMATS` lists all of them.

    Its fields are options of models: texts, flags, numbers and tuples of texts.
    """

    name: ClassVar[str]
    """The value of the option `format`."""
    title: ClassVar[str]
    """The format's name for people."""
    file_types: ClassVar[Mapping[str, FileType]]
    """The suffix and media type by the value of `compression`; the default comes first."""
    reading_options: ClassVar[tuple[str, ...]] = ()
    """The options of this format alone that a reader needs."""

    compression: str
    """Each format declares the choices and the default."""

    @property
    def file_type(self) -> FileType:
        """The suffix of files' names, and the media type of their objects."""
        return self.file_types[self.compression]

    def of_file(self, name: str) -> ExportFormat:
        """The format with the compression that the suffix of a file's name stands for, if any."""
        for compression, file_type in self.file_types.items():
            if name.endswith(file_type.suffix):
                return replace(self, compression=compression)
        return self

    def column_problems(
        self, names: Sequence[str], parts: Iterable[tuple[str, str]]
    ) -> Iterable[str]:
        """Messages about columns of a query that the format can't write.

        `parts` are the paths and Spark types of the columns and of all nested values, such as
        `a.b[]` and `time(6)`.
        """
        return ()

    @abstractmethod
    def count_rows(self, file: pa.NativeFile) -> int:
        """The number of rows of a file, in bounded memory.

        Raises OSError, ArrowException or ValueError if the file is not of the format. Sequential
        reads are cheapest: `verify_copy` fetches bytes anew if they are read out of order.
        """
