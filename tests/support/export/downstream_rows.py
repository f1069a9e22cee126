"""Rows of every type that readers downstream have a type for, and how each of them names it."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta, timezone
from decimal import Decimal
from random import Random
from typing import Any

Make = Callable[[Random], Any]
Row = Mapping[str, Any]
UTC = timezone.utc
EPOCH = datetime(1970, 1, 1)
MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Column:
    """A column's types; `duckdb` reads it from CSV, `value` gives the value of what was read.

    `extremes` are in the rows that are not random.
    """

    spark: str
    postgres: str
    duckdb: str
    make: Make
    extremes: Sequence[Any]
    value: str = "{0}"


def _float32(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def _double(random: Random) -> float:
    return random.choice((1, -1)) * random.random() * 10.0 ** random.randrange(-30, 30)


def _text(random: Random) -> str:
    return "".join(random.choice(TEXTS) for _ in range(random.randrange(4)))


def _moment(random: Random) -> datetime:
    return datetime(1600, 1, 1) + MICROSECOND * random.randrange(8000 * 365 * 86_400_000_000)


def _integer(bits: int) -> Make:
    return lambda random: random.randrange(-(2 ** (bits - 1)), 2 ** (bits - 1))


def _decimal(digits: int, scale: int) -> Make:
    top = 10**digits
    return lambda random: Decimal(f"{random.randrange(1 - top, top)}e-{scale}")


def _list(make: Make) -> Make:
    return lambda random: [
        None if random.random() < 0.2 else make(random) for _ in range(random.randrange(4))
    ]


def _grid(random: Random) -> list[list[float]]:
    width = random.randrange(1, 4)
    return [[_double(random) for _ in range(width)] for _ in range(random.randrange(1, 3))]


def _ends(bits: int) -> list[int]:
    return [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 0]


TEXTS = [
    "", "a", "NULL", "null", "\\N", "\\.", ",", '"', '""', "a,b", "line\nbreak", "\r", "\r\n",
    " ", " x ", "é", "日本", "🙂", "\t", "'", "\\", "{}", "{1,NULL}", "long " * 60,
]  # fmt: skip
FLOATS = [0.0, -0.0, math.nan, math.inf, -math.inf, 0.1, 1e-7]
MOMENTS = [EPOCH, datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999)]
LIST = "(translate({0}, '{{}}', '[]'))"

# DuckDB has no reader of PostgreSQL's arrays; to its own, an apostrophe is a quote.
DUCKDB_TEXT_ARRAY = r"""
CREATE MACRO text_array(a) AS list_transform(
  regexp_extract_all(a[2:-2], '(?s)"(?:[^"\\]|\\.)*"|[^,]+'),
  lambda x: CASE WHEN x = 'NULL' THEN NULL
    WHEN x[1] = '"' THEN regexp_replace(x[2:-2], '(?s)\\(.)', '\1', 'g') ELSE x END)
"""
COLUMNS = {
    "flag": Column("boolean", "boolean", "BOOLEAN", lambda r: r.random() < 0.5, [True, False]),
    "tiny": Column("tinyint", "smallint", "TINYINT", _integer(8), _ends(8)),
    "small": Column("smallint", "smallint", "SMALLINT", _integer(16), _ends(16)),
    "number": Column("int", "integer", "INTEGER", _integer(32), _ends(32)),
    "large": Column("bigint", "bigint", "BIGINT", _integer(64), _ends(64)),
    "money": Column(
        "decimal(12,2)",
        "numeric(12,2)",
        "DECIMAL(12,2)",
        _decimal(12, 2),
        [Decimal("-9999999999.99"), Decimal("0.00"), Decimal("0.01")],
    ),
    "exact": Column(
        "decimal(38,20)",
        "numeric(38,20)",
        "DECIMAL(38,20)",
        _decimal(38, 20),
        [Decimal("9" * 18 + "." + "9" * 20), Decimal("1e-20")],
    ),
    "single": Column(
        "float",
        "real",
        "FLOAT",
        lambda r: _float32(_double(r)),
        [*map(_float32, FLOATS), _float32(3.4e38)],
    ),
    "twice": Column(
        "double", "double precision", "DOUBLE", _double, [*FLOATS, 1.7976931348623157e308, 5e-324]
    ),
    "note": Column("string", "text", "VARCHAR", _text, TEXTS),
    "bytes": Column(
        "binary",
        "bytea",
        "VARCHAR",
        lambda r: r.randbytes(r.randrange(20)),
        [b"", b"\0\xff", bytes(range(256))],
        "from_hex(substr({0}, 3))",
    ),
    "day": Column(
        "date", "date", "DATE", lambda r: _moment(r).date(), [moment.date() for moment in MOMENTS]
    ),
    "clock": Column(
        "time", "time", "TIME", lambda r: _moment(r).time(), [time(), time(23, 59, 59, 999_999)]
    ),
    "instant": Column(
        "timestamp",
        "timestamptz",
        "TIMESTAMPTZ",
        lambda r: _moment(r).replace(tzinfo=UTC),
        [moment.replace(tzinfo=UTC) for moment in MOMENTS],
    ),
    "local": Column("timestamp_ntz", "timestamp", "TIMESTAMP", _moment, MOMENTS),
    "pause": Column(
        "interval day to second",
        "interval",
        "VARCHAR",
        lambda r: MICROSECOND * r.randrange(-(10**14), 10**14),
        [timedelta(), timedelta(days=-1), timedelta(days=2, microseconds=1)],
    ),
    "numbers": Column(
        "array<int>",
        "integer[]",
        "VARCHAR",
        _list(_integer(32)),
        [[], [None], [1, None, -3]],
        LIST + "::INTEGER[]",
    ),
    "words": Column(
        "array<string>",
        "text[]",
        "VARCHAR",
        _list(_text),
        [[], [None, "NULL", ""], TEXTS],
        "text_array({0})",
    ),
    "grid": Column(
        "array<array<double>>",
        "double precision[]",
        "VARCHAR",
        _grid,
        [[[1.0, 2.0], [3.0, 4.5]]],
        LIST + "::DOUBLE[][]",
    ),
}
# What names folders.
KINDS = [None, "a", "a b", "x/y", "k=v", "50%", "2024-01-01", "q\"'", "é 日"]


def fixed_rows() -> list[Row]:
    """A row of NULLs, and each column's extremes, however many there are."""
    length = max(len(column.extremes) for column in COLUMNS.values())
    rows: list[Row] = [{"id": 0, "kind": None, **dict.fromkeys(COLUMNS)}]
    for i in range(length):
        values = {name: c.extremes[i % len(c.extremes)] for name, c in COLUMNS.items()}
        rows.append({"id": i + 1, "kind": KINDS[i % len(KINDS)], **values})
    return rows


def random_rows(seed: int, count: int = 150) -> list[Row]:
    """Rows of random values, the same for a seed; a seventh of them NULL."""
    random = Random(f"downstream {seed}")
    return [
        {
            "id": number,
            "kind": random.choice(KINDS),
            **{
                name: None if random.random() < 1 / 7 else column.make(random)
                for name, column in COLUMNS.items()
            },
        }
        for number in range(count)
    ]


ROWS: dict[str, list[Row]] = {
    "extremes": fixed_rows(),
    "seed 1": random_rows(1),
    "seed 2": random_rows(2),
}


def spark_schema(names: Iterable[str] = COLUMNS) -> str:
    """The DDL of the whole table."""
    listed = ", ".join(f"{name} {COLUMNS[name].spark}" for name in names)
    return f"id bigint, kind string, {listed}"


def comparable(rows: Iterable[Row], *, without: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The rows by their id, in values that are equal if they are the same."""
    ordered = sorted(rows, key=lambda row: row["id"])
    return [
        {name: _comparable(name, v) for name, v in row.items() if name not in without}
        for row in ordered
    ]


def _comparable(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_comparable(name, item) for item in value]
    if isinstance(value, float):  # NaN equals itself here, and -0.0 differs from 0.0
        return repr(_float32(value) if name == "single" else value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    return value
