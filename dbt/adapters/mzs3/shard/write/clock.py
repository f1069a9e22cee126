"""Clocks that are ahead, of which a shard keeps the trace: its times never go back."""

from __future__ import annotations

MOST_AHEAD_MS = 10 * 60_000


def clock_warning(as_of: int, upper: int, s3_time: int | None) -> str | None:
    """What is odd about the time of a run, or of the shard's last batch; None if nothing is.

    All in ms since the epoch; `upper` is the first time that the shard has not reached.
    """
    if s3_time is None:
        return None
    if as_of - s3_time > MOST_AHEAD_MS:
        return (
            f"the clock of this host is {_minutes(as_of - s3_time)} minutes ahead of S3's: the "
            "changes of this run get that time, and those of later runs no earlier one; set the "
            "clock"
        )
    if upper - s3_time > MOST_AHEAD_MS:
        return (
            f"the last batch of the shard is of a time {_minutes(upper - s3_time)} minutes ahead "
            "of S3's clock, as the clock of the host that wrote it was; until that time has come, "
            "the changes of each run are 1 ms after those of the one before, not of its own time"
        )
    return None


def _minutes(ms: int) -> int:
    return ms // 60_000
