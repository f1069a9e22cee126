"""Objects in other encodings than UTF-8: their text, and where in their own bytes errors are."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.source.rejecting import read_all

from dbt.adapters.mzs3.formats.read.encoding import canonical_encoding, utf8_reader, width_in

S = "string"
TEXTS = {
    "latin-1": "é,ÿ\xa0\n",
    "cp1252": "€,“x”\r\n",
    "koi8-r": "привет,мир\n",
    "shift_jis": "表,ソ\n",  # the second byte of these is a backslash, of others a pipe
    "cp932": "－,∥\n",
    "gb18030": "漢,😀\n",
    "big5": "功,許\n",
    "euc_kr": "한,글\n",
    "utf-16": "é,😀\n",
    "utf-16-le": "é,😀\n",
    "utf-16-be": "é,😀\n",
    "ascii": "a,b\n",
}


@pytest.mark.parametrize("encoding", TEXTS)
@pytest.mark.parametrize("block", [1, 3, 1000])
def test_text_and_places_in_many_encodings(encoding, block):
    line = TEXTS[encoding]
    text = f'{line}"{line}",{line}x\n{line}'
    data = text.encode(encoding)
    good, bad = read_all(data, S, S, encoding=canonical_encoding(encoding), block_bytes=block)
    fields = tuple(line.rstrip("\r\n").split(","))
    assert good == {1: fields, 4: fields}
    place = {2: f"{line}", 3: text[: -len(f"x\n{line}")]}
    assert {n: (r.line, r.byte) for n, r in bad.items()} == {
        n: (head.count("\n") + 1, len(head.encode(encoding))) for n, head in place.items()
    }


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("declared", ["utf-16", None])
def test_the_byte_order_mark_of_utf_16(order, declared):
    data = "\ufeffé,b\nx\n".encode(order)
    good, bad = read_all(data, S, S, encoding=declared or order)
    assert good == {1: ("é", "b")}
    assert bad[2].byte == 2 + len("é,b\n".encode(order))


def test_utf_16_without_a_mark_has_the_lower_byte_first():
    assert read_all("é\n".encode("utf-16-le"), S, encoding="utf-16") == ({1: ("é",)}, {})


@pytest.mark.parametrize(
    ("encoding", "data", "raw", "byte"),
    [
        ("cp1252", b"a,b\x81\nc,d\n", "a,b\\x81", "0x81"),
        ("ascii", b"a,\xc3\xa9\nc,d\n", "a,\\xc3\\xa9", "0xc3"),
        ("utf-16-le", b"a\0,\0b\0\0\xd8\n\0c\0,\0d\0\n\0", "a,b\\x00\\xd8", "0x00"),
        ("shift_jis", b"a,b\x81\xff\nc,d\n", "a,b\\x81\\xff", "0x81"),
    ],
)
def test_bytes_that_are_not_valid(encoding, data, raw, byte):
    good, bad = read_all(data, S, S, encoding=encoding)
    assert good == {2: ("c", "d")}
    assert bad[1].raw == raw
    assert bad[1].error == f"column 2 is not valid {_shown(encoding)}: byte {byte}"


def _shown(encoding: str) -> str:
    return encoding.upper() if encoding.startswith("utf") else encoding


def test_an_odd_byte_at_the_end_of_utf_16():
    _, bad = read_all("a\nb".encode("utf-16-le") + b"c", S, encoding="utf-16-le")
    assert bad[2].raw == "b\\x63"


@given(st.text(max_size=60), st.sampled_from(["utf-16", "utf-16-be", "gb18030"]), st.data())
def test_pieces_of_any_size_are_the_text(text, encoding, data):
    stream = io.BytesIO(text.encode(encoding, "replace"))
    read = utf8_reader(lambda size: stream.read(data.draw(st.integers(1, 5))), encoding)
    found = b"".join(iter(lambda: read(3), b""))
    assert found.decode().removeprefix("\ufeff") == (
        text.encode(encoding, "replace").decode(encoding).removeprefix("\ufeff")
    )
    assert width_in(encoding)(found) == len(text.encode(encoding, "replace"))


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("UTF8", "utf-8"),
        ("utf-8-sig", "utf-8"),
        ("Latin1", "iso8859-1"),
        ("UTF-16", "utf-16"),
        ("utf_16_le", "utf-16-le"),
        ("windows-1252", "cp1252"),
    ],
)
def test_encodings_have_one_name(name, canonical):
    assert canonical_encoding(name) == canonical


@pytest.mark.parametrize(
    "name",
    ["utf-7", "iso2022_jp", "iso2022_kr", "hz", "idna", "punycode", "unicode_escape",
     "raw_unicode_escape", "base64", "rot13", "utf-32", "cp037", "undefined", "no-such", ""],
)  # fmt: skip
def test_what_no_source_can_be_in(name):
    with pytest.raises(ValueError, match="is not an encoding that a source can have"):
        canonical_encoding(name)
