"""Any read is what is there, and what is fetched for it is as much as was asked for."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.mzs3.arrow.parquet import RandomAccessFile

DATA = bytes(i % 251 for i in range(2000))


class Fetched:
    """What was fetched, one span after the other."""

    def __init__(self) -> None:
        self.spans: list[tuple[int, int]] = []

    def __call__(self, start: int, end: int) -> bytes:
        assert 0 <= start < end <= len(DATA)
        self.spans.append((start, end))
        return DATA[start:end]


reads = st.lists(st.tuples(st.integers(0, 2100), st.integers(-1, 700)), max_size=12)


@given(reads, st.integers(0, 3000), st.integers(0, 3000))
def test_it_reads_as_a_file_in_memory(
    places: list[tuple[int, int]], window: int, tail: int
) -> None:
    file, memory = (
        RandomAccessFile(len(DATA), Fetched(), window=window, tail=tail),
        io.BytesIO(DATA),
    )
    for prefix, size in places:
        assert file.seek(prefix) == memory.seek(prefix)
        assert file.read(size) == memory.read(size)
        assert file.tell() == memory.tell()
    assert file.seek(-3, io.SEEK_END) == len(DATA) - 3
    assert file.read() == DATA[-3:]


def test_the_end_is_fetched_once() -> None:
    fetched = Fetched()
    file = RandomAccessFile(len(DATA), fetched, tail=100)
    for start, size in [(1900, 100), (1950, 10), (1800, 200), (10, 5), (1990, 10)]:
        file.seek(start)
        assert file.read(size) == DATA[start : start + size]
    assert fetched.spans == [(1900, 2000), (1800, 1900), (10, 15)]


def test_the_first_failure_is_kept() -> None:
    def fail(start: int, end: int) -> bytes:
        raise OSError(f"{start} to {end}")

    file = RandomAccessFile(10, fail)
    with pytest.raises(OSError, match="0 to 4"):
        file.read(4)
    with pytest.raises(OSError, match="0 to 10"):
        file.read()
    assert str(file.failure) == "0 to 4"
