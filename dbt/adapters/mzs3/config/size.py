"""Sizes as users write them: bytes, or a number and a unit, as PostgreSQL spells memory."""

from __future__ import annotations

import re

UNITS = {"B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}

_SIZE = re.compile(r"\s*(\d+)\s*([A-Za-z]*)\s*")


def parse_size(value: object) -> int:
    """The size in bytes; units are case-sensitive and multiply by 1024.

    Raises ValueError, whose text says what is wrong and what is allowed.
    (Materialize's design "Copy to S3", option MAX FILE SIZE.)
    """
    if isinstance(value, int) and not isinstance(value, bool):
        size = value
    elif isinstance(value, str) and (match := _SIZE.fullmatch(value)):
        number, unit = match.groups()
        if unit and unit not in UNITS:
            raise ValueError(
                f"has the unknown unit {unit!r}; units are {', '.join(UNITS)} (case-sensitive)"
            )
        size = int(number) * UNITS[unit or "B"]
    else:
        raise ValueError(f"must be a number of bytes or a text such as '256MB', not {value!r}")
    if size < 1:
        raise ValueError(f"must be at least 1 byte, not {value!r}")
    return size


def format_size(size: int) -> str:
    """The size in the largest unit that divides it, such as `8MB`; `parse_size` reads it back."""
    unit, factor = next(
        (unit, factor) for unit, factor in reversed(UNITS.items()) if size % factor == 0
    )
    return f"{size // factor}{unit}"
