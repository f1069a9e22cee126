"""The text of each type, by rule."""

from decimal import Decimal

import pyarrow as pa
import pytest

from dbt.adapters.mzs3.formats.write.csv.values import value_text

DAY = 86_400_000_000
YEAR_1 = -719_162  # 0001-01-01, in days since 1970-01-01


def text(values, kind, stored=None):
    return value_text(pa.array(values, stored or kind).cast(kind)).to_pylist()


def test_booleans_are_letters():
    assert text([True, False, None], pa.bool_()) == ["t", "f", None]


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_integers_have_all_digits(bits):
    top = 2 ** (bits - 1)
    kind = getattr(pa, f"int{bits}")()
    assert text([-top, 0, top - 1, None], kind) == [str(-top), "0", str(top - 1), None]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (float("inf"), "Infinity"),
        (-0.0, "-0"),
        (1.0, "1"),
        (0.1, "0.1"),
        (1e-4, "0.0001"),
        (9.9999e-5, "9.9999e-05"),
        (1e-5, "1e-05"),
        (-1.5e-6, "-1.5e-06"),
        (1e-7, "1e-07"),
        (5e-324, "5e-324"),
        (12345678901.5, "12345678901.5"),
        (-1e14, "-100000000000000"),
        (999999999999999.9, "999999999999999.9"),
        (1e15, "1e+15"),
        (1.5e16, "1.5e+16"),
        (1e100, "1e+100"),
    ],
)
def test_double_notation(value, expected):
    assert text([value], pa.float64()) == [expected]


@pytest.mark.parametrize(
    ("value", "expected"),
    [(999999.0, "999999"), (1e6, "1e+06"), (1234567.5, "1.2345675e+06"), (1e-5, "1e-05")],
)
def test_float_notation(value, expected):
    assert text([value], pa.float32()) == [expected]


def test_shortest_text_on_a_midpoint_gets_more_digits():
    assert text([1e23, -5e22], pa.float64()) == [
        "9.999999999999999e+22",
        "-4.9999999999999996e+22",
    ]
    assert text([3e10, -6e10], pa.float32()) == ["3.0000001e+10", "-6.0000002e+10"]


def test_float_columns_may_hold_only_nulls():
    assert text([None, None], pa.float64()) == [None, None]


def test_decimals_keep_their_scale_and_have_no_exponent():
    values = [Decimal("1.5"), Decimal("1e-18"), Decimal("-1e-17"), Decimal(0), None]
    assert text(values, pa.decimal128(38, 18)) == [
        "1.500000000000000000",
        "0.000000000000000001",
        "-0.000000000000000010",
        "0.000000000000000000",
        None,
    ]


def test_decimals_of_full_scale_begin_with_a_zero():
    assert text([Decimal("-1e-38")], pa.decimal128(38, 38)) == ["-0." + "0" * 37 + "1"]


def test_decimals_without_scale_have_no_point():
    assert text([Decimal(10**37)], pa.decimal128(38, 0)) == ["1" + "0" * 37]


def test_binary_is_hexadecimal():
    assert text([b"\x00\xff", b"", None], pa.binary()) == ["\\x00ff", "\\x", None]


def test_dates_have_four_digit_years_or_more():
    days = [YEAR_1, 0, 2_932_896, 2_932_897, None]
    assert text(days, pa.date32(), pa.int32()) == [
        "0001-01-01",
        "1970-01-01",
        "9999-12-31",
        "10000-01-01",
        None,
    ]


def test_dates_before_year_one_are_before_christ():
    days = [YEAR_1 - 1, YEAR_1 - 366, YEAR_1 - 367, -735_160]
    assert text(days, pa.date32(), pa.int32()) == [
        "0001-12-31 BC",
        "0001-01-01 BC",
        "0002-12-31 BC",
        "0044-03-15 BC",
    ]


def test_all_days_of_the_type_have_a_text():
    days = [-(2**31), 2**31 - 1]
    assert text(days, pa.date32(), pa.int32()) == ["5877642-06-23 BC", "5881580-07-11"]


def test_timestamps_have_no_zone_and_no_trailing_zeros():
    micros = [0, 1_500_000, 120, -1, None]
    assert text(micros, pa.timestamp("us"), pa.int64()) == [
        "1970-01-01 00:00:00",
        "1970-01-01 00:00:01.5",
        "1970-01-01 00:00:00.00012",
        "1969-12-31 23:59:59.999999",
        None,
    ]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York", "+05:30"])
def test_instants_are_in_utc_whatever_their_zone(zone):
    assert text([1_500_000], pa.timestamp("us", zone), pa.int64()) == ["1970-01-01 00:00:01.5+00"]


def test_the_era_comes_after_the_offset():
    kind = pa.timestamp("us", "UTC")
    assert text([YEAR_1 * DAY - 1], kind, pa.int64()) == ["0001-12-31 23:59:59.999999+00 BC"]


def test_all_instants_of_the_type_have_a_text():
    kind = pa.timestamp("us", "UTC")
    assert text([-(2**63), 2**63 - 1], kind, pa.int64()) == [
        "290309-12-21 19:59:05.224192+00 BC",
        "294247-01-10 04:00:54.775807+00",
    ]


def test_times_have_no_trailing_zeros():
    nanos = [0, 5_000_000_000, 86_399_999_999_000, None]
    assert text(nanos, pa.time64("ns"), pa.int64()) == [
        "00:00:00",
        "00:00:05",
        "23:59:59.999999",
        None,
    ]


def test_void_is_null():
    assert text([None], pa.null()) == [None]


def test_array_elements_are_quoted_where_they_would_be_read_otherwise():
    elements = ["a", None, "", "null", "NULL", "nulls", "a b", 'q"', "b\\", "{", "a,b", "\v", "é"]
    expected = r'{a,NULL,"","null","NULL",nulls,"a b","q\"","b\\","{","a,b","' + '\v",é}'
    assert text([elements, None, []], pa.list_(pa.string())) == [expected, None, "{}"]


def test_array_elements_are_written_by_their_type():
    assert text([[True, None]], pa.list_(pa.bool_())) == ["{t,NULL}"]
    assert text([[1e15, 0.5]], pa.list_(pa.float64())) == ["{1e+15,0.5}"]
    assert text([[b"\xff"]], pa.list_(pa.binary())) == [r'{"\\xff"}']
    instants = pa.list_(pa.timestamp("us", "UTC"))
    assert text([[0]], instants, pa.list_(pa.int64())) == ['{"1970-01-01 00:00:00+00"}']


def test_nested_arrays_are_not_quoted():
    kind = pa.list_(pa.list_(pa.string()))
    assert text([[["a", ""], ["b", None]]], kind) == ['{{a,""},{b,NULL}}']


def test_nested_arrays_may_be_ragged():
    assert text([[[1], [], None, [2, 3]]], pa.list_(pa.list_(pa.int32()))) == [
        "{{1},{},NULL,{2,3}}"
    ]


def test_wide_lists_and_wide_texts_are_the_same():
    kind = pa.large_list(pa.large_string())
    assert text([["a", ""], None], kind) == ['{a,""}', None]
