"""Blocks of Avro's files in each codec: whole, damaged, or larger than a worker can hold."""

import bz2
import importlib.util
import lzma
import re
import sys
import tracemalloc
import zlib

import pyarrow as pa
import pytest
from support.s3.stored_objects import problem_of, read_all
from support.source.avro_files import blocks_of, number, record

from dbt.adapters.mzs3.formats.read import avro
from dbt.adapters.mzs3.formats.read.avro import avro_file
from dbt.adapters.mzs3.formats.read.format import Reading
from dbt.adapters.mzs3.formats.read.typed import FIX_FILE, TypedFormat

FORM = TypedFormat(Reading(), avro_file)


def zstd(data, level=3):
    return pa.Codec("zstd", level).compress(data, asbytes=True)


def zstd_stream(data):
    """As Java writes it: without the size of its content."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def xz(data):
    return lzma.compress(data, preset=0)


def raw_deflate(data):
    squeeze = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return squeeze.compress(data) + squeeze.flush()


STREAMS = [("zstandard", zstd), ("zstandard", zstd_stream), ("bzip2", bz2.compress), ("xz", xz)]


def packed(codec, pack, *blocks, schema=None):
    """A file of these blocks, compressed."""
    parts = [(count, pack(body)) for count, body in blocks]
    return blocks_of(schema or record("long", "string"), *parts, codec=codec.encode())


@pytest.mark.parametrize(("codec", "pack"), STREAMS)
def test_each_codec_gives_the_rows_of_null(monkeypatch, codec, pack):
    monkeypatch.setattr(avro, "RAW_READ_BYTES", 100)
    bodies = [
        b"".join(number(n) + number(1) + b"x" for n in range(start, start + 300))
        for start in (0, 300)
    ]
    columns = {"f0": "bigint", "f1": "string"}
    blocks = [(300, body) for body in bodies]
    rows = read_all(FORM, packed("null", bytes, *blocks), columns)
    assert len(rows) == 600
    assert read_all(FORM, packed(codec, pack, *blocks), columns) == rows
    twice = packed(codec, lambda body: pack(body[:50]) + pack(body[50:]), *blocks)
    assert read_all(FORM, twice, columns) == rows


@pytest.mark.parametrize("window", [27, 26])
def test_a_block_takes_no_more_than_128_mb_to_decompress(window):
    body = number(3) + b"abc"
    frame = b"\x28\xb5\x2f\xfd\0" + bytes([(window + 1 - 10) << 3])
    frame += (len(body) << 3 | 1).to_bytes(3, "little") + body
    stream = bytearray(xz(body))
    # The size of the dictionary in the header of the stream's block, whose checksum follows.
    stream[16] = (window - 12) << 1
    stream[20:24] = zlib.crc32(stream[12:20]).to_bytes(4, "little")
    for codec, data in (("zstandard", frame), ("xz", bytes(stream))):
        file = blocks_of(record("string"), (1, data), codec=codec.encode())
        if window == 26:
            assert read_all(FORM, file, {"f0": "string"}) == [("abc",)]
        else:
            assert problem_of(FORM, file).problem == (
                "it is Avro that a source can't read (a block that takes more than 128 MB to "
                "decompress)"
            )


@pytest.mark.parametrize(("codec", "pack"), STREAMS)
def test_a_block_that_is_damaged(codec, pack):
    whole = pack(b"".join(map(number, range(50))))
    wrong = [whole[:end] for end in range(len(whole))]
    wrong += [whole + b"?", whole + whole[:5], b"?" + whole[1:]]
    if codec != "zstandard":  # whose frames have no checksum here
        middle = len(whole) // 2
        wrong.append(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    for one in wrong:
        problem = problem_of(FORM, blocks_of(record("long"), (50, one), codec=codec.encode()))
        assert re.fullmatch(r"it is not valid Avro \(.+\)", problem.problem), one
        assert problem.advice == FIX_FILE


@pytest.mark.parametrize(("codec", "pack"), [("deflate", raw_deflate), *STREAMS])
def test_a_bomb_is_not_decompressed_as_a_whole(monkeypatch, codec, pack):
    data = packed(codec, pack, (1, bytes(32 << 20)), schema=record("bytes"))
    monkeypatch.setattr(avro, "MAX_BLOCK_BYTES", 1 << 20)
    tracemalloc.start()
    try:
        problem = problem_of(FORM, data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert problem.problem.endswith("(a block that decompresses to more than 1048576 bytes)")
    assert peak < 8 << 20


@pytest.mark.parametrize(("codec", "pack"), STREAMS)
@pytest.mark.parametrize("size", [500, 501])
def test_a_block_decompresses_to_the_limit_and_no_more(monkeypatch, codec, pack, size):
    monkeypatch.setattr(avro, "MAX_BLOCK_BYTES", 500)
    body = number(size - 2) + bytes(size - 2)
    data = packed(codec, pack, (1, body), schema=record("bytes"))
    if size == 500:
        assert read_all(FORM, data) == [(bytes(498),)]
    else:
        assert problem_of(FORM, data).problem.endswith("decompresses to more than 500 bytes)")


SNAPPY_BODY = b"".join(map(number, range(500)))
PACKED = pa.compress(SNAPPY_BODY, codec="snappy", asbytes=True)
CRC = zlib.crc32(SNAPPY_BODY).to_bytes(4, "big")


def test_snappy_with_its_checksum():
    data = blocks_of(record("long"), (500, PACKED + CRC), codec=b"snappy")
    assert read_all(FORM, data) == [(n,) for n in range(500)]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (PACKED + bytes(4), r"it is not valid Avro \(a block whose checksum is another\)"),
        (b"\x05abc" + CRC, r"it is not valid Avro \(.*[Ss]nappy.*\)"),
        (b"\xff\xff\xff\xff\x7f" + CRC, r"it is Avro that a source can't read \(a length of .*\)"),
        (b"", r"it is not valid Avro \(.*[Ss]nappy.*\)"),
    ],
)
def test_snappy_that_is_not_right(wrong, says):
    data = blocks_of(record("long"), (500, wrong), codec=b"snappy")
    assert re.fullmatch(says, problem_of(FORM, data).problem)


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_block_of_deflate_is_cut_or_too_large(monkeypatch, more):
    monkeypatch.setattr(avro, "MAX_BLOCK_BYTES", 500)
    size = 500 + more
    body = number(size - 2) + bytes(size - 2)
    squeeze = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    cut = squeeze.compress(body) + squeeze.flush(zlib.Z_SYNC_FLUSH)
    whole = cut + squeeze.flush()
    files = [blocks_of(record("bytes"), (1, one), codec=b"deflate") for one in (cut, whole)]
    if more <= 0:
        assert problem_of(FORM, files[0]).problem.endswith("does not decompress as a whole)")
        assert read_all(FORM, files[1]) == [(bytes(size - 2),)]
        return
    for data in files:
        assert problem_of(FORM, data).problem.endswith("decompresses to more than 500 bytes)")


def test_other_codecs_are_named():
    problem = problem_of(FORM, blocks_of(record("long"), codec=b"lz4"))
    assert problem.problem == (
        "its codec is 'lz4', which is not one of null, deflate, snappy, zstandard, bzip2, xz"
    )


def test_a_python_without_lzma_reads_the_other_codecs(monkeypatch):
    monkeypatch.setitem(sys.modules, "lzma", None)
    spec = importlib.util.find_spec(avro.__name__)
    anew = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(anew)
    data = packed("bzip2", bz2.compress, (1, number(7)), schema=record("long"))
    assert read_all(TypedFormat(Reading(), anew.avro_file), data) == [(7,)]
    problem = problem_of(TypedFormat(Reading(), anew.avro_file), packed("xz", xz))
    assert problem.problem.endswith("is not one of null, deflate, snappy, zstandard, bzip2")
