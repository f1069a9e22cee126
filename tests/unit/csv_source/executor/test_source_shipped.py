"""What travels to executors with the tasks of a source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark import cloudpickle
from support.fetched_objects import spec

from dbt.adapters.mzs3.csv_source.executor.fetch import fetch_objects
from dbt.adapters.mzs3.csv_source.executor.formats.format import FORMAT_NAMES
from dbt.adapters.mzs3.csv_source.executor.ranges import range_rows
from dbt.adapters.mzs3.spark.job import ship_executor_code

MARKS = {
    "csv": b"CsvFormat",
    "avro": b"AvroContainer",
    "parquet": b"parquet_file",
    "jsonl": b"JsonDecoder",
}


@pytest.fixture
def pickled(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], bytes]]:
    known = cloudpickle.cloudpickle._PICKLE_BY_VALUE_MODULES
    monkeypatch.setattr(cloudpickle.cloudpickle, "_PICKLE_BY_VALUE_MODULES", set(known))
    ship_executor_code()
    yield cloudpickle.dumps


@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_a_task_gets_the_code_of_its_own_format_alone(
    pickled: Callable[[Any], bytes], name: str
) -> None:
    sent = pickled(fetch_objects(spec(format=name)))
    assert [one for one, mark in MARKS.items() if mark in sent] == [name]


@pytest.mark.parametrize("name", ["csv", "jsonl"])
def test_so_does_one_that_reads_ranges(pickled: Callable[[Any], bytes], name: str) -> None:
    sent = pickled(range_rows(spec(format=name), {}))
    assert (MARKS["jsonl"] in sent) == (name == "jsonl")
