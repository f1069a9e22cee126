"""Sizes: PostgreSQL's spelling of memory, multiplier 1024."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.mzs3.options.values import UNITS, format_size, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (16777216, 16777216),
        ("16777216", 16777216),
        ("5 GB", 5 << 30),
        ("256MB", 256 << 20),
        (" 64 kB ", 64 << 10),
        ("1TB", 1 << 40),
        ("7B", 7),
    ],
)
def test_a_number_or_a_number_with_a_unit(text: object, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("5 mb", "unknown unit 'mb'; units are B, kB, MB, GB, TB (case-sensitive)"),
        ("5 KB", "unknown unit 'KB'"),
        ("1.5GB", "must be a number of bytes or a text such as '256MB', not '1.5GB'"),
        ("", "must be a number of bytes"),
        (-1, "must be at least 1 byte, not -1"),
        (0, "must be at least 1 byte"),
        (True, "must be a number of bytes"),
        (None, "must be a number of bytes"),
    ],
)
def test_what_is_not_a_size(text: object, reason: str) -> None:
    with pytest.raises(ValueError, match=r".*") as failure:
        parse_size(text)
    assert reason in str(failure.value)


@given(st.integers(1, 1 << 50))
def test_formatted_sizes_read_back(size: int) -> None:
    assert parse_size(format_size(size)) == size


@given(st.integers(1, 1 << 20), st.sampled_from(sorted(UNITS)), st.text(" \t", max_size=3))
def test_white_space_changes_nothing(number: int, unit: str, space: str) -> None:
    assert parse_size(f"{space}{number}{space}{unit}") == number * UNITS[unit]
