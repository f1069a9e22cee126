"""Dates and timestamps: PostgreSQL's text to days and microseconds."""

import datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.source.fields import decode_one, problem_of

from dbt.adapters.mzs3.formats.read.convert import to_timestamp, to_timestamp_at_once
from dbt.adapters.mzs3.types.table import arrow_type

DAY_US = 86_400_000_000
UTC = datetime.timezone.utc
EPOCH = datetime.datetime(1970, 1, 1)


def days(*lines: str) -> list[int]:
    return decode_one(_data(lines), "date").cast(pa.int32()).to_pylist()


def microseconds(data_type: str, *lines: str) -> list[int]:
    return decode_one(_data(lines), data_type).cast(pa.int64()).to_pylist()


def _data(lines: tuple[str, ...]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def us(value: datetime.datetime) -> int:
    return (value - EPOCH) // datetime.timedelta(microseconds=1)


@given(st.lists(st.dates(), min_size=1, max_size=20))
def test_dates_of_four_digit_years(column):
    expected = [(value - EPOCH.date()).days for value in column]
    assert days(*(value.isoformat() for value in column)) == expected


# Days counted by PostgreSQL: select '…'::date - '1970-01-01'.
@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("10000-01-01", 2932897),
        ("0001-12-31 BC", -719163),
        ("0001-02-29 BC", -719469),
        ("4714-11-24 BC", -2440588),
        ("12345-06-07", 3789548),
    ],
)
def test_dates_beyond_four_digit_years(text, day):
    assert days("1970-01-02", text, text, "") == [1, day, day, None]


@given(st.dates(min_value=datetime.date(1600, 1, 1)), st.integers(1, 100))
def test_the_calendar_repeats_every_400_years(date, cycles):
    (base,) = days(date.isoformat())
    year = date.year + 400 * (20 + cycles)
    assert days(f"{year}-{date:%m-%d}") == [base + 146_097 * (20 + cycles)]


@pytest.mark.parametrize(
    "text",
    ["2020-02-30", "2021-02-29", "20200101", "2020-1-1", "infinity", "10001-02-29", "10000-13-01",
     "10000-00-01", "0000-01-01 BC", "2020-01-01 00:00:00", "9999999-01-01", "10000-01-01 00:00"],
)  # fmt: skip
def test_what_is_no_date(text):
    line, byte, problem = problem_of(_data(("2020-01-01", text)), "date")
    assert (line, byte) == (2, 11)
    assert problem == f"column c1: {text!r} is not a date"


@pytest.mark.parametrize(
    ("text", "data_type"),
    [("0000-01-01", "date"), ("0000-12-31", "date"), (" 0000-01-01", "date"),
     ("00000-01-01", "date"), ("0000-01-01", "timestamp"), ("0000-12-31 23:59:59", "timestamp"),
     ("0000-12-31 23:00:00-05", "timestamp"), ("0000-01-01 00:00:00+00", "timestamp"),
     ("0000-01-01 00:00:00", "timestamp_ntz"), ("0000-01-01 00:00:00 BC", "timestamp_ntz")],
)  # fmt: skip
@pytest.mark.parametrize("before", ["2020-01-01", "0001-01-01", "0001-12-31 BC"])
def test_there_is_no_year_0(text, data_type, before):
    line, _, problem = problem_of(_data((before, text)), data_type)
    assert line == 2
    assert problem == f"column c1: {text!r} is not a {data_type}"


def test_a_zone_may_lead_from_year_1_to_the_year_before():
    found = microseconds("timestamp", "0001-01-01 00:00:00+05", "0001-01-01 00:00:00")
    assert found == [-719162 * DAY_US - 5 * 3_600_000_000, -719162 * DAY_US]


@given(
    st.lists(st.tuples(st.datetimes(), st.sampled_from(["", "Z", "+00", "+05:30", "-0800"]))
             , min_size=1, max_size=20)
)  # fmt: skip
def test_instants_with_and_without_zones(column):
    offsets = {"": 0, "Z": 0, "+00": 0, "+05:30": 330, "-0800": -480}
    lines = [f"{value.isoformat(' ')}{zone}" for value, zone in column]
    expected = [us(value) - offsets[zone] * 60_000_000 for value, zone in column]
    assert microseconds("timestamp", *lines) == expected


@given(st.lists(st.datetimes(), min_size=1, max_size=20), st.sampled_from([" ", "T"]))
def test_local_timestamps(column, separator):
    lines = [value.isoformat(separator) for value in column]
    assert microseconds("timestamp_ntz", *lines) == [us(value) for value in column]


def test_fractions_have_as_many_digits_as_they_need():
    found = microseconds("timestamp", "1970-01-01 00:00:00.5", "1970-01-01 00:00:00.000012+00")
    assert found == [500_000, 12]


@pytest.mark.parametrize("zone", ["", "Z", "+01", "-01:30"])
def test_nanoseconds_that_are_zeros_are_read_at_once(zone):
    """As the writers that write them write all values so."""
    texts = [f"2024-01-05 10:30:15.{'123456000'[:digits]}{zone}" for digits in (9, 8, 6, 3)]
    text = pa.array([None, *texts])
    kind = arrow_type("timestamp")
    assert to_timestamp_at_once(text, kind).equals(to_timestamp(text, kind))
    with pytest.raises(ValueError):
        to_timestamp_at_once(pa.array([*texts, f"2024-01-05 10:30:15.123456001{zone}"]), kind)


def test_timestamps_beyond_four_digit_years():
    found = microseconds(
        "timestamp", "10000-01-01 00:00:00.25+01", "0001-12-31 23:59:59 BC", "1970-01-01"
    )
    assert found == [2932897 * DAY_US + 250_000 - 3_600_000_000, -719163 * DAY_US + DAY_US - 10**6
                     , 0]  # fmt: skip
    assert microseconds("timestamp_ntz", "10000-01-01 00:00:00") == [2932897 * DAY_US]


@pytest.mark.parametrize(
    "text",
    ["2020-01-01 24:00:00", "2020-01-01 00:60:00", "2020-01-01 00:00:00.1234567", "now",
     "infinity", "2020-01-01 00:00:00+25", "2020-01-01 00:00:00+05:30:10", "10000-01-01 24:00:00",
     "10000-01-01 00:00:00+25", "999999-01-01 00:00:00", "2020-02-30 00:00:00+00"],
)  # fmt: skip
@pytest.mark.parametrize("before", ["2020-01-01 00:00:00", "2020-01-01 00:00:00+00"])
def test_what_is_no_instant(text, before):
    line, _, problem = problem_of(_data((before, text)), "timestamp")
    assert line == 2
    assert problem == f"column c1: {text!r} is not a timestamp"


@pytest.mark.parametrize("text", ["2020-01-01 00:00:00+00", "10000-01-01 00:00:00Z"])
def test_a_zone_is_refused_where_the_type_has_none(text):
    line, _, problem = problem_of(_data(("2020-01-01 00:00:00", text)), "timestamp_ntz")
    assert line == 2
    assert problem == f"column c1: {text!r} is not a timestamp_ntz"
