"""JSON lines: whatever records are written, they are read, each value as it is, or told of."""

import bz2
import gzip
import json
import random
from datetime import datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.examples import examples
from support.s3.stored_objects import MemoryClient, problem_of, read_all, stored
from support.source.json_lines import (
    HARD_OBJECTS,
    SPACE,
    TYPES,
    as_bits,
    columns,
    keys,
    read_records,
)

from dbt.adapters.mzs3.formats.read import chunks, format, jsonl, text
from dbt.adapters.mzs3.formats.read.chunks import Chunk
from dbt.adapters.mzs3.formats.read.format import Reading
from dbt.adapters.mzs3.formats.read.jsonl import JsonDecoder, JsonLinesFormat
from dbt.adapters.mzs3.formats.read.object_error import HeaderProblem

FORM = JsonLinesFormat("by_suffix", Reading())
SUBSET = JsonLinesFormat("by_suffix", Reading(header_match="subset"))
TEXT = st.text(st.one_of(st.sampled_from('"\\/\n\r\t{}[]:,null'), st.characters(codec="utf-8")))
NESTED = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
INSTANTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))
# Of each type the values, and how they are written in JSON.
VALUES = {
    "string": (TEXT, None),
    "boolean": (st.booleans(), None),
    "tinyint": (st.integers(-(2**7), 2**7 - 1), None),
    "bigint": (st.integers(-(2**63), 2**63 - 1), None),
    "double": (st.floats(allow_nan=False, allow_infinity=False), None),
    "float": (st.floats(width=32, allow_nan=False, allow_infinity=False), None),
    "decimal(38,10)": (
        st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(f"{n}e-10")),
        "{:f}".format,
    ),
    "decimal(9,2)": (
        st.integers(-(10**9) + 1, 10**9 - 1).map(lambda n: Decimal(f"{n}e-2")),
        '"{:f}"'.format,
    ),
    "date": (st.dates(), lambda value: json.dumps(str(value))),
    "timestamp": (
        INSTANTS.map(lambda one: one.replace(tzinfo=timezone.utc)),
        lambda value: json.dumps(value.isoformat()),
    ),
    "binary": (st.binary(max_size=5), lambda value: json.dumps(f"\\x{value.hex()}")),
}


def written(value, form):
    return "null" if value is None else (form or json.dumps)(value)


@st.composite
def objects(draw):
    """Types, rows of them, and the bytes of an object that has these rows."""
    types = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=5))
    row = st.tuples(*(VALUES[kind][0] | st.none() for kind in types))
    rows = draw(st.lists(row, max_size=20))
    nested = draw(st.booleans())
    order = random.Random(draw(st.integers(0, 99)))
    lines = []
    for values in rows:
        pairs = [
            f"{json.dumps(name)}: {written(value, VALUES[kind][1])}"
            for name, value, kind in zip(keys(types), values, types, strict=True)
        ]
        if nested:
            ascii_only = draw(st.booleans())
            pairs.append(f'"more":{json.dumps(draw(NESTED), ensure_ascii=ascii_only)}')
        order.shuffle(pairs)
        lines.append("{" + draw(st.sampled_from([",", ", ", " , "])).join(pairs) + "}")
    end = draw(st.sampled_from(["\n", "\r\n"]))
    text = end.join(lines) + draw(st.sampled_from(["", end]))
    return types, rows, text.encode()


@examples(300)
@given(made=objects(), block=st.integers(1, 400))
def test_any_rows_come_back_whatever_the_chunks(made, block):
    types, rows, data = made
    good, bad = read_records(data, types, block, header_match="subset", on_bad_row="fail")
    assert (as_bits(good.values()), bad) == (as_bits(rows), {})


@examples(100)
@given(values=st.lists(NESTED, min_size=1, max_size=5), block=st.integers(1, 200))
def test_objects_and_arrays_are_their_text(values, block):
    texts = [json.dumps(value) for value in values]
    data = "".join(f'{{"k0": {text}}}\n' for text in texts).encode()
    good, bad = read_records(data, ["string"], block)
    for number, (value, token) in enumerate(zip(values, texts, strict=True), 1):
        if isinstance(value, (dict, list)):
            assert good[number] == (token,)
        elif isinstance(value, str) or value is None:
            assert good[number] == (value,)
        else:
            assert bad[number].error == f"column c0: {token} is not a string"


def one_by_one(data, **reading):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonl, "read_lines", lambda *_, **__: None)
        return read_records(data, **reading)


MATCHES = st.sampled_from(["exact", "subset"])


@examples(800)
@given(data=HARD_OBJECTS, match=MATCHES, nested=st.booleans())
@example(b'{"k0":"a"}\n{"k0":"b"}{"k0":\n"c"}', "subset", False)
def test_what_pyarrow_reads_is_what_the_lines_say(data, match, nested):
    decoder = JsonLinesFormat("none", Reading(header_match=match)).decoder(
        keys(TYPES), columns(*TYPES)
    )
    decoder._has_nested = nested
    batch = decoder.all_good(data)
    if batch is not None:
        good, bad = one_by_one(data, header_match=match)
        rows = list(zip(*(c.to_pylist() for c in batch.columns), strict=True))
        assert (as_bits(rows), {}) == (as_bits(good.values()), bad)


@examples(500)
@given(data=HARD_OBJECTS, block=st.integers(1, 300), match=MATCHES)
def test_records_and_rejects_are_the_same_whatever_the_chunks(data, block, match):
    whole = one_by_one(data, header_match=match)
    good, bad = read_records(data, block_bytes=block, header_match=match)
    assert good.keys() == whole[0].keys()
    assert (as_bits(good.values()), bad) == (
        as_bits(whole[0].values()),
        {n: format.Reject(**{**vars(r), "number": bad[n].number}) for n, r in whole[1].items()},
    )


@examples(300)
@given(texts=st.lists(HARD_OBJECTS, min_size=2, max_size=4), match=MATCHES)
@example([b'{"k0":"a"', b"}\n"], "subset")
@example([b"\xef\xbb\xbf", b"\n"], "subset")
def test_objects_are_read_together_as_each_alone_or_not_at_all(texts, match):
    form = JsonLinesFormat("none", Reading(header_match=match))
    decoder = form.decoder(keys(TYPES), columns(*TYPES))
    together = decoder.together([stored(text) for text in texts])
    if together is not None:
        batch, counts = together
        each = [read_records(text, header_match=match) for text in texts]
        assert [bad for _, bad in each] == [{}] * len(texts)
        assert counts == [len(good) for good, _ in each]
        rows = list(zip(*(c.to_pylist() for c in batch.columns), strict=True))
        assert as_bits(rows) == as_bits(row for good, _ in each for row in good.values())


def test_good_objects_are_read_together():
    decoder = FORM.decoder(("k0",), columns("bigint"))
    batch, counts = decoder.together(
        [stored(b'{"k0":1}\n{"k0":2}'), stored(b""), stored(b'\xef\xbb\xbf{"k0":3}\r\n')]
    )
    assert (batch.to_pydict(), counts) == ({"c0": [1, 2, 3]}, [2, 0, 1])


@pytest.mark.parametrize(
    "data, types",
    [
        (b'{"k0":"a","k1":true}\n{"k0":null,"k1":null}\n', ["string", "boolean"]),
        (b'{"k0":0,"k1":1.5,"k2":1e2}\n', ["bigint", "double", "decimal(9,2)"]),
        (b'{"k0":0.0,"k1":-0.0}\n\n{"k0":1e-9,"k1":1e-9}\n', ["double", "float"]),
        (b'{"k0":0,"k1":"%s"}\n{"k0":1,"k1":null}' % (b"0" * 100), ["float", "string"]),
        (b'{"k0"\t:\t null,"k1" :  null}\n{"k0":1e0,"k1":"\\\\"}', ["double", "string"]),
        (b'{"k0":"2024-02-29","k1":null}\n \r\n{"k0":null,"k1":"x"}', ["date", "string"]),
        (b'{"k0":"Information, NaN","k1":"\\ud83d\\ude00"}\r\n', ["string", "string"]),
    ],
)
def test_what_is_usual_is_read_by_pyarrow_alone(monkeypatch, data, types):
    rows, _ = one_by_one(data, types=types)
    monkeypatch.delattr(JsonDecoder, "_one_by_one")
    assert read_records(data, types)[0] == rows


def test_objects_and_arrays_are_learnt(monkeypatch):
    line = (
        b'{"k0":{"\\"]":[null, "}\\\\"],\t"\\u00e9":{}}}\r\n{"k0":"[{"}\n{"k0":[ ]}\n{"k0":null}\n'
    )
    real, calls = JsonDecoder._one_by_one, []
    monkeypatch.setattr(
        JsonDecoder, "_one_by_one", lambda *args: calls.append(args) or real(*args)
    )
    good, bad = read_records(line * 50, ["string"], len(line))
    texts = ['{"\\"]":[null, "}\\\\"],\t"\\u00e9":{}}', "[{", "[ ]", None]
    assert ([row[0] for row in good.values()], bad, len(calls)) == (texts * 50, {}, 1)


def test_strings_in_place_of_numbers_are_learnt(monkeypatch):
    line = b'{"k0":"1","k1":"true"}\n'
    real, calls = JsonDecoder._one_by_one, []
    monkeypatch.setattr(
        JsonDecoder, "_one_by_one", lambda *args: calls.append(args) or real(*args)
    )
    good, bad = read_records(line * 50, ["bigint", "boolean"], len(line) * 5)
    assert (set(good.values()), bad, len(calls)) == ({(1, True)}, {}, 1)


def test_few_good_records_are_read_beside_a_bad_one(monkeypatch):
    read = []
    real = JsonDecoder._one_by_one
    monkeypatch.setattr(
        JsonDecoder, "_one_by_one", lambda self, one: read.append(len(one.data)) or real(self, one)
    )
    line = b'{"k0":1}\n'
    data = line * 100_000 + b"?\n" + line * 100_000
    decoder = JsonLinesFormat("none", Reading(on_bad_row="reject")).decoder(
        ("k0",), columns("int")
    )
    records = decoder.decode(Chunk(data, 7, 3))
    assert (records.count, records.batch.num_rows) == (200_001, 200_000)
    (reject,) = records.rejects
    assert (reject.number, reject.line, reject.byte) == (100_000, 100_003, 7 + len(line) * 100_000)
    assert records.numbers is not None and records.numbers[-1].as_py() == 200_000
    assert len(read) == 1 and read[0] < 2 * jsonl.PART_BYTES


def test_many_short_records_are_read_by_pyarrow_alone(monkeypatch):
    monkeypatch.delattr(JsonDecoder, "_one_by_one")
    good, _ = read_records(b'{"k0":1}\n' * 300_000, ["tinyint"])
    assert len(good) == 300_000


def test_a_key_that_is_missing_is_no_null():
    data = b'{"k0":null,"k1":1}\n{"k1":null,"other":{"k0":null}}\n{"k0":"a","k1":2,"x":null}\n'
    good, bad = read_records(data, ["string", "int"], header_match="subset")
    assert good == {1: (None, 1), 3: ("a", 2)}
    assert bad[2].error == "the record has other keys than the header: 'k0' is missing"


COLONS = st.sampled_from(
    [":null", ":0", ":false", ':""', ":", " :null", "a:null", "a: null", '":null', "a\\", "null"]
)


@examples(500)
@given(
    names=st.lists(COLONS, min_size=1, max_size=4, unique=True),
    records=st.lists(st.dictionaries(COLONS, st.none() | COLONS, max_size=5), min_size=1),
    space=SPACE,
    kind=st.sampled_from(["string", "boolean", "bigint"]),
)
@example([":0"], [{":null": None}], "", "bigint")
def test_a_name_with_a_colon_is_not_taken_for_a_null(names, records, space, kind):
    types = [kind] * len(names)
    good = dict.fromkeys(names)
    lines = [json.dumps(good | one, separators=(",", f"{space}:")) for one in records[1:]]
    data = "\n".join([json.dumps(records[0]), *lines]).encode()
    decoder = JsonLinesFormat("none", Reading("subset", on_bad_row="reject")).decoder(
        names, columns(*types)
    )
    batch = decoder.all_good(data)
    if batch is not None:
        records = decoder._one_by_one(Chunk(data, 0, 1))
        assert (records.rejects, records.batch) == ((), batch)


def test_a_name_with_a_colon_inside_is_read_by_pyarrow():
    decoder = JsonLinesFormat("none", Reading()).decoder(
        ("a:null", "b: null"), columns("string", "string")
    )
    batch = decoder.all_good(b'{"a:null": null, "b: null": null}\n')
    assert batch is not None and batch.to_pydict() == {"c0": [None], "c1": [None]}
    assert decoder.all_good(b'{"a:null": null}\n') is None


def test_names_of_any_kind():
    names = ("a b", 'say "x":null', "é\n", "", "a:null")
    record = json.dumps(dict.fromkeys(names)).encode()
    rows = read_all(FORM, record, dict.fromkeys("vwxyz", "string"), names)
    assert rows == [(None,) * 5]


def test_the_header_is_the_first_record():
    data = (
        b'\n{"a":1,"b":1.5,"c":"x","d":true,"e":null,"f":[],"g":12345678901234567890,"h":%s}\n'
        b'{"z":1}\n' % (b"1" * 39)
    )
    found = [(field.name, field.own) for field in FORM.fields(stored(data))]
    assert found == [
        ("a", "bigint"),
        ("b", "double"),
        ("c", "string"),
        ("d", "boolean"),
        ("e", "void"),
        ("f", "string"),
        ("g", "decimal(38,0)"),
        ("h", "double"),
    ]
    assert FORM.fields(stored(b"")) is FORM.fields(stored(b"\xef\xbb\xbf\n \n")) is None


@pytest.mark.parametrize(
    "line, problem",
    [
        (b"[", "the line is not a JSON object, which a line has from { to }: '['"),
        (b"{}", "the record has no key"),
        (b'{"a":1,"a":2}', "the record has the key 'a' twice"),
    ],
)
def test_a_first_record_that_is_no_header(line, problem):
    with pytest.raises(HeaderProblem) as raised:
        FORM.fields(stored(b"\n" + line + b"\n"))
    assert raised.value.problem == f"the header is malformed: {problem}"
    assert raised.value.place == "line 2, byte 1"


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress])
def test_compressed_objects(compress):
    form = JsonLinesFormat("gzip" if compress is gzip.compress else "bzip2", Reading())
    assert read_all(form, compress(b'{"k0":1}\n' * 3), {"k0": "int"}) == [(1,)] * 3


def test_a_line_may_be_longer_than_a_chunk():
    text = "x" * 5000
    data = b"".join(b'{"k0":"%s"}\n' % (text[:n].encode()) for n in (1, 5000, 2))
    good, _ = read_records(data, ["string"], 100)
    assert [len(row[0]) for row in good.values()] == [1, 5000, 2]


def test_a_line_that_is_too_long_ends_what_can_be_read(monkeypatch):
    real = chunks.Chunks

    def few(*args, **more):
        return real(*args, **more, max_record_bytes=200)

    monkeypatch.setattr(text, "Chunks", few)
    data = b'{"k0":"a"}\n{"k0":"' + b"b" * 1000
    good, bad = read_records(data, ["string"], 100)
    assert good == {1: ("a",)}
    assert bad[2].error == (
        "the record is larger than 0 MB; is each one on its own line? All that follows in the "
        "object is rejected with it"
    )
    monkeypatch.setattr(text, "BLOCK_BYTES", 100)
    problem = problem_of(FORM, data, {"k0": "string"})
    assert problem.problem == "the record is larger than 0 MB; is each one on its own line?"
    assert problem.place == "line 2, byte 11"


def test_no_more_than_a_chunk_is_held():
    """Whatever the object's size, what is asked of pyarrow's pool is a few times a chunk."""
    line = b'{"k0":"%s"}\n' % (b"x" * 100)
    client = MemoryClient(line * 200_000)
    pool = pa.default_memory_pool()
    decoder = FORM.decoder(("k0",), columns("string"))
    held = pool.bytes_allocated()
    most = 0
    for records in decoder(stored(client.data, client)):
        most = max(most, pool.bytes_allocated() - held)
        del records
    assert 0 < most < 3 * text.BLOCK_BYTES


def test_a_chunk_without_a_record():
    assert read_records(b"\n\n \n", ["string"], 1) == ({}, {})


def test_a_decoder_goes_on_behind_an_object_with_bad_records():
    decoder = JsonLinesFormat("none", Reading(on_bad_row="reject")).decoder(
        ("k0",), columns("int")
    )
    for data in (b'{"k0":"x"}', b'{"k0":1}'):
        assert decoder.decode(Chunk(data, 0, 1)).count == 1
    batch = decoder.all_good(b'{"k0":2}')
    assert batch is not None and batch.to_pydict() == {"c0": [2]}
