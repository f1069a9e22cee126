"""Times of shards, in ms since the epoch, as people read them."""

from __future__ import annotations

import datetime as dt

_LAST_YEAR_MS = 253_402_300_799_999  # Python's dates end with the year 9999


def shown_time(moment: int) -> str:
    """The number, and the UTC date and time that it stands for where there is one."""
    if not 0 <= moment <= _LAST_YEAR_MS:
        return str(moment)
    shown = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=moment)
    return f"{moment} ({shown.isoformat(' ', 'milliseconds')})"
