"""Compressed files: one stream, never larger than the limit, the same bytes however cut."""

import gzip
import hashlib
import random
import subprocess
import sys

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.export.compressed_files import cut, files_of, flights, lines_of

from dbt.adapters.mzs3.formats.write.csv import files

CODECS = ["gzip", "zstd"]


def text_of(data, codec):
    if codec == "gzip":
        return gzip.decompress(data)
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        return stream.read()


def noise(count, length, seed=1):
    """Lines that can't be compressed below three quarters of their size."""
    chance = random.Random(seed)
    letters = "".join(map(chr, [*range(33, 97)]))
    return ["".join(chance.choices(letters, k=length)) + "\n" for _ in range(count)]


@pytest.mark.parametrize("codec", CODECS)
def test_the_text_is_whole_and_the_header_is_in_every_file(codec):
    texts = flights(20_000)
    files = files_of([lines_of(texts)], codec, 64 << 10, header=b"day,time,origin,x\n")
    assert len(files) > 2
    plain = [text_of(data, codec) for data, _ in files]
    assert all(text.startswith(b"day,time,origin,x\n") for text in plain)
    assert b"".join(text.split(b"\n", 1)[1] for text in plain) == "".join(texts).encode()
    assert [text.count(b"\n") - 1 for text in plain] == [rows for _, rows in files]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("texts", [flights(60_000), noise(30_000, 60)], ids=["flights", "noise"])
@pytest.mark.parametrize("limit", [16 << 10, 64 << 10, 300_000])
def test_files_are_almost_full_and_never_larger(codec, texts, limit):
    sizes = [len(data) for data, _ in files_of([lines_of(texts)], codec, limit)]
    assert max(sizes) <= limit
    assert min(sizes[:-1]) > 0.95 * limit


@examples(150)
@given(st.data())
def test_limit_holds_and_bytes_do_not_depend_on_the_cuts(data):
    """Small chunks, so that all of it is exercised; sizes from nothing to several chunks."""
    codec = data.draw(st.sampled_from(CODECS))
    limit = data.draw(st.integers(1, 6000))
    lengths = data.draw(st.lists(st.integers(0, 60) | st.integers(0, 3000), max_size=120))
    header = data.draw(st.sampled_from([b"", b"one,two\n"]))
    letters = data.draw(st.sampled_from(["ab", "".join(map(chr, range(33, 127)))]))
    chance = random.Random(data.draw(st.integers()))
    texts = ["".join(chance.choices(letters, k=length)) + "\n" for length in lengths]
    size = data.draw(st.integers(1, 7))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "CHUNK_BYTES", 1000)
        whole = files_of([lines_of(texts)], codec, limit, header)
        assert files_of(cut(texts, size), codec, limit, header) == whole
    if texts:
        assert all(len(data) <= limit or rows == 1 for data, rows in whole)
        assert all(rows for _, rows in whole)
    found = b"".join(text_of(data, codec).removeprefix(header) for data, _ in whole)
    assert found == "".join(texts).encode()


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("header", [b"", b"a,b\n"])
def test_a_file_without_rows_is_valid(codec, header):
    [(data, rows)] = files_of([], codec, 1 << 20, header)
    assert (text_of(data, codec), rows) == (header, 0)


@pytest.mark.parametrize("codec", CODECS)
def test_a_row_larger_than_the_limit_is_alone(codec):
    large = "".join(noise(1, 200_000, seed=5))
    files = files_of([lines_of(["a\n", large, "b\n"])], codec, 64 << 10)
    assert [rows for _, rows in files] == [1, 1, 1]
    assert [len(data) > 64 << 10 for data, _ in files] == [False, True, False]


@pytest.mark.parametrize("codec", CODECS)
def test_a_row_larger_than_the_limit_only_before_compression_leaves_room(codec):
    files = files_of([lines_of(["a" * 300_000 + "\n", "b\n"])], codec, 64 << 10)
    assert [rows for _, rows in files] == [2]


@pytest.mark.parametrize("codec", CODECS)
def test_flushing_costs_less_than_a_hundredth(codec):
    texts = flights(150_000)
    [(data, _)] = files_of(cut(texts, 10_000), codec, 256 << 20)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "CHUNK_BYTES", 1 << 30)
        [(at_once, _)] = files_of([lines_of(texts)], codec, 1 << 30)
    assert len(data) < 1.01 * len(at_once)


def test_gzip_has_no_time_and_one_member():
    [(data, _)] = files_of([lines_of(flights(100_000))], "gzip", 256 << 20)
    assert data[:4] == b"\x1f\x8b\x08\x00"
    assert data[4:8] == bytes(4)
    with pa.CompressedInputStream(pa.BufferReader(data), "gzip") as stream:
        assert stream.read() == gzip.decompress(data)
    assert data.count(b"\x1f\x8b\x08\x00\x00\x00\x00\x00") == 1


def test_zstd_is_one_frame():
    [(data, _)] = files_of([lines_of(flights(100_000))], "zstd", 256 << 20)
    assert data.count(b"\x28\xb5\x2f\xfd") == 1


@pytest.mark.parametrize(("codec", "suffix"), [("gzip", "gz"), ("zstd", "zst")])
def test_duckdb_reads_it(tmp_path, codec, suffix):
    texts = flights(50_000)
    for number, (data, _) in enumerate(files_of([lines_of(texts)], codec, 200_000, b"a,b,c,d\n")):
        (tmp_path / f"{number}.csv.{suffix}").write_bytes(data)
    found = duckdb.sql(f"select count(*), min(c) from read_csv('{tmp_path}/*.csv.{suffix}')")
    assert found.fetchall() == [(50_000, "BQN")]


def test_another_process_writes_the_same_bytes():
    program = (
        "import hashlib\n"
        "from support.export.compressed_files import cut, files_of, flights\n"
        "for codec in ['gzip', 'zstd']:\n"
        "    files = files_of(cut(flights(20_000), 777), codec, 100_000)\n"
        "    print(*(hashlib.sha256(data).hexdigest() for data, _ in files))\n"
    )
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    here = [files_of([lines_of(flights(20_000))], codec, 100_000) for codec in CODECS]
    assert found.splitlines() == [
        " ".join(hashlib.sha256(data).hexdigest() for data, _ in files) for files in here
    ]
