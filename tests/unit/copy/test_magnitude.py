"""Large numbers: a unit and few digits, the same in log lines and on pages."""

from __future__ import annotations

import pytest

from dbt.adapters.mzs3.copy.magnitude import shown_bytes, shown_count


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 B"),
        (0.6, "1 B"),
        (999, "999 B"),
        (1023, "1023 B"),
        (1024, "1 kB"),
        (1536, "1.5 kB"),
        (1023.9 * 1024, "1 MB"),
        (256 << 20, "256 MB"),
        (1_500_000_000, "1.4 GB"),
        (31.4 * (1 << 30), "31.4 GB"),
        (3 << 50, "3 PB"),
        (5 << 60, "5 EB"),
        (5000 << 60, "5000 EB"),
    ],
)
def test_bytes_have_units_of_1024(size: float, shown: str) -> None:
    assert shown_bytes(size) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0"), (999, "999"), (1000, "1 k"), (84_213_004, "84.2 M"), (999_960, "1 M")],
)
def test_counts_have_units_of_1000(count: float, shown: str) -> None:
    assert shown_count(count) == shown
