"""Large numbers as people read them: about three digits, and a unit."""

from __future__ import annotations

_BYTE_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_COUNT_UNITS = ("", "k", "M", "G", "T", "P", "E")


def shown_bytes(size: float) -> str:
    """`48 B`, `1.4 GB` or `512 MB`, in units of 1024 as the sizes in options are."""
    return _scaled(size, 1024, _BYTE_UNITS)


def shown_count(count: float) -> str:
    """`999`, `84.2 M`: for where its every digit would be too much."""
    return _scaled(count, 1000, _COUNT_UNITS)


def _scaled(value: float, base: int, units: tuple[str, ...]) -> str:
    power = 0
    # From the rounded value on, so that 1023.9 kB is 1 MB and not 1024 kB.
    while power + 1 < len(units) and round(value, 0 if value >= 100 else 1) >= base:
        value /= base
        power += 1
    digits = f"{value:.0f}" if value >= 99.95 or power == 0 else f"{value:.1f}"
    return f"{digits.removesuffix('.0')} {units[power]}".rstrip()
