"""Formats parts of messages: counts, sizes, durations, times and suggestions."""

from __future__ import annotations

import datetime as dt
import difflib
from collections.abc import Iterable, Sequence

_LAST_YEAR_MS = 253_402_300_799_999  # Python's dates end with the year 9999


def count_noun(count: int, noun: str) -> str:
    """A number with its noun, whose plural ends in s: `1 object`, `2 objects`."""
    return f"{count} {noun}" + ("" if count == 1 else "s")


def count_with_commas(count: int, noun: str) -> str:
    """A number, with thousands separators, and its noun: `1 row`, `1,234 rows`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def bulleted(lines: Iterable[str]) -> str:
    """The lines as a bulleted list, which begins on a new line."""
    return "".join(f"\n  - {line}" for line in lines)


def table_lines(rows: Sequence[Sequence[str]], aligns: Sequence[str]) -> list[str]:
    """The rows as a table, with a rule below the first; each column is aligned by `<` or `>`."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = zip(row, aligns, widths, strict=True)
        lines.append("  ".join(f"{cell:{align}{width}}" for cell, align, width in cells).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return lines


def followed_by(text: str, sentence: str) -> str:
    """Adds a sentence to the text; on a new line if the text has several lines."""
    text = text.rstrip(".\n ")
    return f"{text}\n{sentence}" if "\n" in text else f"{text}. {sentence}"


def is_near_miss(given: str, meant: str) -> bool:
    """Whether `given` is probably a misspelling of `meant`."""
    close = difflib.get_close_matches(given.lower(), [meant], cutoff=0.8)
    return given != meant and bool(close)


def did_you_mean(given: str, names: Iterable[str]) -> str:
    """`did you mean delimiter? `, or an empty text if none of the names is similar."""
    near = difflib.get_close_matches(given, list(names), n=1)
    return f"did you mean {near[0]}? " if near else ""


def operation_command(operation: str, arguments: str) -> str:
    """The shell command of a run-operation; `arguments` is the inside of a YAML mapping."""
    # A single quote would end the quoted text of the shell.
    escaped = arguments.replace("'", "'\\''")
    return f"dbt run-operation {operation} --args '{{{escaped}}}'"


SIZE_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
"""Each unit is 1024 times the one before."""


def bytes_text(size: float) -> str:
    """`48 B`, `1.4 GB` or `512 MB`."""
    return _scaled(size, 1024, SIZE_UNITS)


def count_text(count: float) -> str:
    """`999` or `84.2 M`."""
    return _scaled(count, 1000, ("", "k", "M", "G", "T", "P", "E"))


def _scaled(value: float, base: int, units: tuple[str, ...]) -> str:
    power = 0
    # The rounded value decides: 1023.9 kB is 1 MB.
    while power + 1 < len(units) and round(value, 0 if value >= 100 else 1) >= base:
        value /= base
        power += 1
    digits = f"{value:.0f}" if value >= 99.95 or power == 0 else f"{value:.1f}"
    return f"{digits.removesuffix('.0')} {units[power]}".rstrip()


def duration_text(seconds: float) -> str:
    """`0:11`, `12:05` or `1:00:00`."""
    minutes, left_over = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{left_over:02}" if hours else f"{minutes}:{left_over:02}"


def largest_units(seconds: int) -> list[tuple[int, str]]:
    """The two largest units of a duration, such as 3 `min` and 12 `s`; only `s` below a minute."""
    parts: list[tuple[int, str]] = []
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, seconds = divmod(seconds, size)
        if count or parts or unit == "s":
            parts.append((count, unit))
    return parts[:2]


def moment_text(moment: int) -> str:
    """A time in ms since the epoch, followed by the date and time in UTC, if in Python's range."""
    if not 0 <= moment <= _LAST_YEAR_MS:
        return str(moment)
    time = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=moment)
    return f"{moment} ({time.isoformat(' ', 'milliseconds')})"
