"""Rows as the files of a table, which Spark ends as lines of text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.source.fetched_objects import spec

from dbt.adapters.mzs3.formats.read.columns import Column
from dbt.adapters.mzs3.formats.read.format import Reading
from dbt.adapters.mzs3.ledger import table_files as module
from dbt.adapters.mzs3.ledger.table_files import END, table_files

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("price", pa.decimal128(9, 2))])


def rows(count: int, start: int = 0) -> pa.RecordBatch:
    """So many rows; their columns have other names than the table's."""
    numbers = range(start, start + count)
    price = [Decimal(number) / 4 for number in numbers]
    columns = [[*numbers], [f"city {number % 3}" for number in numbers], price]
    arrays = [pa.array(one, kind) for one, kind in zip(columns, SCHEMA.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=["a", "b", "c"])


def files_of(*batches: pa.RecordBatch, compression: str = "snappy") -> Iterator[pq.ParquetFile]:
    """The files that a task makes of these, as Spark writes them."""

    def read(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        assert [*given] == []
        yield from batches

    for made in table_files(SCHEMA, compression, lambda: read, ())(iter([])):
        [line] = made.to_pylist()
        assert [*made.schema.names] == ["file", "rows"]
        file = pq.ParquetFile(pa.BufferReader(line["file"] + END))
        assert file.metadata.num_rows == line["rows"]
        yield file


def test_a_file_has_the_rows_of_a_task_under_the_names_of_the_table() -> None:
    [file] = files_of(rows(1000), rows(10, start=1000))
    expected = pa.Table.from_batches([rows(1010).rename_columns(SCHEMA.names)])
    assert file.read() == expected.cast(SCHEMA)
    metadata = file.metadata.metadata
    assert metadata == {b"org.apache.spark.version": b"4.0.0"}  # and no schema of Arrow's
    assert file.schema.column(2).physical_type == "INT32"


def test_a_task_without_rows_makes_a_file_without_rows() -> None:
    for batches in ([], [rows(0)]):
        [file] = files_of(*batches)
        assert file.read() == SCHEMA.empty_table()


def test_a_file_ends_with_the_row_group_in_which_it_is_large_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    batches = [rows(100, start=100 * number) for number in range(7)]
    monkeypatch.setattr(module, "GROUP_BYTES", 2 * batches[0].nbytes)
    monkeypatch.setattr(module, "FILE_BYTES", 4000)
    found = [*files_of(*batches, compression="none")]
    groups = [
        [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)] for file in found
    ]
    assert groups == [[200, 200], [200, 100]]
    read = pa.concat_tables(file.read() for file in found)
    assert read["id"].to_pylist() == [*range(700)]


def test_only_columns_with_few_values_have_dictionaries() -> None:
    [file] = files_of(rows(1000))
    group = file.metadata.row_group(0)
    has_dictionary = [group.column(n).has_dictionary_page for n in range(3)]
    assert has_dictionary == [False, True, False]


def test_statistics_are_of_what_arrow_and_spark_order_alike() -> None:
    schema = pa.schema([("id", pa.int64()), ("score", pa.float64())])
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([math.nan])], schema=schema)
    [made] = table_files(schema, "snappy", lambda: lambda _: iter([batch]), ())(iter([]))
    file = pq.ParquetFile(pa.BufferReader(made["file"][0].as_py() + END))
    group = file.metadata.row_group(0)
    assert [group.column(n).is_stats_set for n in range(2)] == [True, False]


@pytest.mark.parametrize("reading", [Reading(), Reading(on_bad_row="reject")])
def test_files_have_the_columns_of_the_rows(reading: Reading) -> None:
    of = spec(reading=reading, columns=(Column("a `b`", "decimal(9,2)"), Column("c")))
    names = [field.name.replace("`", "``") for field in of.schema]
    assert [f"`{name}` " in of.ddl for name in names] == [True] * len(names)
    assert of.ddl.count(", `") - of.ddl.count("struct<") * 4 == len(names) - 1
    assert ("mz_problem" in names) == of.has_problems
