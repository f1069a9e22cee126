"""The text of intervals, variants, structs and maps, by rule, and of what is nested in them."""

import pyarrow as pa
import pytest

from dbt.adapters.mzs3.formats.write.csv.values import value_text
from dbt.adapters.mzs3.formats.write.format import PLAIN, LogicalType

HOUR = 3_600_000_000
INTERVAL_TYPE = pa.struct([("months", pa.int32()), ("days", pa.int32()), ("micros", pa.int64())])
INTERVAL = LogicalType("interval")
MAP = LogicalType("map", (PLAIN, PLAIN))


def map_of(key, value):
    return pa.list_(pa.struct([("key", key), ("value", value)]))


def maps(values, key, value, logical_type=MAP):
    entries = [
        None if map is None else [{"key": k, "value": v} for k, v in map.items()] for map in values
    ]
    return value_text(pa.array(entries, map_of(key, value)), logical_type).to_pylist()


@pytest.mark.parametrize(
    ("months", "days", "micros", "expected"),
    [
        (0, 0, 0, "00:00:00"),
        (14, 3, 14_706_789_000, "1 year 2 mons 3 days 04:05:06.789"),
        (24, 0, 0, "2 years"),
        (1, 1, 1, "1 mon 1 day 00:00:00.000001"),
        (-1, -1, -1, "-1 mons -1 days -00:00:00.000001"),
        (-12, 2, -14_706_000_000, "-1 years +2 days -04:05:06"),
        (-14, 0, HOUR, "-1 years -2 mons +01:00:00"),
        (0, -1, HOUR, "-1 days +01:00:00"),
        (-12, 1, HOUR, "-1 years +1 day 01:00:00"),
        (0, 0, 36 * HOUR, "36:00:00"),
        (0, 0, -100 * HOUR, "-100:00:00"),
        (
            -(2**31),
            -(2**31),
            -(2**63),
            "-178956970 years -8 mons -2147483648 days -2562047788:00:54.775808",
        ),
    ],
)
def test_intervals_are_written_part_by_part(months, days, micros, expected):
    value = {"months": months, "days": days, "micros": micros}
    texts = value_text(pa.array([None, value], INTERVAL_TYPE), INTERVAL)
    assert texts.to_pylist() == [None, expected]


def test_a_variant_is_its_json():
    texts = ['{"a":1}', "null", None]
    assert value_text(pa.array(texts), LogicalType("variant")).to_pylist() == texts


def test_fields_are_quoted_where_they_would_be_read_otherwise():
    words = ["a", None, "", "NULL", "a b", 'q"', "b\\", "(", ")", "a,b", "\v", "{}", "é"]
    kind = pa.struct([(str(i), pa.string()) for i in range(len(words))])
    record = {str(i): word for i, word in enumerate(words)}
    expected = r'(a,,"",NULL,"a b","q""","b\\","(",")","a,b","' + '\v",{},é)'
    assert value_text(pa.array([record, None], kind)).to_pylist() == [expected, None]


def test_a_struct_of_nulls_is_no_null():
    kind = pa.struct([("a", pa.int32()), ("b", pa.int32())])
    values = [{"a": None, "b": None}, None]
    assert value_text(pa.array(values, kind)).to_pylist() == ["(,)", None]


def test_values_under_a_null_struct_are_not_seen():
    fields = [pa.array(["hidden", "b c"]), pa.array([1, 2])]
    records = pa.StructArray.from_arrays(fields, ["a", "b"], mask=pa.array([True, False]))
    assert value_text(records).to_pylist() == [None, '("b c",2)']


def test_structs_without_fields():
    assert value_text(pa.array([{}, None], pa.struct([]))).to_pylist() == ["()", None]


def test_records_nest_by_quoting():
    inner = pa.struct([("a", pa.int32()), ("b", pa.string())])
    kind = pa.list_(pa.struct([("r", inner), ("l", pa.list_(inner))]))
    record = {"a": 1, "b": "x y"}
    texts = value_text(pa.array([[{"r": record, "l": [record, None]}, None]], kind))
    assert texts.to_pylist() == [
        r'{"(\"(1,\"\"x y\"\")\",\"{\"\"(1,\\\\\"\"x y\\\\\"\")\"\",NULL}\")",NULL}'
    ]


def test_map_keys_and_values_are_quoted_where_they_would_be_read_otherwise():
    entries = {"a": "b", "": "", "null": "NULL", "x y": "=", ">": ",", "{": 'q"\\', "n": None}
    expected = r'{a=>b,""=>"","null"=>"NULL","x y"=>"=",">"=>",","{"=>"q\"\\",n=>NULL}'
    assert maps([entries, {}, None], pa.string(), pa.string()) == [expected, "{}", None]


def test_maps_and_arrays_in_maps_and_arrays_are_not_quoted():
    words = pa.list_(pa.string())
    logical_type = LogicalType("map", (PLAIN, LogicalType("list", (PLAIN,))))
    assert maps([{1: ["a", "b=c"], 2: None}], pa.int32(), words, logical_type) == [
        "{1=>{a,b=c},2=>NULL}"
    ]
    kind = pa.list_(map_of(pa.int32(), pa.int32()))
    values = pa.array([[[{"key": 1, "value": 2}], None, []]], kind)
    assert value_text(values, LogicalType("list", (MAP,))).to_pylist() == ["{{1=>2},NULL,{}}"]


def test_intervals_and_maps_in_records_are_quoted():
    kind = pa.struct([("i", INTERVAL_TYPE), ("m", map_of(pa.string(), pa.int32()))])
    value = {
        "i": {"months": 0, "days": 1, "micros": 0},
        "m": [{"key": "a", "value": 1}, {"key": "b", "value": 2}],
    }
    logical_type = LogicalType("struct", (INTERVAL, MAP))
    assert value_text(pa.array([value], kind), logical_type).to_pylist() == [
        '("1 day","{a=>1,b=>2}")'
    ]


def test_slices_are_written_as_wholes_are():
    kind = pa.list_(pa.struct([("a", INTERVAL_TYPE), ("b", map_of(pa.int32(), pa.string()))]))
    logical_type = LogicalType("list", (LogicalType("struct", (INTERVAL, MAP)),))
    values = [
        None
        if i % 4 == 3
        else [{"a": {"months": i, "days": -i, "micros": i}, "b": [{"key": i, "value": "x"}]}] * i
        for i in range(9)
    ]
    whole = pa.array(values, kind)
    texts = value_text(whole, logical_type).to_pylist()
    for start in range(9):
        for end in range(start, 10):
            part = value_text(whole.slice(start, end - start), logical_type)
            assert part.to_pylist() == texts[start:end]
