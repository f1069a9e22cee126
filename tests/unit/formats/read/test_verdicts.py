"""A value's verdict is its own: the same alone and beside any other, in any chunk and format."""

import itertools
import json
import re
from functools import cache

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.source import fields, json_lines

from dbt.adapters.mzs3.formats.read import convert as conversions
from dbt.adapters.mzs3.formats.read.chunks import Chunks
from dbt.adapters.mzs3.formats.read.columns import Column, RecordLayout
from dbt.adapters.mzs3.formats.read.convert import convert, convert_good
from dbt.adapters.mzs3.formats.read.csv import CsvFormat
from dbt.adapters.mzs3.formats.read.format import Reading
from dbt.adapters.mzs3.formats.read.object_error import ObjectError
from dbt.adapters.mzs3.formats.read.typed import typed_records
from dbt.adapters.mzs3.types.table import arrow_type

REFUSED = "refused"
DAYS = [
    "2024-01-05", "2023-02-29", "2024-02-29", "0001-01-01", "0000-01-01", "9999-12-31",
    "10000-01-01", "02024-01-05", "2147483-01-01", "0044-03-15", "٢٠٢٤-٠١-٠٥", "２０２４-01-05",
    "2024-1-5", "20240105", "2024-13-01", "12345-02-30", "294247-01-10", "290308-12-22", "",
]  # fmt: skip
HOURS = [
    "", " 10", "T10", "T", " 10:30", "T10:30", " 10:30:00", "T10:30:15.25", " 23:59:59.999999",
    " 10:30:00.1234560", " 10:30:00.123456000000000", " 10:30:00.1234567", " 10:30:00.12345600001",
    " 10:30:00.0000000", " 10:30:00.", " 24:00:00", " 10:30:60", " 25:00", " ١٠:٣٠", " 1:00",
    " 103000", "  10:30", "t10:30", " 10:30:00,5", " 10:30:00.٥",
]  # fmt: skip
ZONES = ["", "Z", "z", "+01", "-0130", "+05:30", "+15:59", "+16", "+24", "+1", "+01:60", " UTC",
         "+٠١", "-00", "+013"]  # fmt: skip
ENDS = ["", "", "", " BC", " bc", " AD", " ", "\n", "\t", "\v", "\N{NO-BREAK SPACE}", "\0", "x"]
NUMBERS = [
    "0", "-0", "+0", "00", "1", "+1", "--1", "+-1", "1.0", "1.", ".5", "-.5", ".", "-", "+",
    "", "1e3", "1E+3", "1e-3", "1e0", "0e400", "1e", "e1", "1e400", "1e-400", "1e39", "1e-46",
    "3.4028236e38", "127", "128", "-128", "-129", "32767", "32768", "2147483648",
    "-2147483648", "9223372036854775807", "9223372036854775808", "-9223372036854775809",
    "0x1f", "-0xff", "0b1", "0o7", "1_000", "1,5", "999.99", "999.995", "0.120", "0.125",
    "1000", "4e20", "400000000000000000000", "9" * 39, "0" * 40 + "7", "1." + "0" * 60,
    "0." + "0" * 60 + "1", "١٢", "１２", "²", "1d", "1f", "0x1p3", "NaN", "nan", "-nan", "NAN",
    "nan(1)", "inf", "-Infinity", "+inf", "INF", "iNf", "infinit", "2e-324", "5e-324",
    "1.7976931348623159e308", "0.1e1", "100e-1", "1e+", "1 2", "1%", "0.1",
    "0.10000000149011612", "123456789.123456789", "16777217",
]  # fmt: skip
WORDS = [
    "t", "T", "true", "TRUE", "True", "tRuE", "tr", "y", "yes", "YES", "on", "On", "oN", "1", "0",
    "01", "f", "FALSE", "fals", "n", "No", "of", "off", "OFF", "x", "", "ｔ", "2",
]  # fmt: skip
HEX = ["\\x", "\\x00", "\\xFF", "\\xfF0a", "\\xf", "\\x 00", "\\X00", "x00", "00", "abc", "\\x0g",
       "\\000", "\\x٠٠", ""]  # fmt: skip
JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
TYPES = {
    "boolean": WORDS,
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "float", "double"), NUMBERS),
    **dict.fromkeys(("decimal(5,2)", "decimal(38,18)", "decimal(38,0)"), NUMBERS),
    **dict.fromkeys(("date", "timestamp", "timestamp_ntz"), None),
    "binary": HEX,
}


def _texts(data_type):
    if TYPES[data_type] is None:
        parts = st.tuples(*map(st.sampled_from, (DAYS, HOURS, ZONES, ENDS)))
        usual = st.tuples(st.just("2024-01-05"), *map(st.sampled_from, (HOURS, ZONES)))
        return st.one_of(parts, usual, st.tuples(st.sampled_from(DAYS))).map("".join)
    words = st.sampled_from(TYPES[data_type])
    return st.one_of(words, words, st.tuples(st.sampled_from([" ", "\t", "\n"]), words
                                             , st.sampled_from(ENDS)).map("".join))  # fmt: skip


def shown(array):
    """The values, each as one that equals only itself."""
    kind = array.type
    if pa.types.is_temporal(kind):
        return array.view(pa.int32() if pa.types.is_date(kind) else pa.int64()).to_pylist()
    return [value if value is None else repr(value) for value in array.to_pylist()]


def by_csv(texts, data_type, block_bytes=1 << 22):
    """What becomes of each field of CSV."""
    columns = (Column("a", data_type), Column("b", "string"))
    decoder = CsvFormat("none", Reading(on_bad_row="reject")).decoder(None, columns)
    data = fields.write([(text, "x") for text in texts])
    found = []
    stream = iter([data])
    chunks = Chunks(lambda _: next(stream, b""), fields.DIALECT, block_bytes=block_bytes)
    for chunk in chunks:
        records = decoder.decode(chunk, RecordLayout.in_order(2))
        found += _placed(records, records.batch.column(0))
    return found


def by_json(texts, data_type, block_bytes=1 << 22):
    """What becomes of each string of JSON lines."""
    return by_tokens([json.dumps(text) for text in texts], data_type, block_bytes)


def by_tokens(tokens, data_type, block_bytes=1 << 22):
    """What becomes of each value of JSON lines."""
    data = "".join(f'{{"k0": {token}}}\n' for token in tokens).encode()
    found = []
    for records in json_lines.records_of(data, [data_type], block_bytes):
        found += _placed(records, records.batch.column(0))
    return found


def _placed(records, array):
    found = [REFUSED] * records.count
    numbers = range(records.count) if records.numbers is None else records.numbers.to_pylist()
    for number, value in zip(numbers, shown(array), strict=True):
        found[number] = value
    return found


def by_schema(texts, data_type):
    """What becomes of the texts up to the first one that stops the run, in Avro and Parquet."""
    values = pa.array(texts, pa.string())
    try:
        records = typed_records([values], ["string"], [Column("a", data_type)], 0)
    except ObjectError as problem:
        before = values.slice(0, problem.record - 1)
        records = typed_records([before], ["string"], [Column("a", data_type)], 0)
        return [*shown(records.batch.column(0)), REFUSED]
    return shown(records.batch.column(0))


@cache
def alone(text, data_type):
    (value,) = by_csv([text], data_type)
    return value


@pytest.mark.parametrize("data_type", TYPES)
@examples(250)
@given(data=st.data())
def test_a_verdict_is_the_same_beside_any_other(data_type, data):
    texts = data.draw(st.lists(st.none() | _texts(data_type), min_size=1, max_size=8))
    expected = [alone(text, data_type) for text in texts]
    block_bytes = data.draw(st.sampled_from([1 << 22, 60, 150]))
    assert by_csv(texts, data_type, block_bytes) == expected
    assert by_json(texts, data_type, block_bytes) == expected
    stop = [*expected, REFUSED].index(REFUSED) + 1
    assert by_schema(texts, data_type) == expected[:stop]


@pytest.mark.parametrize("data_type", [kind for kind in TYPES if TYPES[kind] is None])
def test_a_time_s_verdict_is_the_same_in_every_pair(data_type):
    texts = [
        *("2024-01-05", "10000-01-01", "0044-03-15 BC", "0000-01-01", "٢٠٢٤-٠١-٠٥", "x"),
        *("2024-01-05" + hour for hour in HOURS[:8] + HOURS[9:14]),
        *("2024-01-05 10:30" + zone for zone in ZONES[:8]),
        *("2024-01-05 10" + zone for zone in ("", "Z", "+01", "+0130", "+01:30")),
    ]
    single = {text: _good(text, data_type) for text in texts}
    for first, second in itertools.permutations(dict.fromkeys(texts), 2):
        values, is_bad = convert_good(pa.array([first, second]), data_type)
        verdicts = [single[first], single[second]]
        assert shown(values) == verdicts, (first, second)
        bad = [False, False] if is_bad is None else is_bad.to_pylist()
        assert bad == [value is None for value in verdicts], (first, second)


@pytest.mark.parametrize("data_type", [kind for kind in TYPES if TYPES[kind] in (NUMBERS, WORDS)])
@examples(250)
@given(data=st.data())
def test_numbers_and_strings_of_json_do_not_judge_each_other(data_type, data):
    strings = st.sampled_from(TYPES[data_type]).map(json.dumps)
    numbers = st.sampled_from([token for token in NUMBERS if JSON_NUMBER.fullmatch(token)])
    others = st.sampled_from(["true", "false", "null", "{}", "[1]"])
    token = st.one_of(numbers, numbers, strings, others)
    tokens = data.draw(st.lists(token, min_size=1, max_size=8))
    expected = [alone_in_json(one, data_type) for one in tokens]
    assert by_tokens(tokens, data_type, data.draw(st.sampled_from([1 << 22, 60]))) == expected


@cache
def alone_in_json(token, data_type):
    (value,) = by_tokens([token], data_type)
    return value


def _good(text, data_type):
    """The value, None if the text is refused."""
    try:
        return shown(convert(pa.array([text]), data_type))[0]
    except ValueError:
        return None


def test_what_converts_beside_others_only_is_no_crash(monkeypatch):
    """Should a conversion judge by neighbours again, its verdict is one of the two."""

    def moody(text, data_type):
        if "1" in text.to_pylist() and len(set(text.to_pylist()) - {None}) > 1:
            raise ValueError
        return convert(text, data_type)

    monkeypatch.setattr(conversions, "convert", moody)
    values, is_bad = convert_good(pa.array(["1", "22", "x", None]), "int")
    assert values.type == arrow_type("int")
    assert values.to_pylist() == [1, 22, None, None]
    assert is_bad.to_pylist() == [False, False, True, False]
