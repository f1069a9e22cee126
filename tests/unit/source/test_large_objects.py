"""Which objects are cut, and what is known of them."""

from __future__ import annotations

import bz2
import gzip
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import pytest
from pyspark.sql import Row
from support.s3.opened import bucket_of
from support.s3.stored_objects import ETAG, MemoryClient
from support.source.fetched_objects import spec

from dbt.adapters.mzs3.formats.read.chunks import Chunk
from dbt.adapters.mzs3.formats.read.format import Reading
from dbt.adapters.mzs3.source import large_objects
from dbt.adapters.mzs3.source.executor.ranges import LargeObject
from dbt.adapters.mzs3.source.executor.stored_object import S3Object
from dbt.adapters.mzs3.source.large_objects import utc


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "America/New_York")
        time.tzset()
        yield
    time.tzset()


def test_times_are_the_same_wherever_the_driver_is(new_york: None) -> None:
    # As Spark hands a timestamp to Python.
    collected = datetime.fromtimestamp(1_767_312_000)
    assert utc(collected) == datetime(2026, 1, 2, tzinfo=timezone.utc)


def looked_at(data: bytes, monkeypatch: pytest.MonkeyPatch, **how: Any) -> tuple[bool, int]:
    """Whether an object of this text can be cut, and how many requests it took to know."""
    client = MemoryClient(data)
    found = large_object(client, monkeypatch, **how)
    return found is not None, len(client.spans)


def large_object(
    client: MemoryClient, monkeypatch: pytest.MonkeyPatch, **how: Any
) -> LargeObject | None:
    monkeypatch.setattr(large_objects, "open_store", lambda _, at: bucket_of(client, at.bucket))
    row = {"key": "1.csv", "etag": ETAG, "size": len(client.data), "last_modified": datetime.now()}
    return large_objects._large_object(spec(**how), Row(**row))


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("text", [b"id,amount\n1,2\n", b"id,amount\n" + b"x" * 100_000])
def test_plain_objects_can_be_cut(text: bytes, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert looked_at(text, monkeypatch, format=form) == (True, 1)


def test_an_object_is_cut_from_its_first_record_on(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"\xef\xbb\xbfid,amount\r\n1,2\n"
    for how, byte, line in (({}, 14, 2), ({"header": None}, 3, 1), ({"format": "jsonl"}, 3, 1)):
        found = large_object(MemoryClient(text), monkeypatch, **how)
        assert found is not None and found.start == Chunk(b"", byte, line)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize(
    "data",
    [gzip.compress(b"id,amount\n"), bz2.compress(b""), b"PK\x03\x04" + bytes(600), b"\xff\xfei\0"],
    ids=["gzip", "bzip2", "zip", "UTF-16"],
)
def test_what_is_compressed_or_no_text_is_left_to_one_task(
    data: bytes, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert looked_at(data, monkeypatch, format=form) == (False, 1)
    assert looked_at(data, monkeypatch, format=form, compression="none") == (False, 1)


@pytest.mark.parametrize("data", [b"", b"id,amount\n", b"amount,id\n1,2\n", b'id,"amount\n'])
def test_without_the_header_or_without_records_one_task_reads_the_object(
    data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not looked_at(data, monkeypatch)[0]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_little_is_read_of_an_object_without_an_end_of_a_record(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (b'"' if form == "csv" else b"[") + b"x" * 5 * large_objects.BLOCK_BYTES
    read: list[int] = []
    part = S3Object.open

    def opened(stored: S3Object) -> Any:
        reader = part(stored)
        counted = reader.read
        reader.read = lambda size: (data := counted(size), read.append(len(data)))[0]
        return reader

    monkeypatch.setattr(S3Object, "open", opened)
    assert not looked_at(text, monkeypatch, format=form)[0]
    assert sum(read) <= 3 * large_objects.BLOCK_BYTES


def test_a_header_in_another_order_is_read_too(monkeypatch: pytest.MonkeyPatch) -> None:
    how = Reading(header_match="reorder")
    assert looked_at(b"amount,id\n1,2\n", monkeypatch, reading=how)[0]
    assert not looked_at(b"amount,x\n1,2\n", monkeypatch, reading=how)[0]
