"""The interface of a format of source objects, and the options and records of reading."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import pyarrow as pa

from dbt.adapters.mzs3.formats.read.columns import Column
from dbt.adapters.mzs3.formats.read.encoding import UTF_8, canonical_encoding, readable_text
from dbt.adapters.mzs3.options.option import option
from dbt.adapters.mzs3.options.values import choice, whole_number

FORMAT_NAMES = CSV, AVRO, PARQUET, JSONL = ("csv", "avro", "parquet", "jsonl")
EXACT, REORDER, SUBSET = "exact", "reorder", "subset"
HEADER_MATCHES = (EXACT, REORDER, SUBSET)
FAIL, SKIP_OBJECT, REJECT = "fail", "skip_object", "reject"
NULL, IGNORE, RESCUE, ADD = "null", "ignore", "rescue", "add"
ON_HEADER_MISMATCH = (FAIL, SKIP_OBJECT)
ON_BAD_ROW = (FAIL, REJECT)

MAX_RAW_BYTES = 1024 * 1024
"""How many bytes of a rejected record are kept as its raw text."""


@dataclass(frozen=True)
class Reading:
    """How objects are read, and what is done with those that are not as declared.

    `max_rejects` is for one run, None for any number; `encoding` is a canonical name of `codecs`.
    """

    header_match: str = option(choice(HEADER_MATCHES), EXACT)
    """`exact`: the pinned names in the pinned order. `reorder`: the pinned names in any order.
    `subset`: at least the pinned names, in any order."""
    on_header_mismatch: str = option(choice(ON_HEADER_MISMATCH), FAIL)
    """`fail`: an object with another header stops the run. `skip_object`: it is left out, and the
    others are taken."""
    on_bad_row: str = option(choice(ON_BAD_ROW), FAIL, formats=(CSV, JSONL))
    """`fail`: a record that is not right stops the run. `reject`: it goes to
    `<table>__rejects`."""
    max_rejects: int | None = option(whole_number(0), None, formats=(CSV, JSONL))
    """With `on_bad_row: reject`: a run with more rejects than this fails, and commits nothing. 0
    or more."""
    encoding: str = option(
        lambda value: canonical_encoding(str(value)),
        UTF_8,
        formats=(CSV,),
        pinned=True,
        after="null",
    )
    """UTF-8, UTF-16, or one of Python's codecs that has ASCII's characters at ASCII's bytes."""

    skip_lines: int = option(
        whole_number(0, 1000), 0, formats=(CSV,), pinned=True, after="column_count"
    )
    """How many lines precede the header, or the first record; at most 1,000."""
    missing_columns: str = option(
        choice((FAIL, NULL)), FAIL, formats=(CSV, JSONL), pinned=True, after="on_header_mismatch"
    )
    """`null`: a record with fewer fields than the header, or without some of its keys, has NULL in
    their place. `fail`: it is a bad record."""
    extra_columns: str = option(
        choice((FAIL, IGNORE, RESCUE)), FAIL, formats=(CSV,), pinned=True, after="missing_columns"
    )
    """`ignore`: what a record has behind the fields of the header is left out. `rescue`: it is the
    text of the column `_mz_rescued`. `fail`: it is a bad record."""

    on_new_columns: str = option(
        choice((FAIL, ADD)), FAIL, formats=(CSV, AVRO, PARQUET), after="on_header_mismatch"
    )
    """`add`: names that an object's header has beside the pinned ones become
    [columns](s3-csv-source/messy.md#new-columns), NULL in rows of objects without them. `fail`:
    such an object has another header."""

    @property
    def skips(self) -> bool:
        """Whether an object with another header is left out."""
        return self.on_header_mismatch == SKIP_OBJECT

    @property
    def widens(self) -> bool:
        """Whether the source gets columns for new names in headers."""
        return self.on_new_columns == ADD

    @property
    def fills(self) -> bool:
        """Whether a column that a record does not have is NULL."""
        return self.missing_columns == NULL

    @property
    def cuts(self) -> bool:
        """Whether a record may have fields behind those of the header."""
        return self.extra_columns != FAIL

    def with_rescued(self, columns: Sequence[Column]) -> tuple[Column, ...]:
        """The columns, and one of what is behind the fields of the header if that is kept."""
        return (*columns, *[Column("_mz_rescued")] * (self.extra_columns == RESCUE))

    @property
    def rejects(self) -> bool:
        """Whether a bad record is rejected, instead of stopping the run."""
        return self.on_bad_row == REJECT


class ByteStream(Protocol):
    """An object that is being read from front to back."""

    def read(self, size: int, /) -> bytes:
        """Reads like a `ReadBytes` function. Raises ObjectError."""

    def close(self) -> None:
        """Frees the stream's resources. Safe to repeat."""


class StoredObject(Protocol):
    """One version of an object, wherever it is stored."""

    @property
    def key(self) -> str:
        """The object's name, whose suffix may show the compression."""

    @property
    def size(self) -> int:
        """The object's size in bytes, as stored."""

    def open(self) -> ByteStream:
        """A stream of the object, from front to back, which the caller closes."""

    def part(self, start: int, end: int) -> bytes:
        """The bytes from `start` up to, but not including, `end`. Raises ObjectError."""


@dataclass(frozen=True)
class RecordField:
    """A field of an object's records; `words` is its type in messages.

    `own` is the column type that holds exactly the field's values, `void` for a field that is
    always NULL, None if no column can hold them. `also` are further types, without parameters,
    that the field can be read as.
    """

    name: str
    words: str
    own: str | None
    also: ClassVar[tuple[str, ...]] = ()


@dataclass(frozen=True)
class Reject:
    """A bad record: its number among `Records`, from 0, its place, and what is wrong.

    `option` is the option of a source, with its value, that would read it; empty if none does.
    """

    number: int
    line: int
    byte: int
    raw: str
    column: str | None
    error: str
    option: str = ""


def raw_text(raw: bytes, encoding: str) -> str:
    """A rejected record's text without its line end, cut if it is very long."""
    if len(raw) <= MAX_RAW_BYTES:
        return readable_text(raw.removesuffix(b"\n").removesuffix(b"\r"), encoding)
    end = MAX_RAW_BYTES
    while raw[end] & 0xC0 == 0x80 and MAX_RAW_BYTES - end < 4:
        end -= 1  # not inside a character
    return readable_text(raw[:end], encoding)


@dataclass(frozen=True)
class Records:
    """The next `count` records of an object: good ones as rows of `batch`, and rejects.

    `numbers` are the numbers of the good ones, from 0; None if all are good. `unread` is the
    number of bytes at the end of the chunk that belong to the next chunk. Unless `is_certain`,
    where records end may depend on all data before them: a quote is misplaced or missing, or a
    record is too large for memory.
    """

    batch: pa.RecordBatch
    count: int
    numbers: pa.Array | None = None
    rejects: tuple[Reject, ...] = ()
    unread: int = 0
    is_certain: bool = True


class ObjectDecoder(Protocol):
    """Reads all records of objects, in their order, as the source's columns.

    One decoder is kept for all objects of a task. How much it holds in memory does not depend on
    the size of an object.
    """

    def __call__(self, stored: StoredObject) -> Generator[Records, None, None]:
        """The records of one object, to its end.

        Raises HeaderProblem, before the first record, for a header that is malformed, has other
        names, or types that can't be read; ObjectError for anything else.
        """

    def together(self, objects: Sequence[StoredObject]) -> tuple[pa.RecordBatch, list[int]] | None:
        """All records of small objects as one batch, and how many each object has.

        None if the objects have to be read one by one, as one of them may have a problem.
        """


class ObjectFormat(Protocol):
    """A format of objects: reads their headers, and creates decoders of their records."""

    def fields(self, stored: StoredObject) -> tuple[RecordField, ...] | None:
        """The object's header; None if the object is empty. Reads no more than necessary.

        Raises ObjectError.
        """

    def decoder(self, header: tuple[str, ...] | None, columns: Sequence[Column]) -> ObjectDecoder:
        """A decoder for a source with this pinned header, and a column for each of its names."""


def too_many_rejects(source: str, limit: int, first: str) -> str:
    """The error of a run that would reject more records than `limit`; `first` describes one."""
    noun = "record was" if limit == 0 else "records were"
    more_than = "a" if limit == 0 else f"more than {limit}"
    return (
        f"{source}: {more_than} {noun} rejected, and max_rejects is {limit}; nothing of this run "
        f"is committed. The first: {first}. Correct or remove the objects, or raise max_rejects, "
        "then run again"
    )
