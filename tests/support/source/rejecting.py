"""Reading with rejects, and a plain model of it: one character after the other, and `csv`."""

import csv
import io
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from dbt.adapters.mzs3.formats.read import text
from dbt.adapters.mzs3.formats.read.chunks import BLOCK_BYTES, MAX_RECORD_BYTES, Chunks
from dbt.adapters.mzs3.formats.read.columns import RecordLayout
from dbt.adapters.mzs3.formats.read.csv import CsvFormat
from dbt.adapters.mzs3.formats.read.dialect import SourceDialect
from dbt.adapters.mzs3.formats.read.format import Reading, Reject
from support.source.fields import DIALECT, columns, rows


def read_all(
    data: bytes,
    *types: str,
    dialect: SourceDialect = DIALECT,
    block_bytes: int = BLOCK_BYTES,
    max_record_bytes: int = MAX_RECORD_BYTES,
    encoding: str = "utf-8",
    layout: RecordLayout | None = None,
    **reading: Any,
) -> tuple[dict[int, tuple], dict[int, Reject]]:
    """The good records of an object without a header and its rejects, by number from 1."""
    form = CsvFormat("none", Reading(on_bad_row="reject", encoding=encoding, **reading), dialect)
    decoder = form.decoder(None, columns(*types))
    good: dict[int, tuple] = {}
    bad: dict[int, Reject] = {}
    done = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "BLOCK_BYTES", block_bytes)
        patch.setattr(text, "Chunks", partial(Chunks, max_record_bytes=max_record_bytes))
        found = list(decoder.records(form.text(io.BytesIO(data).read, "1"), form.start, layout))
    for decoded in found:
        numbers = range(decoded.count) if decoded.numbers is None else decoded.numbers.to_pylist()
        found = rows(decoded.batch)
        good |= {done + n + 1: row for n, row in zip(numbers, found, strict=True)}
        bad |= {done + reject.number + 1: reject for reject in decoded.rejects}
        done += decoded.count
    assert sorted([*good, *bad]) == list(range(1, done + 1))
    return good, bad


def model(
    data: bytes, width: int
) -> tuple[dict[int, list[str]], dict[int, tuple[int, int, bytes]]]:
    """The same by the rule in the docs; an empty field is an empty string, quoted or not.

    Of a reject: line, byte, and its bytes without the line end.
    """
    good: dict[int, list[str]] = {}
    bad: dict[int, tuple[int, int, bytes]] = {}
    line, byte = 1, 0
    for number, (record, well_formed) in enumerate(_records(data), 1):
        fields = _fields(record) if well_formed else None
        if fields is not None and len(fields) == width:
            good[number] = fields
        else:
            bad[number] = line, byte, record.removesuffix(b"\n").removesuffix(b"\r")
        line += record.count(b"\n")
        byte += len(record)
    return good, bad


def longest_record(data: bytes) -> int:
    """The bytes of the longest record of the model, its line end included."""
    return max((len(record) for record, _ in _records(data)), default=0)


def _records(data: bytes) -> Iterator[tuple[bytes, bool]]:
    """Each record with its line end, and whether its quotes and carriage returns are right."""
    start = 0
    while start < len(data):
        end, well_formed = _record(data, start)
        yield data[start:end], well_formed
        start = end


def _record(data: bytes, start: int) -> tuple[int, bool]:
    state = "field"  # at its start; "bare", "quoted" in it; "closed" behind a closing quote
    well_formed = True
    for at in range(start, len(data)):
        char = data[at : at + 1]
        if state == "quoted":
            state = "closed" if char == b'"' else "quoted"
        elif char == b'"':
            if state == "bare":
                return _line_end(data, at), False
            state = "quoted"
        elif char == b"\n":
            return at + 1, well_formed
        elif char == b",":
            state = "field"
        elif char == b"\r":
            if data[at + 1 : at + 2] != b"\n":
                # Wrong, as any text would be here; no field begins behind it.
                well_formed = False
                state = "bare"
        elif state == "closed":
            return _line_end(data, at), False
        else:
            state = "bare"
    return len(data), well_formed and state != "quoted"


def _line_end(data: bytes, at: int) -> int:
    newline = data.find(b"\n", at)
    return len(data) if newline < 0 else newline + 1


def _fields(record: bytes) -> list[str] | None:
    if b"\0" in record:
        return None
    try:
        text = record.decode()
    except UnicodeDecodeError:
        return None
    # To `csv` a blank line has no field.
    return next(csv.reader(io.StringIO(text, newline=""), strict=True)) or [""]
