"""Values of JSON lines: each is what its column's type has of it, or a problem with its place."""

import math
from datetime import date, datetime, timezone
from decimal import Decimal

import pytest
from support.s3.stored_objects import problem_of
from support.source.json_lines import as_bits, read_records

from dbt.adapters.mzs3.formats.read.format import Reading
from dbt.adapters.mzs3.formats.read.jsonl import JsonLinesFormat

FORM = JsonLinesFormat("by_suffix", Reading())


WRONG = {
    b'{"k0":1,"k1":"x"}': (None, "the record has other keys than the header: 'k1' is not one of "
                           "them"),
    b"{}": (None, "the record has other keys than the header: 'k0' is missing"),
    b'{"k0":1,"k\\u0030":1}': (None, "the record has other keys than the header: 'k0' is there 2 "
                               "times"),
    b"[1]": (None, "the line is not a JSON object, which a line has from { to }: '[1]'"),
    b'{"k0":1} {"k0":2}': (None, "the line is not valid JSON from character 10 on: "
                           "'{\"k0\":2}'"),
    b'{"k0":1,}': (None, "the line is not valid JSON from character 9 on: '}'"),
    b'{"k0" 1}': (None, "the line is not valid JSON from character 6 on: '1}'"),
    b'{"k0":01}': (None, "the line is not valid JSON from character 8 on: '1}'"),
    b'{"k0":': (None, "the line is not valid JSON: it ends early"),
    b'{"k0":1': (None, "the line is not valid JSON: it ends early"),
    b"{": (None, "the line is not valid JSON: it ends early"),
    b'{"k0":NaN}': (None, "the line has NaN, which is not JSON"),
    b'{"k0":-Infinity}': (None, "the line has -Infinity, which is not JSON"),
    b'{"k0":"\xff"}': (None, "the line is not valid UTF-8: byte 0xff"),
    b'{"k0":"\\ud83d!"}': (None, "the line has half of a surrogate pair, \\ud83d"),
    b'{"k0":"\\ude00"}': (None, "the line has half of a surrogate pair, \\ude00"),
    b'{"k0":' + b"[" * 100_000 + b"]" * 100_000 + b"}": (
        None, "the line is nested too deeply to be read"
    ),
    b'{"k0":1.0}': ("c0", "column c0: 1.0 is not a bigint"),
    b'{"k0":9223372036854775808}': ("c0", "column c0: 9223372036854775808 is not a bigint"),
    b'{"k0":"x"}': ("c0", "column c0: 'x' is not a bigint"),
    b'{"k0":true}': ("c0", "column c0: true is not a bigint"),
    b'{"k0":{"a":1}}': ("c0", 'column c0: {"a":1} is not a bigint'),
}  # fmt: skip


@pytest.mark.parametrize("line", WRONG, ids=range(len(WRONG)))
def test_a_bad_record_is_told_with_its_place(line):
    good = b'{"k0":1}\n'
    data = b"\n" + good + line + b"\n" + good
    problem = problem_of(FORM, data, {"c0": "bigint"}, ("k0",))
    column, error = WRONG[line]
    assert (problem.problem, problem.place) == (error, f"line 3, byte {len(good) + 1}")
    advice = "Correct the object or remove it, then run again"
    if column is not None:
        advice += "; or declare another data_type for the column"
    elif "is missing" in error:
        advice += "; or set missing_columns: null"
    assert problem.advice == advice
    rows, rejects = read_records(b"\n" + good + line + b"\r\n" + good, ["bigint"])
    assert rows == {1: (1,), 3: (1,)}
    one = rejects[2]
    assert (one.line, one.byte, one.column, one.error) == (3, len(good) + 1, column, error)
    assert one.raw == line.decode("utf-8", "backslashreplace")


def test_of_several_bad_values_the_first_column_is_told():
    _, rejects = read_records(b'{"k1":[],"k0":"x"}\n{"k1":"y","k0":1}', ["int", "date"])
    assert [(one.column, one.error) for one in rejects.values()] == [
        ("c0", "column c0: 'x' is not an int"),
        ("c1", "column c1: 'y' is not a date"),
    ]


NOT_READ = {
    "string": ["5", "true"],
    "boolean": ["1", "0", "[]"],
    "bigint": ["1e3", "1.0", "false", "{}"],
    "decimal(4,2)": ["123", "1.234", "1e400", "true"],
    # What pyarrow's own decimals would read as others, or crash on.
    "decimal(38,18)": [
        *("400000000000000000000", "4e20", '"4e20"', '"4\\u006520"', f"4{'0' * 75}"),
        *("1e-2147483600", '"1e-2147483600"', '"1\\u0065-2147483600"', '"1e\\u002d2147483600"'),
    ],
    "float": ["1e39", "1e-50"],
    "double": ["1e400", "-1e400", "1e-400", f"0.{'0' * 400}1"],
    "date": ["20240229", '"20240229"', "1.5"],
    "timestamp": ["1709210000"],
    "binary": ["5"],
}


@pytest.mark.parametrize("data_type", NOT_READ)
def test_what_a_type_can_not_hold_is_an_error(data_type):
    for text in NOT_READ[data_type]:
        # With a good value beside it, which the chunk's other records have.
        _, rejects = read_records(b'{"k0":%s}\n{"k0":null}' % text.encode(), [data_type])
        assert [one.column for one in rejects.values()] == ["c0"], text


READ = {
    "string": {'"\\u0000 é"': "\0 é", '"5"': "5", '[1, "\\u00e9"]': '[1, "\\u00e9"]'},
    "boolean": {"true": True, '"f"': False},
    "bigint": {"-9223372036854775808": -(2**63), '" +7 "': 7, "-0": 0},
    "decimal(38,2)": {
        "123456789012345678901234567890123456.78": Decimal(
            "123456789012345678901234567890123456.78"
        ),
        "400000000000000000000": Decimal("400000000000000000000.00"),
        "1e2": Decimal("100.00"),
        '"1.500"': Decimal("1.50"),
    },
    "float": {"16777217": 16777216.0, '"NaN"': math.nan, "3.4e38": 3.3999999521443642e38},
    "double": {"0.1": 0.1, '"-Infinity"': -math.inf, "5e-324": 5e-324, "0e-400": 0.0},
    "date": {'"2024-02-29"': date(2024, 2, 29)},
    "timestamp": {
        '"2024-02-29T12:30:00+02:00"': datetime(2024, 2, 29, 10, 30, tzinfo=timezone.utc)
    },
    "binary": {'"\\\\x00ff"': b"\0\xff"},
}


@pytest.mark.parametrize("data_type", READ)
def test_values_are_exact(data_type):
    for text, value in READ[data_type].items():
        good, _ = read_records(b'{"k0":%s}' % text.encode(), [data_type])
        assert as_bits(good.values()) == as_bits([(value,)]), text
