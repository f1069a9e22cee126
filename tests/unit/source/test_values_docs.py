"""The page of values says what the decoders do; tests/golden has its column of PostgreSQL's."""

import json
import random

import pyarrow as pa
import pytest
from support.docs.values import Entry, entries, written
from support.source import json_lines

from dbt.adapters.mzs3.formats.read.chunks import Chunk
from dbt.adapters.mzs3.formats.read.columns import DECLARED_TYPES, Column, RecordLayout
from dbt.adapters.mzs3.formats.read.csv import CsvFormat
from dbt.adapters.mzs3.formats.read.format import Reading
from dbt.adapters.mzs3.formats.read.object_error import ObjectError, excerpt, not_of_type
from dbt.adapters.mzs3.formats.read.typed import typed_records

TYPES = list(dict.fromkeys(entry.data_type for entry in entries()))


def of_type(data_type: str) -> list[Entry]:
    return [entry for entry in entries() if entry.data_type == data_type]


def verdicts(records):
    """What became of each record: its value as an export writes it, or its error."""
    found = {}
    numbers = range(records.count) if records.numbers is None else records.numbers.to_pylist()
    column = records.batch.column(0)
    for place, number in enumerate(numbers):
        found[number] = written(column.slice(place, 1))
    for reject in records.rejects:
        found[reject.number] = reject.error
    return [found[number] for number in range(records.count)]


def expected(rows, data_type, name):
    return [
        not_of_type(name, excerpt(entry.text), data_type)
        if entry.becomes is None
        else entry.becomes
        for entry in rows
    ]


def quoted(text):
    return '"' + text.replace('"', '""') + '"'


def test_every_type_has_its_rows():
    assert {data_type.partition("(")[0] for data_type in TYPES} == set(DECLARED_TYPES)
    for data_type in TYPES:
        assert len({entry.text for entry in of_type(data_type)}) == len(of_type(data_type))
    refused = [entry for entry in entries() if entry.becomes is None]
    assert min(len(refused), len(entries()) - len(refused)) > 50


@pytest.mark.parametrize("data_type", TYPES)
def test_each_text_becomes_what_the_page_says_in_csv(data_type):
    rows = of_type(data_type)
    columns = (Column("a", data_type), Column("b", "string"))
    for some in (*([row] for row in rows), rows, random.Random(7).sample(rows, len(rows))):
        decoder = CsvFormat("none", Reading(on_bad_row="reject")).decoder(None, columns)
        data = "".join(f"{quoted(entry.text)},x\n" for entry in some).encode()
        records = decoder.decode(Chunk(data, 0, 1), RecordLayout.in_order(2))
        assert verdicts(records) == expected(some, data_type, "a")


@pytest.mark.parametrize("data_type", TYPES)
def test_each_text_becomes_what_the_page_says_in_json_lines(data_type):
    rows = of_type(data_type)
    for some in (*([row] for row in rows), rows):
        data = "".join(json.dumps({"k0": entry.text}) + "\n" for entry in some).encode()
        (records,) = json_lines.records_of(data, [data_type], 1 << 22)
        assert verdicts(records) == expected(some, data_type, "c0")


@pytest.mark.parametrize("data_type", TYPES)
def test_each_text_becomes_what_the_page_says_in_files_with_a_schema(data_type):
    column = Column("a", data_type)
    for entry in of_type(data_type):
        values = pa.array([None, entry.text], pa.string())
        try:
            records = typed_records([values], ["string"], [column], 0)
        except ObjectError as problem:
            found = problem.problem
        else:
            found = written(records.batch.column(0).slice(1))
        assert [found] == expected([entry], data_type, "a")
