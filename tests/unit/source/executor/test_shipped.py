"""What travels to executors with the tasks of a source."""

from __future__ import annotations

import pytest
from pyspark import cloudpickle
from support.source.fetched_objects import spec

from dbt.adapters.mzs3.formats.read.format import FORMAT_NAMES
from dbt.adapters.mzs3.source.executor.fetch import fetch_objects, format_of
from dbt.adapters.mzs3.source.executor.ranges import range_rows
from dbt.adapters.mzs3.spark.job import shipped

MARKS = {
    "csv": b"CsvFormat",
    "avro": b"AvroContainer",
    "parquet": b"parquet_file",
    "jsonl": b"JsonDecoder",
}


@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_a_task_gets_the_code_of_its_own_format_alone(name: str) -> None:
    of = spec(format=name)
    sent = cloudpickle.dumps(shipped(fetch_objects, of, format_of(of)))
    assert [one for one, mark in MARKS.items() if mark in sent] == [name]


@pytest.mark.parametrize("name", ["csv", "jsonl"])
def test_so_does_one_that_reads_ranges(name: str) -> None:
    of = spec(format=name)
    sent = cloudpickle.dumps(shipped(range_rows, of, format_of(of), []))
    assert [one for one, mark in MARKS.items() if mark in sent] == [name]
