"""Compressed objects: by their suffix or as declared, in pieces of any size, cut off or not."""

import bz2
import gzip
import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.mzs3.formats.read.compression import compression_by_name, plain_reader
from dbt.adapters.mzs3.formats.read.object_error import FIX_OBJECT, ObjectError

TEXT = b"id,amount\n" + b"".join(b"%d,%d\n" % (n, n * n) for n in range(2000))


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


COMPRESS = {"gzip": gzip.compress, "zstd": zstd, "bzip2": bz2.compress}
kinds = pytest.mark.parametrize("kind", COMPRESS)


def read_all(data: bytes, declared: str, key: str = "1.csv", size: int = 100, most: int = 1000):
    stream = io.BytesIO(data)
    read = plain_reader(lambda wanted: stream.read(min(wanted, most)), key, declared, "utf-8")
    found = b""
    while piece := read(size):
        assert len(piece) <= size
        found += piece
    return found


@pytest.mark.parametrize(
    ("key", "kind"),
    [("a.csv", "none"), ("a.gz", "gzip"), ("a.csv.GZIP", "gzip"), ("a.zst", "zstd"),
     ("a.zstd", "zstd"), ("a.csv.bz2", "bzip2"), ("a.gz.csv", "none")],
)  # fmt: skip
def test_the_suffix_says_it_unless_declared(key, kind):
    assert compression_by_name(key, "by_suffix") == kind
    assert compression_by_name(key, "none") == "none"
    assert compression_by_name(key, "zstd") == "zstd"


@kinds
@pytest.mark.parametrize("size", [1, 17, 1 << 20])
@pytest.mark.parametrize("most", [1, 1000])
def test_several_parts_are_one_text(kind, size, most):
    compress = COMPRESS[kind]
    data = compress(TEXT[:50]) + compress(b"") + compress(TEXT[50:200])
    assert read_all(data, kind, size=size, most=most) == TEXT[:200]


@kinds
def test_an_empty_object_is_empty(kind):
    assert read_all(b"", kind) == b""


@kinds
@given(cut=st.integers(1, 200))
def test_an_object_that_ends_early(kind, cut):
    data = COMPRESS[kind](TEXT)
    with pytest.raises(ObjectError) as raised:
        read_all(data[: max(1, len(data) - cut)], kind)
    assert raised.value.problem == f"its {kind} stream ends early"
    assert raised.value.advice == FIX_OBJECT


@kinds
def test_an_object_that_is_not_compressed(kind):
    with pytest.raises(ObjectError) as raised:
        read_all(TEXT, kind)
    assert raised.value.problem.startswith(f"it is not valid {kind} (")
    assert raised.value.advice == (
        "Correct or remove the object; for objects that are not compressed declare "
        "`compression: none`"
    )


@kinds
def test_an_object_with_other_bytes_behind_its_parts(kind):
    with pytest.raises(ObjectError, match=f"it is not valid {kind}"):
        read_all(COMPRESS[kind](TEXT) + b"id,amount\n" * 5, kind)


@kinds
@pytest.mark.parametrize("most", [1, 5, 1000])
def test_an_object_that_is_compressed_though_nothing_says_so(kind, most):
    with pytest.raises(ObjectError) as raised:
        read_all(COMPRESS[kind](TEXT), "none", most=most)
    problem = raised.value
    assert (problem.problem, problem.advice, problem.line, problem.byte) == (
        f"it is compressed by {kind}",
        "Declare `compression: by_suffix`, which goes by an object's first bytes too",
        1,
        0,
    )


@pytest.mark.parametrize("most", [1, 3, 1000])
@pytest.mark.parametrize("data", [b"", b"a", b"BZh9,x\n", TEXT])
def test_an_object_that_is_not_compressed_comes_as_it_is(data, most):
    assert read_all(data, "none", most=most, size=2) == data


@kinds
def test_what_goes_wrong_with_reading_is_told_as_it_is(kind):
    def broken(_: int) -> bytes:
        raise ObjectError("it was removed after it was listed", "Put it back")

    with pytest.raises(ObjectError, match="it was removed"):
        plain_reader(broken, "1.csv", kind, "utf-8")(10)
