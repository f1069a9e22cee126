"""The header of an object: reading it, and comparing it with the one that is pinned."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dbt.adapters.mzs3.csv_source.executor.chunks import Chunk, Chunks, RecordTooLarge
from dbt.adapters.mzs3.csv_source.executor.columns import (
    RecordLayout,
    layout_by_name,
    name_difference,
)
from dbt.adapters.mzs3.csv_source.executor.compression import NONE, plain_reader
from dbt.adapters.mzs3.csv_source.executor.encoding import UTF_8, utf8_reader, width_in
from dbt.adapters.mzs3.csv_source.executor.object_error import (
    FIX_OBJECT,
    HeaderProblem,
    shown,
)
from dbt.adapters.mzs3.csv_source.executor.reading import EXACT, Reading
from dbt.adapters.mzs3.csv_source.executor.records import records
from dbt.adapters.mzs3.csv_source.executor.stream import ObjectReader, Read
from dbt.adapters.mzs3.formats.csv.dialect import CsvDialect

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

FIRST_READ_BYTES = 64 * 1024
FIX_HEADER = (
    "Correct the object or remove it, or narrow `pattern` so that it is left out, then run again"
)


def open_chunks(
    read: Read, key: str, dialect: CsvDialect, compression: str, encoding: str, block_bytes: int
) -> Chunks:
    """The chunks of the object at `key`, of which `read` gives the bytes."""
    text = utf8_reader(plain_reader(read, key, compression), encoding)
    return Chunks(text, dialect, block_bytes=block_bytes, width=width_in(encoding))


def read_layout(
    client: S3Client,
    bucket: str,
    key: str,
    etag: str,
    pinned: Sequence[str],
    dialect: CsvDialect,
    reading: Reading,
) -> RecordLayout | None:
    """Which fields the columns are in an object that is not compressed; None if it is empty.

    Reads no more of it than it needs. Raises ObjectError.
    """
    reader = ObjectReader(client, bucket, key, etag)
    with contextlib.closing(reader):
        found = open_chunks(reader.read, key, dialect, NONE, reading.encoding, FIRST_READ_BYTES)
        for chunk in found:
            return without_header(chunk, pinned, dialect, reading)[0]
    return None


def split_header(
    chunk: Chunk, dialect: CsvDialect, encoding: str = UTF_8
) -> tuple[tuple[str, ...], Chunk]:
    """The names in a chunk's first record, and the chunk behind it. Raises HeaderProblem."""
    record = next(records(chunk.data, dialect, encoding))
    if record.problem is not None:
        problem = f"the header is malformed: {record.problem}"
        raise HeaderProblem(problem, FIX_OBJECT, line=chunk.line, byte=chunk.byte)
    return record.fields, chunk.after(record.end)


def without_header(
    chunk: Chunk, pinned: Sequence[str], dialect: CsvDialect, reading: Reading
) -> tuple[RecordLayout, Chunk]:
    """Which fields the columns are, and the chunk behind its header, which goes with the pinned.

    Raises HeaderProblem.
    """
    found, rest = split_header(chunk, dialect, reading.encoding)
    return layout_of(found, pinned, reading.header_match, line=chunk.line, byte=chunk.byte), rest


def layout_of(
    found: Sequence[str],
    pinned: Sequence[str],
    match: str,
    *,
    line: int | None = None,
    byte: int | None = None,
) -> RecordLayout:
    """Which fields of a header are the columns, one for each pinned name.

    Names are compared exactly: case and spaces count. Raises HeaderProblem, at that place, where
    the header does not go with the pinned one.
    """
    if match == EXACT:
        difference = header_difference(found, pinned)
    else:
        difference = any_order_difference(found, pinned, match)
    if difference is not None:
        raise HeaderProblem(difference, FIX_HEADER, line=line, byte=byte)
    return RecordLayout.in_order(len(pinned)) if match == EXACT else layout_by_name(found, pinned)


def too_large(problem: RecordTooLarge) -> HeaderProblem:
    """What is wrong with an object of which not even the header can be held."""
    text = f"the header is malformed: {problem.problem}"
    return HeaderProblem(text, problem.advice, line=problem.line, byte=problem.byte)


def header_difference(found: Sequence[str], pinned: Sequence[str]) -> str | None:
    """How a header differs from the pinned one, and first where; None if it does not."""
    if tuple(found) == tuple(pinned):
        return None
    position = next(
        (i for i, (one, other) in enumerate(zip(found, pinned, strict=False)) if one != other),
        min(len(found), len(pinned)),
    )
    here = shown(found[position]) if position < len(found) else "nothing"
    there = shown(pinned[position]) if position < len(pinned) else "nothing"
    return (
        f"header is {_line(found)} but the pinned header is {_line(pinned)}: first difference at "
        f"column {position + 1}, {here} instead of {there}"
    )


def any_order_difference(found: Sequence[str], pinned: Sequence[str], match: str) -> str | None:
    """What a header lacks of the pinned names, in whatever order; None if it has them."""
    difference = name_difference(found, pinned, match)
    if difference is None:
        return None
    return (
        f"header is {_line(found)} but the names of the pinned header are {_line(pinned)}, in any "
        f"order: {difference}"
    )


def _line(names: Sequence[str]) -> str:
    return shown(",".join(names), quoted=False)
