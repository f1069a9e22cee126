"""Values that have a type, as those of a source's columns: the same ones, or an error."""

import re
from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.mzs3.formats.read.columns import Column
from dbt.adapters.mzs3.formats.read.format import RecordField
from dbt.adapters.mzs3.formats.read.object_error import HeaderProblem, ObjectError
from dbt.adapters.mzs3.formats.read.typed import (
    can_be_read_as,
    convert_typed,
    misfits,
    own_type,
    typed_layout,
    typed_records,
)
from dbt.adapters.mzs3.types.table import arrow_type

UTC = timezone.utc
D = Decimal
TYPES = (
    "string",
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "decimal(5,2)",
    "date",
    "timestamp",
    "timestamp_ntz",
    "binary",
)
OWN = {
    pa.null(): "void",
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.uint8(): "smallint",
    pa.int16(): "smallint",
    pa.uint16(): "int",
    pa.int32(): "int",
    pa.uint32(): "bigint",
    pa.int64(): "bigint",
    pa.uint64(): "decimal(20,0)",
    pa.float16(): "float",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.decimal128(12, 2): "decimal(12,2)",
    pa.decimal256(38, 38): "decimal(38,38)",
    pa.decimal256(39, 0): None,
    pa.decimal128(5, -2): None,
    pa.date32(): "date",
    pa.date64(): "date",
    pa.timestamp("s"): "timestamp_ntz",
    pa.timestamp("ns", tz="Europe/Paris"): "timestamp",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.dictionary(pa.int32(), pa.string()): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.binary(3): "binary",
    pa.time32("s"): None,
    pa.duration("s"): None,
    pa.list_(pa.int8()): None,
    pa.struct([("a", pa.int8())]): None,
    pa.map_(pa.string(), pa.int8()): None,
}


@pytest.mark.parametrize("kind", OWN, ids=str)
def test_the_type_of_just_the_same_values(kind):
    own = own_type(kind)
    assert own == OWN[kind]
    # Whatever is said to be possible is: none is not implemented.
    for wanted in TYPES:
        if can_be_read_as(own, wanted):
            nothing = convert_typed(pa.nulls(3, kind), own, wanted)
            assert nothing.type == arrow_type(wanted)
            assert nothing.null_count == len(nothing) == 3


def test_what_can_be_read_as_what():
    table = {own: [t for t in TYPES if can_be_read_as(own, t)] for own in ("void", *TYPES)}
    integers = ["tinyint", "smallint", "int", "bigint"]
    number = [*integers, "float", "double", "decimal(5,2)"]
    assert table == {
        "void": list(TYPES),
        "string": list(TYPES),
        "boolean": ["boolean"],
        **dict.fromkeys(integers, number),
        "float": ["float", "double"],
        "double": ["double"],
        "decimal(5,2)": [*integers, "decimal(5,2)"],
        "date": ["date"],
        "timestamp": ["timestamp"],
        "timestamp_ntz": ["timestamp", "timestamp_ntz"],
        "binary": ["string", "binary"],
    }
    assert can_be_read_as("decimal(12,2)", "decimal(5,2)")
    assert not can_be_read_as(None, "string")


@pytest.mark.parametrize(
    ("values", "wanted", "read"),
    [
        (pa.array([1, None, -128], pa.int64()), "tinyint", [1, None, -128]),
        (pa.array([2**63 - 1], pa.int64()), "decimal(38,19)", [D(2**63 - 1)]),
        (pa.array([2**64 - 1], pa.uint64()), "decimal(20,0)", [D(2**64 - 1)]),
        (pa.array([2**53], pa.int64()), "double", [2.0**53]),
        (pa.array([1.5, float("nan")], pa.float16()), "float", [1.5, float("nan")]),
        (pa.array([0.1], pa.float32()), "double", [0.10000000149011612]),
        (pa.array([D("12.00")], pa.decimal128(12, 2)), "int", [12]),
        (pa.array([D("12.50")], pa.decimal128(12, 2)), "decimal(3,1)", [D("12.5")]),
        (pa.array([D("9" * 38)], pa.decimal128(38, 0)), "decimal(38,0)", [D("9" * 38)]),
        (pa.array([b"\xc3\xa9", None]), "string", ["é", None]),
        (pa.array([b"\xff"], pa.binary(1)), "binary", [b"\xff"]),
        (pa.array(["a", None]).dictionary_encode(), "string", ["a", None]),
        (pa.array([" 12 ", None, "+3"]), "int", [12, None, 3]),
        (pa.array(["2024-02-29"]), "date", [date(2024, 2, 29)]),
        (pa.array(["t", "no"]), "boolean", [True, False]),
        (pa.array([86_400_000], pa.date64()), "date", [date(1970, 1, 2)]),
        (pa.array([5], pa.timestamp("s")), "timestamp_ntz", [datetime(1970, 1, 1, 0, 0, 5)]),
        (
            pa.array([5], pa.timestamp("ms")),
            "timestamp",
            [datetime(1970, 1, 1, 0, 0, 0, 5000, UTC)],
        ),
        (
            pa.array([5000], pa.timestamp("ns", tz="Asia/Tokyo")),
            "timestamp",
            [datetime(1970, 1, 1, 0, 0, 0, 5, UTC)],
        ),
    ],
)  # fmt: skip
def test_values_stay_what_they_are(values, wanted, read):
    own = own_type(values.type)
    assert can_be_read_as(own, wanted)
    found = convert_typed(values, own, wanted)
    assert found.type == arrow_type(wanted)
    assert str(found.to_pylist()) == str(pa.array(read, found.type).to_pylist())


@pytest.mark.parametrize(
    ("value", "kind", "wanted", "says"),
    [
        (300, pa.int64(), "tinyint", "300 is not a tinyint"),
        (2**31, pa.uint32(), "int", "2147483648 is not an int"),
        (1000, pa.int16(), "decimal(5,2)", "1000 is not a decimal(5,2)"),
        (2**53 + 1, pa.int64(), "double", "9007199254740993 is not a double"),
        (D("1.25"), pa.decimal128(5, 2), "decimal(5,1)", "1.25 is not a decimal(5,1)"),
        (D("1.25"), pa.decimal128(5, 2), "int", "1.25 is not an int"),
        (D(10**19), pa.decimal128(38, 0), "bigint", f"{10**19} is not a bigint"),
        (D("9" * 38), pa.decimal128(38, 0), "decimal(38,10)",
         f"{'9' * 38} is not a decimal(38,10)"),
        ("x", pa.string(), "int", "'x' is not an int"),
        ("x\ny", pa.large_string(), "date", r"'x\ny' is not a date"),
        (b"\xff", pa.binary(), "string", r"b'\xff' is not a string"),
        (86_400_001, pa.date64(), "date", "1970-01-02 00:00:00.001 is not a date"),
        (1, pa.timestamp("ns"), "timestamp_ntz",
         "1970-01-01 00:00:00.000000001 is not a timestamp_ntz"),
        (2**62, pa.timestamp("s", tz="No/where"), "timestamp",
         f"{2**62} s since 1970 is not a timestamp"),
        ("x", pa.dictionary(pa.int8(), pa.string()), "int", "'x' is not an int"),
    ],
)  # fmt: skip
def test_a_value_that_would_not_be_the_same_is_an_error(value, kind, wanted, says):
    values = pa.array([None, value, None, value], kind)
    with pytest.raises(ObjectError) as raised:
        typed_records([values], [str(own_type(kind))], [Column("b", wanted)], 10)
    assert raised.value.record == 12
    assert raised.value.problem.startswith("column b: ")
    assert raised.value.problem.endswith(says)


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        *((n * 10**p, pa.timestamp(u, tz=tz))
          for n in (1, -1) for p, u in ((16, "s"), (16, "ms"), (18, "ms"))
          for tz in (None, "UTC", "Asia/Tokyo")),
        *((end, pa.timestamp("ms", tz=tz)) for end in (2**63 - 1, -(2**63), 9_223_372_036_854_776)
          for tz in (None, "UTC")),
        *((end, pa.date64()) for end in (2**63 - 1, -(2**63), -62_135_596_800_001)),
        (253_402_300_800_001, pa.date64()),
    ],
)  # fmt: skip
def test_a_time_that_pyarrow_has_no_text_of_is_shown_as_its_number(number, kind):
    """Of some it makes a text, which is another time's."""
    unit = getattr(kind, "unit", "ms")
    values = pa.array([number], pa.int64()).view(kind)
    own = str(own_type(kind))
    with pytest.raises(ObjectError) as raised:
        typed_records([values], [own], [Column("b", own)], 0)
    says = f"column b: {number} {unit} since 1970 is not a {own}"
    assert raised.value.problem == says


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (-62_135_596_800_000 + 1, "0001-01-01 00:00:00.001"),
        (253_402_300_800_000 - 1, "9999-12-31 23:59:59.999"),
    ],
)
def test_a_time_of_the_first_and_the_last_year_is_shown_as_such(number, text):
    values = pa.array([number], pa.int64()).view(pa.date64())
    with pytest.raises(ObjectError, match=re.escape(f"column b: {text} is not a date")):
        typed_records([values], ["date"], [Column("b", "date")], 0)


@given(
    first=st.lists(st.integers(-200, 200), min_size=1, max_size=40),
    second=st.lists(st.integers(-200, 200), min_size=1, max_size=40),
)
def test_the_first_record_with_such_a_value_is_named(first, second):
    length = min(len(first), len(second))
    columns = (Column("a", "tinyint"), Column("b", "tinyint"))
    values = [pa.array(one[:length], pa.int64()) for one in (first, second)]
    bad = [
        (record, name)
        for record in range(length)
        for name, one in (("a", first), ("b", second))
        if not -128 <= one[record] <= 127
    ]
    try:
        read = typed_records(values, ["bigint", "bigint"], columns, 0)
    except ObjectError as problem:
        record, name = bad[0]
        assert problem.record == record + 1
        assert problem.problem.startswith(f"column {name}: ")
    else:
        assert not bad
        assert read.batch.to_pydict() == {"a": first[:length], "b": second[:length]}


def test_a_file_that_lies_about_its_strings_and_decimals():
    offsets = pa.py_buffer((0).to_bytes(4, "little") + (2).to_bytes(4, "little"))
    text = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"a\xff")])
    with pytest.raises(ValueError):
        convert_typed(text, "string", "string")
    number = pa.py_buffer((12345).to_bytes(16, "little"))
    decimal = pa.Array.from_buffers(pa.decimal128(3, 2), 1, [None, number])
    with pytest.raises(ValueError):
        convert_typed(decimal, "decimal(3,2)", "decimal(3,2)")
    with pytest.raises(ObjectError) as raised:
        typed_records([text], ["string"], [Column("a", "string")], 0)
    assert raised.value.problem == r"column a: b'a\xff' is not a string"


FIELDS = (
    RecordField("id", "int64", "bigint"),
    RecordField("tags", "list", None),
    RecordField("n", "bool", "boolean"),
)


def test_fields_go_to_columns_by_the_header_match():
    one = (Column("a", "int"),)
    assert typed_layout(FIELDS, ("id",), one, "subset").fields == (0,)
    two = (Column("a", "boolean"), Column("b", "int"))
    found = (FIELDS[0], FIELDS[2])
    assert typed_layout(found, ("n", "id"), two, "reorder").fields == (1, 0)
    with pytest.raises(HeaderProblem) as raised:
        typed_layout(found, ("n", "id"), two, "exact")
    assert raised.value.problem == (
        "header is id,n but the source's header is n,id: first difference at column 1, 'id' "
        "instead of 'n'"
    )


def test_fields_of_other_types_are_a_header_mismatch_all_named():
    columns = (Column("a", "boolean"), Column("b", "string"), Column("c", "boolean"))
    expected = [
        "'id' is int64, which can't be read as boolean",
        "'tags' is list, which no column can be",
    ]
    assert misfits(FIELDS, columns) == expected
    with pytest.raises(HeaderProblem) as raised:
        typed_layout(FIELDS, ("id", "tags", "n"), columns, "exact")
    assert raised.value.problem == f"its fields are not as declared: {'; '.join(expected)}"


def test_a_field_that_was_added_may_be_missing():
    columns = (
        Column("id", "bigint"),
        Column("x", is_added=True),
        Column("n", "boolean", is_added=True),
    )
    layout = typed_layout((FIELDS[0], FIELDS[2]), ("id", "x", "n"), columns, "exact")
    assert (layout.fields, layout.missing) == ((0, 1), (1,))
    values = layout.with_missing(
        [pa.array([1]), pa.array([True])], [pa.int64(), pa.string(), pa.bool_()]
    )
    assert [array.to_pylist() for array in values] == [[1], [None], [True]]
