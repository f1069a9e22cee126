"""Parts of messages: how many there are, and URLs without what is secret in them."""

import pytest

from dbt.adapters.mzs3.text import (
    bytes_text,
    count_noun,
    count_text,
    count_with_commas,
    followed_by,
)


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 new objects"), (1, "1 new object"), (2, "2 new objects")]
)
def test_a_number_has_its_noun(count: int, text: str) -> None:
    assert count_noun(count, "new object") == text
    assert count_with_commas(count, "new object") == text


def test_a_long_number_has_commas() -> None:
    assert count_with_commas(1_234_567, "row") == "1,234,567 rows"


def test_a_sentence_more_begins_where_the_text_ends():
    assert followed_by("it failed", "Nothing is left") == "it failed. Nothing is left"
    assert followed_by("it failed. Cast it.", "Done") == "it failed. Cast it. Done"
    assert followed_by("it failed:\n  1/0\n  ^^^", "Done") == "it failed:\n  1/0\n  ^^^\nDone"


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
    assert bytes_text(size) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0"), (999, "999"), (1000, "1 k"), (84_213_004, "84.2 M"), (999_960, "1 M")],
)
def test_counts_have_units_of_1000(count: float, shown: str) -> None:
    assert count_text(count) == shown
