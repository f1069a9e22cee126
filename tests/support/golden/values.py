"""Generated values of every type: extremes first, then what a fixed seed gives."""

import json
import math
import string
import struct
from collections.abc import Callable, Iterator
from decimal import Decimal
from random import Random
from typing import Any

COUNT = 12_000
AWKWARD_TEXTS = [
    "", " ", "  lead", "trail ", "a,b", 'q"q', '"', '""', "\\", "\\.", "\\N", "\\.x", "a\\b", "\n",
    "\r", "\r\n", "a\nb", "\t", "\v", "\f", "NULL", "null", "nUlL", "nullx", "{}", "{", "}", "'",
    ";", "#", "|", "é", "日本", "🙂", "\u2028", "\u00a0", "\ufeff", "e\u0301", "\x01", "\x7f", "t",
    "0", "-1", "true", ",", ",,", '","', "a" * 5000, '"' * 300, "é" * 300,
]  # fmt: skip
SPECIAL = list(",\"\\\n\r\t '{}|;.\v\fntuNTULl01é日🙂")


def sample(random: Random, make: Callable[[Random], Any], extremes: list[Any]) -> list[Any]:
    """The extremes, None now and then, and COUNT values."""
    made = [None if random.random() < 0.03 else make(random) for _ in range(COUNT)]
    return [*extremes, *made]


def text(random: Random) -> str:
    if random.random() < 0.2:
        return random.choice(AWKWARD_TEXTS)
    letters = string.ascii_letters if random.random() < 0.5 else SPECIAL
    return "".join(random.choices(letters, k=random.randrange(12)))


def binary(random: Random) -> bytes:
    return random.randbytes(random.choice((0, 1, 2, 3, 17, 64)))


def integer(bits: int) -> Callable[[Random], int]:
    def make(random: Random) -> int:
        size = 1 << random.randrange(bits)
        return random.randrange(-size, size)

    return make


def integer_extremes(bits: int) -> list[int]:
    top = 1 << (bits - 1)
    return [0, 1, -1, top - 1, -top, 10, -10, 99, 100]


def decimal(precision: int, scale: int) -> Callable[[Random], Decimal]:
    def make(random: Random) -> Decimal:
        digits = random.randrange(10 ** random.randrange(1, precision + 1))
        return _scaled(random.choice((digits, -digits)), scale)

    return make


def decimal_extremes(precision: int, scale: int) -> list[Decimal]:
    top = 10**precision - 1
    wanted = (0, 1, -1, 10, -10, 12, top, -top, 5 * 10 ** (precision - 1), 10**scale)
    return [_scaled(digits, scale) for digits in wanted if digits <= top]


def _scaled(digits: int, scale: int) -> Decimal:
    """All digits, where arithmetic would round to 28."""
    return Decimal(f"{digits}e-{scale}")


def double(random: Random) -> float:
    kind = random.randrange(6)
    if kind == 0:
        return float(struct.unpack("<d", random.randbytes(8))[0])
    if kind == 1:
        return round(random.uniform(-1e6, 1e6), random.randrange(7))
    if kind == 2:
        return float(random.randrange(-(1 << 63), 1 << 63) >> random.randrange(63))
    if kind == 3:
        return random.uniform(-10, 10) * 10.0 ** random.randrange(-20, 40)
    if kind == 4:
        return _near(float(f"1e{random.randrange(-20, 40)}"), random)
    return next(beside_midpoints(random, 53, 22))


def single(random: Random) -> float:
    kind = random.randrange(6)
    if kind == 0:
        return as_single(struct.unpack("<f", random.randbytes(4))[0])
    if kind == 1:
        return as_single(round(random.uniform(-1e4, 1e4), random.randrange(4)))
    if kind == 2:
        return as_single(float(random.randrange(-(1 << 40), 1 << 40) >> random.randrange(40)))
    if kind == 3:
        return as_single(random.uniform(-10, 10) * 10.0 ** random.randrange(-20, 30))
    if kind == 4:
        bits = struct.unpack("<i", struct.pack("<f", float(f"1e{random.randrange(-20, 30)}")))[0]
        return float(struct.unpack("<f", struct.pack("<i", bits + random.randrange(-2, 3)))[0])
    return next(beside_midpoints(random, 24, 10))


def as_single(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def _near(value: float, random: Random) -> float:
    for _ in range(random.randrange(3)):
        value = math.nextafter(value, random.choice((0.0, math.inf)))
    return value


def beside_midpoints(random: Random, precision: int, most: int) -> Iterator[float]:
    """Numbers of even significand with a neighbouring midpoint that has few decimal digits."""
    while True:
        power = 5 ** random.randrange(1, most + 1)
        odd = random.randrange(2**precision // power, 2 ** (precision + 1) // power) | 1
        midpoint = odd * power
        if 2**precision < midpoint < 2 ** (precision + 1):
            significand = (midpoint + 1) // 2
            significand -= significand % 2  # the even one of the two beside it
            sign = random.choice((1, -1))
            yield float(sign * significand * 2 ** random.randrange(1, precision + 10))


FLOAT_EXTREMES = [
    math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.1, 1e-4, 1e-5, 9.9999e-5, 1e-6, 1e-7,
    1e5, 1e6, 999999.0, 1e7, 1e9, 1e10, 1e11, 1e14, 1e15, 1e16, 1e22, 1e23, -1e23, 123456789.125,
    2.0**24, 2.0**24 + 2, 2.0**31, 2.0**53, 2.0**53 + 2, 2.0**54, 2.0**63, 9.5e-5,
]  # fmt: skip
# The gap below a power of two is half the gap above it.
DOUBLE_EXTREMES = [
    *FLOAT_EXTREMES, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308,
    *(math.ldexp(1, exponent) for exponent in range(-1074, 1024)),
]  # fmt: skip
SINGLE_EXTREMES = [
    *map(as_single, FLOAT_EXTREMES), as_single(3.4028235e38),
    *(math.ldexp(1, exponent) for exponent in range(-149, 128)),
]  # fmt: skip

# PostgreSQL's own limits: 4714-11-24 BC to 5874897-12-31, timestamps to the end of year 294276.
FIRST_DAY, LAST_DAY = -2_440_588, 2_145_031_948
DAY = 86_400_000_000
FIRST_MICROSECOND, END_MICROSECOND = FIRST_DAY * DAY, 106_751_991 * DAY
YEAR_1, YEAR_1000, YEAR_9999_ENDS = -719_162, -354_285, 2_932_896
DAY_EXTREMES = [
    0, -1, 1, YEAR_1, YEAR_1 - 1, YEAR_1 - 366, YEAR_1 - 367, YEAR_1000, YEAR_1000 - 1,
    YEAR_9999_ENDS, YEAR_9999_ENDS + 1, FIRST_DAY, 10_957, 11_016, -25_509,
]  # fmt: skip
DATE_EXTREMES = [*DAY_EXTREMES, LAST_DAY]
TIMESTAMP_EXTREMES = [
    *(day * DAY for day in DAY_EXTREMES),
    *(day * DAY + DAY - 1 for day in DAY_EXTREMES),
    END_MICROSECOND - 1, 1, 10, 100_000, 120_000, 1_500_000, -1, -1_500_000,
]  # fmt: skip


def date(random: Random) -> int:
    if random.random() < 0.5:
        return random.randrange(YEAR_1, YEAR_9999_ENDS + 1)
    return random.choice(
        (random.randrange(FIRST_DAY, LAST_DAY + 1), random.randrange(FIRST_DAY, YEAR_1 + 800))
    )


def timestamp(random: Random) -> int:
    unit = random.choice((1, 10, 1000, 100_000, 1_000_000, 60_000_000))
    first, end = random.choice(
        ((YEAR_1 * DAY, (YEAR_9999_ENDS + 1) * DAY), (FIRST_MICROSECOND, END_MICROSECOND))
    )
    return random.randrange(-(-first // unit), end // unit) * unit


def time(random: Random) -> int:
    """Nanoseconds of whole microseconds."""
    unit = random.choice((1, 10, 1000, 1_000_000, 60_000_000))
    return random.randrange(DAY // unit) * unit * 1000


# PostgreSQL 17 and later take the three least, or the three greatest, parts for infinity.
INTERVAL_EXTREMES = [
    {"months": months, "days": days, "micros": micros}
    for months in (0, 1, -1, 12, -12, 14, -14, -(2**31), 2**31 - 1)
    for days in (0, 1, -1, 2, 1 - 2**31, 2**31 - 2)
    for micros in (0, 1, -1, 3_600_000_000, -DAY, 100_000, -(2**63), 2**63 - 1)
]


def interval(random: Random) -> dict[str, int]:
    unit = random.choice((1, 10, 1000, 1_000_000, 60_000_000, 3_600_000_000))
    return {
        "months": random.choice(
            (0, 0, random.randrange(-30, 31), random.randrange(-(2**31), 2**31))
        ),
        "days": random.choice((0, 0, random.randrange(-9, 10), random.randrange(-(2**31), 2**31))),
        "micros": random.choice((0, random.randrange(-3 * DAY // unit, 3 * DAY // unit) * unit)),
    }


def json_text(random: Random) -> str:
    """Compact JSON, as Spark writes a variant; its keys in any order."""
    return json.dumps(_json(random, 3), separators=(",", ":"), ensure_ascii=False)


def _json(random: Random, depth: int) -> Any:
    kind = random.randrange(7 if depth else 5)
    if kind == 5:
        return [_json(random, depth - 1) for _ in range(random.randrange(4))]
    if kind == 6:
        return {text(random): _json(random, depth - 1) for _ in range(random.randrange(4))}
    return (None, True, random.randrange(-99, 100), round(random.random(), 3), text(random))[kind]


def record(**fields: Callable[[Random], Any]) -> Callable[[Random], dict[str, Any]]:
    def make(random: Random) -> dict[str, Any]:
        return {
            name: None if random.random() < 0.15 else field(random)
            for name, field in fields.items()
        }

    return make


def array(element: Callable[[Random], Any]) -> Callable[[Random], list[Any]]:
    def make(random: Random) -> list[Any]:
        return [
            None if random.random() < 0.1 else element(random) for _ in range(random.randrange(5))
        ]

    return make


def matrix(element: Callable[[Random], Any]) -> Callable[[Random], list[Any]]:
    def make(random: Random) -> list[Any]:
        rows, columns = random.randrange(1, 4), random.randrange(1, 4)
        return [
            [None if random.random() < 0.1 else element(random) for _ in range(columns)]
            for _ in range(rows)
        ]

    return make
