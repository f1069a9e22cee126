"""Where row groups and files end, and that the bytes depend on nothing but the rows."""

import gc
import hashlib
import random
import subprocess
import sys

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.export.parquet_files import Bytes, cut, files_of, opened, orders, read, writer_of

from dbt.adapters.mzs3.formats.write import format as formats
from dbt.adapters.mzs3.formats.write import parquet
from dbt.adapters.mzs3.formats.write.parquet import row_ends

# What Parquet adds to a row group's values: page headers, levels, statistics, its part of the
# footer; and the dictionaries of values that turned out not to repeat.
GROUP_OVERHEAD = 8 << 10
DICTIONARIES = 1.25


def random_rows(count, longest, seed=1):
    """Rows that hardly can be compressed."""
    chance = random.Random(seed)
    texts = [chance.randbytes(chance.randint(0, longest)) for _ in range(count)]
    return pa.record_batch({"n": pa.array(range(count)), "b": pa.array(texts)})


def group_sizes(data):
    """Of each row group: its rows, and its bytes in the file."""
    metadata = opened(data).metadata
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    return [
        (g.num_rows, sum(g.column(c).total_compressed_size for c in range(g.num_columns)))
        for g in groups
    ]


def test_row_groups_end_before_they_pass_a_fifth_of_the_file():
    batch = orders(30_000)
    ends, row, target = row_ends(batch), 0, 256_000 // 5
    files = files_of(batch.schema, cut(batch, 999), limit=256_000)
    counts = [rows for data in files for rows, _ in group_sizes(data)]
    for rows in counts[:-1]:
        assert ends[row + rows] - ends[row] <= target < ends[row + rows + 1] - ends[row]
        row += rows
    assert row + counts[-1] == batch.num_rows
    assert len(files) > 1


def test_row_groups_are_no_larger_than_a_worker_can_hold(monkeypatch):
    monkeypatch.setattr(parquet, "MAX_GROUP_BYTES", 10_000)
    batch = random_rows(1000, 100)
    [data] = files_of(batch.schema, [batch], limit=1 << 30)
    assert max(size for _, size in group_sizes(data)) < 10_000 * DICTIONARIES + GROUP_OVERHEAD
    assert len(group_sizes(data)) > 5


def wide_rows(count):
    return pa.record_batch({f"column_{i}": pa.array([i] * count) for i in range(200)})


def assert_within_one_row_group(files, limit):
    assert len(files) > 1
    for data in files[:-1]:
        groups, footer = group_sizes(data), int.from_bytes(data[-8:-4], "little")
        largest = max(size for _, size in groups)
        assert len(data) <= limit + largest
        assert len(data) >= limit - largest - footer // 8 - 0.03 * limit


@pytest.mark.parametrize("limit", [64 << 10, 500_000, 2_000_000])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("kind", ["orders", "random"])
def test_files_are_within_one_row_group_of_the_limit(limit, compression, kind):
    count = limit // 10
    batch = orders(count) if kind == "orders" else random_rows(count // 10, 600)
    files = files_of(batch.schema, cut(batch, 5000), limit=limit, compression=compression)
    assert_within_one_row_group(files, limit)
    assert read(files).num_rows == batch.num_rows


def test_footers_count_where_they_are_most_of_the_file():
    batch = wide_rows(9000)
    files = files_of(batch.schema, [batch], limit=1 << 20)
    assert_within_one_row_group(files, 1 << 20)
    assert int.from_bytes(files[0][-8:-4], "little") > 200_000


@examples(60)
@given(
    lengths=st.lists(st.integers(0, 100) | st.integers(0, 100_000), max_size=60),
    limit=st.integers(64 << 10, 400 << 10),
    size=st.integers(1, 9),
)
def test_limits_hold_also_for_rows_larger_than_a_row_group(lengths, limit, size):
    chance = random.Random(len(lengths))
    texts = [chance.randbytes(length) for length in lengths]
    batch = pa.record_batch({"b": pa.array(texts, pa.binary())})
    files = files_of(batch.schema, cut(batch, size), limit=limit)
    assert files == files_of(batch.schema, [batch], limit=limit)
    assert read(files).column("b").to_pylist() == texts
    for data in files:
        for rows, bytes_written in group_sizes(data):
            bound = limit // 5 * DICTIONARIES + GROUP_OVERHEAD
            assert bytes_written <= bound or rows == 1
        assert len(data) <= limit + max([size for _, size in group_sizes(data)], default=0)


def test_a_row_larger_than_the_file_is_alone_in_its_row_group_and_the_last_of_its_file():
    first, second = (random.Random(seed).randbytes(300_000) for seed in (1, 2))
    texts = [b"one", b"two", first, second, b"three", b"four"]
    batch = pa.record_batch({"b": pa.array(texts)})
    files = files_of(batch.schema, [batch], limit=64 << 10)
    assert [[rows for rows, _ in group_sizes(data)] for data in files] == [[2, 1], [1], [2]]
    values = [read([data]).column("b").to_pylist() for data in files]
    assert values == [[b"one", b"two", first], [second], [b"three", b"four"]]


def test_a_file_without_rows_has_a_schema():
    schema = pa.schema([("a", pa.string()), ("b", pa.list_(pa.int8()))])
    empty = pa.RecordBatch.from_pylist([], schema)
    [data] = files_of(schema, [])
    assert files_of(schema, [empty, empty]) == [data]
    assert opened(data).metadata.num_rows == 0
    assert opened(data).schema_arrow.names == ["a", "b"]


@pytest.mark.parametrize("size", [1, 10, 1023, 1024, 7001])
def test_bytes_do_not_depend_on_how_batches_are_cut(size):
    """Beyond the 1024 values and the pages by which Parquet's writer goes."""
    batch = orders(3000 if size < 1000 else 40_000)
    whole = files_of(batch.schema, [batch], limit=1_000_000)
    assert files_of(batch.schema, cut(batch, size), limit=1_000_000) == whole


def test_bytes_do_not_depend_on_the_cuts_where_a_row_group_has_many_pages(monkeypatch):
    batch = random_rows(20_000, 500)
    [whole] = files_of(batch.schema, [batch], limit=1 << 30)
    assert len(whole) > 4 << 20
    assert files_of(batch.schema, cut(batch, 777), limit=1 << 30) == [whole]
    monkeypatch.setattr(formats, "PIECE_BYTES", 100_000)
    assert files_of(batch.schema, [batch], limit=1 << 30) == [whole]


def test_another_process_writes_the_same_bytes():
    program = (
        "import hashlib\n"
        "from support.export.parquet_files import cut, files_of, orders\n"
        "batch = orders(20_000)\n"
        "files = files_of(batch.schema, cut(batch, 777), limit=300_000)\n"
        "print([hashlib.sha256(data).hexdigest() for data in files])\n"
    )
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    batch = orders(20_000)
    here = files_of(batch.schema, [batch], limit=300_000)
    assert found.strip() == str([hashlib.sha256(data).hexdigest() for data in here])


def test_a_file_that_is_given_up_writes_nothing_more():
    batch = orders(10)
    sink = Bytes()
    writer = writer_of(batch.schema)
    file = writer.open(sink)
    (piece,) = writer.pieces(batch)
    assert file.take(piece, 0) == 10
    written = sink.bytes
    del file
    gc.collect()
    assert sink.bytes == written


def test_statistics_are_there():
    batch = orders(100)
    [data] = files_of(batch.schema, [batch])
    found = opened(data).metadata.row_group(0).column(0).statistics
    assert (found.min, found.max, found.null_count) == (0, 99, 0)
