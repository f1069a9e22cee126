from datetime import datetime, timedelta, timezone

import pytest

from dbt.adapters.mzs3.export.report import units


def plain(text):
    return text.replace(units.NBSP, " ")


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


def test_times_are_utc_in_any_zone_and_locale():
    moment = datetime(2026, 3, 1, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    assert plain(units.format_time(moment)) == "28 Feb 2026, 23:30"


def test_a_unit_stays_with_its_number():
    assert units.format_bytes(1024) == f"1{units.NBSP}kB"
    assert units.format_compact(84_213_004) == f"84.2{units.NBSP}M"


def test_a_size_that_is_not_known_is_a_dash():
    assert units.format_bytes(None) == "–"
