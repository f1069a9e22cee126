"""What an object is by its first bytes: read as what it is, or told what it is; never guessed."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyarrow import orc
from pyarrow import parquet as pq
from support.s3.stored_objects import MemoryClient, problem_of, read_all, stored
from support.source.avro_files import ONE
from support.source.avro_files import file_of as avro_of

from dbt.adapters.mzs3.formats.read.avro import avro_file
from dbt.adapters.mzs3.formats.read.columns import Column
from dbt.adapters.mzs3.formats.read.csv import CsvFormat
from dbt.adapters.mzs3.formats.read.dialect import SourceDialect
from dbt.adapters.mzs3.formats.read.encoding import UTF_8
from dbt.adapters.mzs3.formats.read.format import ObjectFormat, Reading
from dbt.adapters.mzs3.formats.read.jsonl import JsonLinesFormat
from dbt.adapters.mzs3.formats.read.object_error import HeaderProblem, ObjectError
from dbt.adapters.mzs3.formats.read.parquet import parquet_file
from dbt.adapters.mzs3.formats.read.typed import TypedFormat

TEXT = b"id,amount\n1,2\n"
LINES = b'{"id": "1", "amount": "2"}\n'
TABLE = pa.table({"id": [1, 2]})


def arrow_stream(data: bytes, codec: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    return bytes(sink.getvalue().to_pybytes())


def zipped(name: str, data: bytes = TEXT) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, data)
    return file.getvalue()


def tarred(data: bytes = TEXT) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        entry = tarfile.TarInfo("a.csv")
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return file.getvalue()


def file_of(write: Callable[[pa.Table, Any], object]) -> bytes:
    sink = pa.BufferOutputStream()
    write(TABLE, sink)
    return bytes(sink.getvalue().to_pybytes())


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": lambda data: arrow_stream(data, "zstd"),
    "bzip2": bz2.compress,
}
PARQUET = file_of(pq.write_table)
AVRO = avro_of(ONE, [{"f0": "a"}])
OTHERS = {
    "a zip archive": zipped("a.csv"),
    "a document of an office suite, such as a workbook": zipped("[Content_Types].xml"),
    "a 7z archive": b"7z\xbc\xaf\x27\x1c\0\4" + bytes(range(100)),
    "a tar archive": tarred(),
    "compressed by xz": lzma.compress(TEXT),
    "compressed by lz4": arrow_stream(TEXT, "lz4"),
    "compressed by snappy": b"\xff\x06\0\0sNaPpY\x00\x12\0\0" + TEXT,
    "compressed by lzma": lzma.compress(TEXT, lzma.FORMAT_ALONE),
    "compressed by Unix compress": b"\x1f\x9d\x90" + bytes(range(50)),
    "a RAR archive": b"Rar!\x1a\x07\x01\0" + bytes(range(50)),
    "a Parquet file": PARQUET,
    "an Avro file": AVRO,
    "an ORC file": file_of(orc.write_table),
}
WIDE = {
    "utf-16": codecs.BOM_UTF16_LE + TEXT.decode().encode("utf-16-le"),
    "utf-16 ": codecs.BOM_UTF16_BE + TEXT.decode().encode("utf-16-be"),
    "utf-16-le": TEXT.decode().encode("utf-16-le"),
    "utf-16-be": TEXT.decode().encode("utf-16-be"),
    "utf-32": codecs.BOM_UTF32_LE + TEXT.decode().encode("utf-32-le"),
    "utf-32 ": codecs.BOM_UTF32_BE + TEXT.decode().encode("utf-32-be"),
    "utf-32-le": TEXT.decode().encode("utf-32-le"),
    "utf-32-be": TEXT.decode().encode("utf-32-be"),
}
CSV = CsvFormat("by_suffix", Reading(), SourceDialect())
JSON = JsonLinesFormat("by_suffix", Reading())
TEXTS: dict[str, tuple[ObjectFormat, bytes]] = {"csv": (CSV, TEXT), "jsonl": (JSON, LINES)}
formats = pytest.mark.parametrize("name", TEXTS)
kinds = pytest.mark.parametrize("kind", COMPRESS)
FIELDS = {"id": "string", "amount": "string"}


@formats
@kinds
def test_an_object_is_decompressed_by_its_first_bytes(name: str, kind: str) -> None:
    form, text = TEXTS[name]
    assert read_all(form, COMPRESS[kind](text)) == [("1", "2")]
    assert read_all(form, COMPRESS[kind](b"") + COMPRESS[kind](text)) == [("1", "2")]
    assert form.fields(stored(COMPRESS[kind](b""))) is None


@formats
def test_small_objects_some_of_which_are_compressed_are_read_one_by_one(name: str) -> None:
    form, text = TEXTS[name]
    decoder = form.decoder(("id", "amount"), [Column(one) for one in FIELDS])
    assert decoder.together([stored(text), stored(text)]) is not None
    assert decoder.together([stored(text), stored(gzip.compress(text))]) is None


@pytest.mark.parametrize("key", ["1.csv", "1.gz", "1.zst", "1.bz2"])
@kinds
def test_by_suffix_the_first_bytes_decide(key: str, kind: str) -> None:
    found = CSV.fields(replace(stored(COMPRESS[kind](TEXT)), key=key))
    assert [field.name for field in found or ()] == ["id", "amount"]


@pytest.mark.parametrize("key", ["1.gz", "1.zst", "1.bz2"])
def test_by_suffix_a_name_that_promises_compression_is_kept_to_it(key: str) -> None:
    with pytest.raises(ObjectError, match="it is not valid") as raised:
        CSV.fields(replace(stored(TEXT), key=key))
    assert not isinstance(raised.value, HeaderProblem)


@pytest.mark.parametrize("what", OTHERS)
@pytest.mark.parametrize("key", ["1.csv", "1.gz", "1.zst", "1.bz2"])
@pytest.mark.parametrize("declared", ["by_suffix", "none", *COMPRESS])
def test_what_is_no_text_is_told_alike_whatever_it_is_called(
    what: str, key: str, declared: str
) -> None:
    """So that an object is skipped, or stops the run, for what it is alone."""
    form = CsvFormat(declared, Reading(), SourceDialect())
    with pytest.raises(HeaderProblem) as raised:
        form.fields(replace(stored(OTHERS[what]), key=key))
    assert raised.value.problem == f"it is {what}, not text"
    assert "`compression: none`" not in raised.value.advice


@pytest.mark.parametrize("declared", ["none", *COMPRESS])
@kinds
def test_what_is_declared_holds_for_all_objects(declared: str, kind: str) -> None:
    form = CsvFormat(declared, Reading(), SourceDialect())
    if kind == declared:
        assert read_all(form, COMPRESS[kind](TEXT)) == [("1", "2")]
        return
    problem = problem_of(form, COMPRESS[kind](TEXT))
    assert not isinstance(problem, HeaderProblem)  # by another option it can be read
    assert problem.problem == f"it is compressed by {kind}"
    assert problem.advice == (
        "Declare `compression: by_suffix`, which goes by an object's first bytes too"
    )


@formats
@kinds
@pytest.mark.parametrize("inner", COMPRESS)
def test_what_is_compressed_twice_is_told(name: str, kind: str, inner: str) -> None:
    form, text = TEXTS[name]
    problem = problem_of(form, COMPRESS[kind](COMPRESS[inner](text)))
    assert problem.problem == f"it is compressed twice, by {kind} and inside that by {inner}"


@formats
@pytest.mark.parametrize("outer", ["none", *COMPRESS])
@pytest.mark.parametrize("what", OTHERS)
def test_what_is_no_text_is_told(name: str, outer: str, what: str) -> None:
    form, _ = TEXTS[name]
    data = OTHERS[what] if outer == "none" else COMPRESS[outer](OTHERS[what])
    problem = problem_of(form, data)
    assert isinstance(problem, HeaderProblem)
    assert problem.problem == f"it is {what}, not text"
    assert problem.advice


@pytest.mark.parametrize("what", ["a Parquet file", "an Avro file"])
def test_the_format_to_declare_is_named(what: str) -> None:
    name = what.split()[1].lower()
    assert f"Declare `format: {name}`" in problem_of(CSV, OTHERS[what]).advice


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
@pytest.mark.parametrize("found", WIDE)
def test_text_in_utf_16_is_told_by_name(encoding: str, found: str) -> None:
    form = CsvFormat("by_suffix", Reading(encoding=encoding), SourceDialect())
    found, data = found.strip(), WIDE[found]
    problem = problem_of(form, data)
    assert isinstance(problem, HeaderProblem)
    assert problem.problem == f"it is text in {found}, not in {encoding}"
    if found.startswith("utf-32"):
        assert problem.advice.startswith("Have it written in UTF-8")
    else:
        assert problem.advice.startswith(f"Declare `encoding: {found}`")
        as_told = CsvFormat("by_suffix", Reading(encoding=found), SourceDialect())
        assert read_all(as_told, data) == [("1", "2")]


@pytest.mark.parametrize("found", WIDE)
def test_of_json_lines_in_utf_16_no_option_is_named_that_they_lack(found: str) -> None:
    problem = problem_of(JSON, WIDE[found])
    assert problem.problem == f"it is text in {found.strip()}, not in utf-8"
    assert problem.advice.startswith("Have it written in UTF-8")


# What text begins with that is like a mark, and what is told as before.
@pytest.mark.parametrize(
    "text",
    ["BZh9", "BZh91AY", "PAR1", "PARENT_ID", "PARE", "ORC", "Obj", "PK", "7z", "ARROW1", "ÿþ",
     "þÿ", "ÿþx", "(µ", "ustar" * 60],
)  # fmt: skip
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16-le", "utf-16-be"])
def test_a_text_that_begins_like_a_mark_is_read(text: str, encoding: str) -> None:
    form = CsvFormat("by_suffix", Reading(encoding=encoding), SourceDialect())
    data = f"{text},b\n1,2\n".encode(encoding)
    assert read_all(form, data) == [("1", "2")]
    fields = form.fields(stored(data)) or ()
    assert [field.name for field in fields] == [text, "b"]


# They begin as zstd, gzip, ORC and zip do.
OTHER_STARTS = {"(µ/ý": "latin-1", "謟Ј": "utf-16-le", "剏䍃A": "utf-16-le", "䭐Ѓ": "utf-16-le"}


@pytest.mark.parametrize(("text", "encoding"), OTHER_STARTS.items())
def test_that_nothing_is_compressed_can_be_declared_of_a_text_in_another_encoding(
    text: str, encoding: str
) -> None:
    data = f"{text},b\n1,2\n".encode(encoding)
    by_suffix = CsvFormat("by_suffix", Reading(encoding=encoding), SourceDialect())
    assert problem_of(by_suffix, data, {"a": "string", "b": "string"}, (text, "b"))
    form = CsvFormat("none", Reading(encoding=encoding), SourceDialect())
    assert read_all(form, data) == [("1", "2")]
    decoder = form.decoder((text, "b"), [Column("a"), Column("b")])
    (batch, counts) = decoder.together([stored(data), stored(data)]) or (None, None)
    assert batch is not None
    assert (batch.num_rows, counts) == (2, [1, 1])


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_what_is_compressed_is_no_text_in_another_encoding(pack: Any) -> None:
    form = CsvFormat("none", Reading(encoding="latin-1"), SourceDialect())
    assert "compressed by" in problem_of(form, pack(TEXT * 100), {"a": "string"}).problem


@pytest.mark.parametrize("declared", ["by_suffix", "none"])
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_small_objects_together_are_as_declared(declared: str, encoding: str) -> None:
    form = CsvFormat(declared, Reading(encoding=encoding), SourceDialect())
    decoder = form.decoder(("id", "amount"), [Column("a"), Column("b")])
    assert decoder.together([stored(TEXT), stored(gzip.compress(TEXT))]) is None


@given(
    st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters=',"\ufeff\ufffe')),
    st.sampled_from(["utf-8", "latin-1", "cp1252", "utf-16-le", "utf-16-be", "shift_jis"]),
)
@example("ÿþ", "latin-1")
@example("(µ/ý", "latin-1")
@example("謟Ј", "utf-16-le")
@example("䭐Ѓ", "utf-16-le")
def test_no_text_is_taken_for_anything_else(text: str, encoding: str) -> None:
    data = f"{text},b\n1,2\n".encode(encoding, "ignore")
    declared = "by_suffix" if encoding == UTF_8 else "none"
    form = CsvFormat(declared, Reading(encoding=encoding), SourceDialect())
    fields = form.fields(stored(data)) or ()
    assert [field.name for field in fields] == [data.decode(encoding).partition(",")[0], "b"]


def test_a_nul_byte_in_a_text_is_told_as_such() -> None:
    for data in (b"a\0b,c\n", b"a\0b\0,c\n1,2\n", b"id,amount\n" * 100 + b"a\0,b\n"):
        assert "NUL byte" in problem_of(CSV, data).problem


def zstd_frame(descriptor: int, *header: int) -> bytes:
    """A frame of one empty block."""
    return b"\x28\xb5\x2f\xfd" + bytes([descriptor, *header]) + b"\x01\0\0"


@pytest.mark.parametrize(
    ("frames", "window"),
    [
        (zstd_frame(0, 21 << 3), "2048 MB"),
        (zstd_frame(0, 17 << 3 | 1), "144 MB"),
        (zstd_frame(0xA0, 0, 0, 0, 0x10), "256 MB"),
        (zstd_frame(0, 0) + zstd_frame(0, 21 << 3), "more than 128 MB"),
    ],
)
def test_the_window_of_zstd_is_told(frames: bytes, window: str) -> None:
    problem = problem_of(CSV, frames)
    assert problem.problem == f"its zstd takes a window of {window}, where 128 MB is the most"
    assert "--long=27" in problem.advice


@pytest.mark.parametrize("number", [0, 15])
def test_zstd_may_begin_with_a_frame_to_be_skipped(number: int) -> None:
    """As that of pzstd does."""
    skipped = bytes([0x50 + number]) + b"\x2a\x4d\x18" + b"\4\0\0\0abcd"
    assert read_all(CSV, skipped + COMPRESS["zstd"](TEXT)) == [("1", "2")]
    problem = problem_of(CSV, skipped + zstd_frame(0, 21 << 3))
    assert problem.problem.startswith("its zstd takes a window of more than 128 MB, where")


def test_a_window_of_128_mb_is_read() -> None:
    assert read_all(CSV, zstd_frame(0, 17 << 3) + COMPRESS["zstd"](TEXT)) == [("1", "2")]


@pytest.mark.parametrize("name", ["avro", "parquet"])
def test_another_kind_of_file_is_named_in_formats_with_a_schema(name: str) -> None:
    form = TypedFormat(Reading(), {"avro": avro_file, "parquet": parquet_file}[name])
    others = {**OTHERS, "compressed by gzip": gzip.compress(PARQUET)}
    del others[{"avro": "an Avro file", "parquet": "a Parquet file"}[name]]
    for what, data in others.items():
        expected = f"it is not valid {name.capitalize()} (it is {what})"
        problem = problem_of(form, data)
        assert isinstance(problem, HeaderProblem)  # skipped where such are
        assert problem.problem == expected
    assert problem_of(form, TEXT).problem.startswith(f"it is not valid {name.capitalize()} (")


def test_one_request_tells_what_a_text_is() -> None:
    client = MemoryClient(gzip.compress(TEXT))
    assert read_all(CSV, client.data, FIELDS, client=client) == [("1", "2")]
    assert len(client.spans) == 1
