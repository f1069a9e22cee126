from datetime import datetime, timedelta, timezone

import pytest

from dbt.adapters.mzs3.copy.history.report import units


def plain(text):
    return text.replace(units.NBSP, " ")


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (None, "–"),
        (0, "0 B"),
        (999, "999 B"),
        (1023, "1023 B"),
        (1024, "1 kB"),
        (1536, "1.5 kB"),
        (1023.9 * 1024, "1 MB"),
        (256 << 20, "256 MB"),
        (31.4 * (1 << 30), "31.4 GB"),
        (5 << 60, "5 EB"),
        (5000 << 60, "5000 EB"),
    ],
)
def test_bytes_have_units_of_1024(size, text):
    assert plain(units.format_bytes(size)) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (0, "0 s"),
        (0.44, "0.4 s"),
        (9.96, "10 s"),
        (42.4, "42 s"),
        (59.6, "1 min"),
        (192, "3 min 12 s"),
        (3599.7, "1 h"),
        (7500, "2 h 5 min"),
        (90000, "1 d 1 h"),
    ],
)
def test_durations_have_two_units(seconds, text):
    assert plain(units.format_duration(seconds)) == text


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(0, 0, "–"), (0, 7, "0 %"), (9999, 10000, "99.9 %"), (7, 7, "100 %"), (2, 3, "66.6 %")],
)
def test_a_share_is_100_percent_only_if_it_is_all(part, whole, text):
    assert plain(units.format_share(part, whole)) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (999, "999"), (1000, "1 k"), (84_213_004, "84.2 M"), (999_960, "1 M")],
)
def test_compact_counts_have_three_digits(count, text):
    assert plain(units.format_compact(count)) == text


def test_times_are_utc_in_any_zone_and_locale():
    moment = datetime(2026, 3, 1, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    assert plain(units.format_time(moment)) == "28 Feb 2026, 23:30"


def test_a_unit_stays_with_its_number():
    assert units.format_bytes(1024) == f"1{units.NBSP}kB"
