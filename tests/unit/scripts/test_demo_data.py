import csv
import io

import demo_data
import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def contents():
    return dict(demo_data.csv_objects())


@pytest.fixture(scope="module")
def tables(contents):
    return {
        key: list(csv.reader(io.StringIO(content.decode()))) for key, content in contents.items()
    }


def test_flights_are_one_object_per_month(tables):
    flights = [key for key in tables if key.startswith("flights/")]
    assert flights == [f"flights/2013-{month:02}.csv" for month in range(1, 13)]
    assert len({tuple(tables[key][0]) for key in flights}) == 1
    assert sum(len(tables[key]) - 1 for key in flights) == 336_776


def test_each_row_is_in_the_object_of_its_month(tables):
    for key, (header, *rows) in tables.items():
        if key.startswith("flights/"):
            month = header.index("month")
            assert {int(row[month]) for row in rows} == {int(key[-6:-4])}


def test_null_is_an_empty_field(tables):
    values = {value for rows in tables.values() for row in rows for value in row}
    assert "NA" not in values
    header, *rows = tables["weather/weather.csv"]
    gust = header.index("wind_gust")
    assert sum(row[gust] == "" for row in rows) == 20_778


def test_rows_are_lines(contents, tables):
    assert {key: content.count(b"\n") for key, content in contents.items()} == {
        key: len(rows) for key, rows in tables.items()
    }
