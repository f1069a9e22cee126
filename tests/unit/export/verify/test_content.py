"""SHA-256 and rows of one object, of any format, in bounded memory."""

import gzip
import hashlib
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.export.format_files import EACH, ROWS, files
from support.s3.memory import failure
from support.s3.readable import PREFIX, Body, ReadableS3

from dbt.adapters.mzs3.export.verify_copy import CHUNK_BYTES, ObjectFile, content_of
from dbt.adapters.mzs3.formats.write import FORMATS
from dbt.adapters.mzs3.options.option import convert
from dbt.adapters.mzs3.store import reader
from dbt.adapters.mzs3.store.failures import BrokenError, StoreError

TEXT = b'id,note\n1,"two\nlines"\n2,\n3,"a ""b"""\n'


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch):
    monkeypatch.setattr(reader, "FIRST_PAUSE_S", 0)


def zstd(text):
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "zstd") as stream:
        stream.write(text)
    return out.getvalue().to_pybytes()


def parquet(rows):
    out = io.BytesIO()
    pq.write_table(pa.table({"id": list(range(rows))}), out, row_group_size=10)
    return out.getvalue()


def content(stored, name="part-0000-0001.csv", s3=None, **options):
    s3 = s3 or ReadableS3()
    s3.objects[PREFIX + name] = stored
    kind = FORMATS["parquet" if name.endswith(".parquet") else "csv"]
    written = convert(kind, options, []).of_file(name)
    return content_of(ObjectFile(s3.prefix, s3.listed(name)), written)


def of_format(file_format, breaks=()):
    name = f"country=NZ/part-0000-0001{file_format.file_type.suffix}"
    s3 = ReadableS3()
    [stored] = files(file_format, [ROWS])
    s3.objects[PREFIX + name] = stored
    s3.breaks[PREFIX + name] = list(breaks)
    return stored, content_of(ObjectFile(s3.prefix, s3.listed(name)), file_format)


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [("", bytes), (".gz", gzip.compress), (".zst", zstd)],
    ids=["plain", "gzip", "zstd"],
)
def test_csv(suffix, compress):
    stored = compress(TEXT)
    found = content(stored, f"part-0000-0001.csv{suffix}", header=True)
    assert (found.rows, found.sha256) == (3, hashlib.sha256(stored).hexdigest())
    assert content(stored, f"part-0000-0001.csv{suffix}").rows == 4


def test_several_streams_in_one_object():
    assert content(gzip.compress(TEXT) * 2, "part-0000-0001.csv.gz").rows == 8
    assert content(zstd(TEXT) * 2, "part-0000-0001.csv.zst").rows == 8


@pytest.mark.parametrize(("header", "rows"), [(True, 0), (False, 1)])
def test_a_file_without_rows(header, rows):
    assert content(b"id\n", header=header).rows == rows
    assert content(b"", header=header).rows == 0


@pytest.mark.parametrize("file_format", EACH)
def test_every_format(file_format):
    stored, found = of_format(file_format)
    assert found == (hashlib.sha256(stored).hexdigest(), ROWS.num_rows, None)


@pytest.mark.parametrize(
    ("stored", "name", "reason"),
    [
        (gzip.compress(TEXT)[:-9], "part-0000-0001.csv.gz", "Truncated"),
        (zstd(TEXT)[:-1], "part-0000-0001.csv.zst", "Truncated"),
        (TEXT, "part-0000-0001.csv.gz", "header"),
        (TEXT, "part-0000-0001.csv.zst", "frame descriptor"),
        (TEXT[:-2], "part-0000-0001.csv", "ends within quotes"),
        (parquet(5)[:-1], "part-0000-0001.parquet", "magic bytes"),
        (b"", "part-0000-0001.parquet", "0 bytes"),
        (parquet(5)[:-20] + b"\xff" * 12 + parquet(5)[-8:], "part-0000-0001.parquet", ""),
    ],
    # Compressed bytes hold the time: as names, they would differ from one process to the next.
    ids=["short gzip", "short zstd", "no gzip", "no zstd", "quotes", "short", "empty", "footer"],
)
def test_what_is_broken_has_a_hash_and_no_rows(stored, name, reason):
    found = content(stored, name)
    assert found.rows is None
    assert found.problem.startswith("none that can be counted: ")
    assert reason in found.problem
    assert found.sha256 == hashlib.sha256(stored).hexdigest()


@pytest.mark.parametrize("file_format", EACH)
def test_a_connection_that_stays_broken_is_not_the_objects_fault(file_format):
    with pytest.raises(BrokenError, match="ConnectionResetError"):
        of_format(file_format, breaks=[5] + [0] * 20)


def test_a_denied_footer_is_not_the_objects_fault():
    s3 = ReadableS3()
    answers = iter([None, failure("AccessDenied", "GetObject")])

    def second_denied(action, key):
        if (answer := next(answers)) is not None:
            raise answer

    s3.before = second_denied
    with pytest.raises(StoreError, match="AccessDenied"):
        content(parquet(9_000), "x.parquet", s3)


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.csv.zst"])
def test_no_more_than_a_chunk_is_asked_for(name):
    Body.largest = 0
    text = b'1,"a\nb"\n' * 500_000
    stored = {"x.csv": text, "x.csv.gz": gzip.compress(text, 1), "x.csv.zst": zstd(text)}[name]
    before = pa.total_allocated_bytes()
    pool_peak = pa.default_memory_pool().max_memory()
    assert content(stored, name).rows == 500_000
    assert 0 < Body.largest <= CHUNK_BYTES
    grown = max(0, (pa.default_memory_pool().max_memory() or 0) - max(before, pool_peak or 0))
    assert grown < len(text) // 2
