"""Clocks that are ahead are told of."""

from __future__ import annotations

import pytest

from dbt.adapters.mzs3.shard.write.job import clock_warning

NOW = 1_800_000_000_000
MINUTE = 60_000


@pytest.mark.parametrize(
    ("as_of", "upper", "s3_time"),
    [
        (NOW, NOW - 5, NOW),
        (NOW + 10 * MINUTE, NOW + 10 * MINUTE, NOW),
        (NOW - 90 * MINUTE, 0, NOW),
        (NOW, 0, None),
    ],
)
def test_nothing_is_odd(as_of: int, upper: int, s3_time: int | None) -> None:
    assert clock_warning(as_of, upper, s3_time) is None


def test_a_host_ahead_of_s3() -> None:
    said = clock_warning(NOW + 61 * MINUTE, 0, NOW)
    assert said is not None
    assert "the clock of this host is 61 minutes ahead of S3's" in said


def test_a_shard_ahead_of_s3() -> None:
    said = clock_warning(NOW, NOW + 11 * MINUTE, NOW)
    assert said is not None
    assert "the last batch of the shard is of a time 11 minutes ahead" in said
