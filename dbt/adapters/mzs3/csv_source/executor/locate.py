"""Finds the first record of a chunk that is not right, and says what is wrong with it.

The chunk that failed is at hand and starts with a record, so nothing is read again. Slow, as
records are looked at one by one, but for one chunk, once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from dbt.adapters.mzs3.csv_dialect import CsvDialect
from dbt.adapters.mzs3.csv_source.executor.chunks import Chunk
from dbt.adapters.mzs3.csv_source.executor.columns import Column
from dbt.adapters.mzs3.csv_source.executor.convert import convert
from dbt.adapters.mzs3.csv_source.executor.problem import FIX_OBJECT, CsvProblem, shown
from dbt.adapters.mzs3.csv_source.executor.records import Record, records
from dbt.adapters.mzs3.csv_source.executor.stream import GZIP_MAGIC

ReadText = Callable[[bytes], list[pa.Array]]


def first_problem(
    chunk: Chunk, columns: Sequence[Column], dialect: CsvDialect, read_text: ReadText
) -> CsvProblem:
    """The problem of the first record in the chunk that has one.

    `read_text` gives the columns of text of well-formed records. Within a record: its form,
    then its number of columns, then its values from left to right.
    """
    if chunk.byte == 0 and chunk.data.startswith(GZIP_MAGIC):
        return CsvProblem("it is compressed by gzip", "Declare `compression: gzip`")
    starts: list[int] = []
    malformed: Record | None = None
    problem = ""
    for record in records(chunk.data, dialect):
        problem = record.problem or _ragged(record, columns)
        if problem:
            malformed = record
            break
        starts.append(record.start)
    end = malformed.start if malformed else len(chunk.data)
    bad_value = _first_bad_value(chunk.data[:end], columns, read_text)
    if bad_value is not None:
        row, problem = bad_value
        return _at(chunk, starts[row], problem, f"{FIX_OBJECT}; or declare the column as a string")
    if malformed is None:
        # Every record is right by itself: pyarrow's reader and this one disagree.
        return _at(chunk, 0, "the records from here on could not be read", FIX_OBJECT)
    return _at(chunk, malformed.start, problem, FIX_OBJECT)


def _ragged(record: Record, columns: Sequence[Column]) -> str:
    # A blank line has one empty field.
    if len(record.fields) == len(columns):
        return ""
    noun = "column" if len(columns) == 1 else "columns"
    return f"expected {len(columns)} {noun}, got {len(record.fields)}"


def _at(chunk: Chunk, start: int, problem: str, advice: str) -> CsvProblem:
    place = chunk.after(start)
    return CsvProblem(problem, advice, line=place.line, byte=place.byte)


def _first_bad_value(
    data: bytes, columns: Sequence[Column], read_text: ReadText
) -> tuple[int, str] | None:
    """Row and text of the first value that is not of its column's type; the leftmost of a row."""
    if not data:
        return None
    found: tuple[int, str] | None = None
    for text, column in zip(read_text(data), columns, strict=True):
        row = _first_bad_row(text, column.data_type)
        if row is not None and (found is None or row < found[0]):
            value = shown(text[row].as_py())
            article = "an" if column.data_type == "int" else "a"
            found = row, f"column {column.name}: {value} is not {article} {column.data_type}"
    return found


def _first_bad_row(text: pa.Array, data_type: str) -> int | None:
    """The first row that does not convert, by halving: a prefix converts iff it has none."""
    if _converts(text, data_type):
        return None
    good, bad = 0, len(text)
    while bad - good > 1:
        middle = (good + bad) // 2
        if _converts(text.slice(0, middle), data_type):
            good = middle
        else:
            bad = middle
    return good


def _converts(text: pa.Array, data_type: str) -> bool:
    try:
        convert(text, data_type)
    except ValueError:
        return False
    return True
