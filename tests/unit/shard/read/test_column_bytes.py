"""Bytes by column, as people read them."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any
from unittest.mock import MagicMock

import pytest
from pyspark.errors import PySparkException
from support.s3.opened import prefix_of
from support.shard.files import rows_of, written

from dbt.adapters.mzs3.errors import ShardError, SparkJobError
from dbt.adapters.mzs3.shard.batch.write import BatchLayout
from dbt.adapters.mzs3.shard.read import column_bytes
from dbt.adapters.mzs3.shard.read.column_bytes import ColumnBytes, Fetching, bytes_in_files
from dbt.adapters.mzs3.shard.state.state import BatchFile, ShardBatch, new_shard
from dbt.adapters.mzs3.shard.types import Column, Type
from dbt.adapters.mzs3.store.location import parse_location
from dbt.adapters.mzs3.store.prefix import Prefix

INTEGER, TEXT = Type("integer"), Type("text")


def test_what_was_fetched_in_words() -> None:
    few = ColumnBytes(3, 8, 5, {"id": 2048, "amount": 1 << 20, "(others)": 100})
    assert few.text == (
        "fetched 1 MB of 3 files, without 5 of 8 row groups: amount 1 MB, id 2 kB, (others) 100 B"
    )
    many = ColumnBytes(1, 1, 0, {f"c{n}": n for n in range(12)})
    assert many.text.startswith("fetched 66 B of 1 file: c11 11 B, c10 10 B, ")
    assert many.text.endswith(", c4 4 B, 4 others 6 B")
    assert ColumnBytes().text == "fetched 0 B of 0 files"


def a_shard(monkeypatch: pytest.MonkeyPatch, *files: bytes) -> tuple[Prefix, Any]:
    """A shard whose column `a` has the tag 1, and the files that S3 has of it."""
    there = {f"x/{number}": data for number, data in enumerate(files)}
    client: Any = None
    monkeypatch.setattr(column_bytes, "open_file", lambda _, __, file: io.BytesIO(there[file.key]))
    listed = tuple(BatchFile(str(n), len(data), "e", 1) for n, data in enumerate(files))
    state = new_shard([Column(0, "gone", INTEGER, "int")]).with_columns(
        [Column(1, "a", TEXT, "string")], 0
    )
    state = state.appended(ShardBatch(0, 10, state.schema.id, "dual", listed))
    return prefix_of(client, parse_location("s3://acme/x")), state


def test_a_shards_bytes_are_all_those_of_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    old = written(BatchLayout({0: INTEGER}, "structured"), [rows_of([INTEGER], [[1, 2]])])[0]
    new = written(BatchLayout({1: TEXT}, "dual"), [rows_of([TEXT], [["a", "b"]])])[0]
    found = bytes_in_files(*a_shard(monkeypatch, old, new, new)).bytes
    assert sorted(found) == ["(messages)", "(others)", "(tag 0)", "a"]
    assert sum(found.values()) == len(old) + 2 * len(new)


def test_a_file_that_is_none_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ShardError, match=r"^s3://acme/x/0 can't be read: "):
        bytes_in_files(*a_shard(monkeypatch, b"x" * 100))


@pytest.mark.parametrize(
    "answer", [{}, {"report": None}, SparkJobError("lost"), PySparkException("lost")]
)
def test_what_spark_does_not_report_is_not_known(
    monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    def observed(_: Any, wait_s: float) -> Any:
        assert wait_s < 60
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(column_bytes, "observed", observed)
    fetching = Fetching()
    assert fetching.found() == ColumnBytes()
    for name in ("F", "Observation"):
        monkeypatch.setattr(column_bytes, name, MagicMock())
    fetching.counted(MagicMock(), [])
    assert fetching.found() is None


def test_of_many_files_the_newest_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    new = written(BatchLayout({1: TEXT}, "dual"), [rows_of([TEXT], [["a", "b"]])])[0]
    prefix, state = a_shard(monkeypatch, b"of an old batch", new, new)
    [batch] = state.batches
    old, *others = batch.files
    batches = (replace(batch, upper=5, files=(old,)), replace(batch, lower=5, files=(*others,)))
    monkeypatch.setattr(column_bytes, "MOST_FOOTERS", 2)
    found = bytes_in_files(prefix, replace(state, batches=batches))
    assert (found.files, sum(found.bytes.values())) == (2, 2 * len(new))
