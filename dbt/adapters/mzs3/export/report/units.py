"""Short texts for numbers, with a non-breaking space between a number and its unit."""

from __future__ import annotations

from datetime import date, datetime, timezone

from dbt.adapters.mzs3.text import bytes_text, count_text, count_with_commas, largest_units

NBSP = "\u00a0"
MISSING = "\N{EN DASH}"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def format_count(count: float | None) -> str:
    """A count with all digits: `84,213,004`."""
    return MISSING if count is None else f"{count:,.0f}"


def format_compact(count: float) -> str:
    """A count with three digits: `84.2 M`."""
    return count_text(count).replace(" ", NBSP)


def format_bytes(size: float | None) -> str:
    """A size with three digits, in powers of 1024, as in the options of exports: `31.4 GB`."""
    return MISSING if size is None else bytes_text(size).replace(" ", NBSP)


def format_duration(seconds: float | None) -> str:
    """A duration in its two largest units: `0.4 s`, `42 s`, `3 min 12 s`, `2 h 5 min`."""
    if seconds is None:
        return MISSING
    if seconds < 9.95:
        return f"{seconds:.1f}".removesuffix(".0") + f"{NBSP}s"
    parts = largest_units(round(seconds))
    return " ".join(f"{count}{NBSP}{unit}" for count, unit in parts if count)


def format_share(part: int, whole: int) -> str:
    """A percentage, rounded down, so that 100 % means all."""
    if whole == 0:
        return MISSING
    permille = part * 1000 // whole
    digits = f"{permille // 10}.{permille % 10}".removesuffix(".0")
    return f"{digits}{NBSP}%"


def format_day(day: date) -> str:
    """`21 Nov`."""
    return f"{day.day}{NBSP}{_MONTHS[day.month - 1]}"


def format_date(day: date) -> str:
    """`21 Nov 2026`."""
    return f"{format_day(day)} {day.year}"


def format_time(moment: datetime) -> str:
    """`21 Nov 2026, 19:50`, in UTC; a note on the page says that all times are in UTC."""
    moment = moment.astimezone(timezone.utc)
    return f"{format_date(moment)}, {moment:%H:%M}"


def plural(count: int, noun: str) -> str:
    """`1 export`, `2,000 exports`."""
    return count_with_commas(count, noun).replace(" ", NBSP)
