"""The header of an object: reading it, and comparing it with the one that is pinned."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dbt.adapters.mzs3.csv_dialect import CsvDialect
from dbt.adapters.mzs3.csv_source.executor.chunks import Chunk, chunks
from dbt.adapters.mzs3.csv_source.executor.problem import FIX_OBJECT, CsvProblem, shown
from dbt.adapters.mzs3.csv_source.executor.records import records
from dbt.adapters.mzs3.csv_source.executor.stream import GZIP_MAGIC, ObjectReader, plain_reader
from dbt.adapters.mzs3.errors import SourceError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

FIRST_READ_BYTES = 64 * 1024


def read_header(
    client: S3Client,
    bucket: str,
    key: str,
    dialect: CsvDialect,
    compression: str,
    *,
    source: str | None = None,
) -> tuple[str, ...] | None:
    """The names in the first record of an object; None if the object is empty.

    Reads no more of the object than it needs. Raises SourceError, naming `source` if given.
    """
    reader = ObjectReader(client, bucket, key)
    read = plain_reader(reader, key, compression)
    try:
        with contextlib.closing(reader):
            for chunk in chunks(read, dialect, block_bytes=FIRST_READ_BYTES):
                names, _ = split_header(chunk, dialect)
                return names
    except CsvProblem as problem:
        raise SourceError(problem.text(bucket, key, source)) from problem
    return None


def split_header(chunk: Chunk, dialect: CsvDialect) -> tuple[tuple[str, ...], Chunk]:
    """The names in a chunk's first record, and the chunk behind it. Raises CsvProblem."""
    record = next(records(chunk.data, dialect))
    if record.problem is not None:
        if chunk.data.startswith(GZIP_MAGIC):
            problem, advice = "it is compressed by gzip", "Declare `compression: gzip`"
        else:
            problem, advice = f"the header is malformed: {record.problem}", FIX_OBJECT
        raise CsvProblem(problem, advice, line=chunk.line, byte=chunk.byte)
    return record.fields, chunk.after(record.end)


def require_header(chunk: Chunk, pinned: Sequence[str], dialect: CsvDialect) -> Chunk:
    """The chunk behind its header, which must be the pinned one, name by name.

    Names are compared exactly: case and spaces count. Raises CsvProblem.
    """
    found, rest = split_header(chunk, dialect)
    difference = header_difference(found, pinned)
    if difference is not None:
        raise CsvProblem(
            difference,
            "Correct the object or remove it, or narrow `pattern` so that it is left out, then "
            "run again",
            line=chunk.line,
            byte=chunk.byte,
        )
    return rest


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


def _line(names: Sequence[str]) -> str:
    return shown(",".join(names), quoted=False)
