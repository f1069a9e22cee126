"""The proleptic Gregorian calendar, in which Spark and PostgreSQL count days."""

from __future__ import annotations

import datetime as dt

SECOND = 1_000_000  # in microseconds, as are HOUR and DAY
HOUR = 3600 * SECOND
DAY = 24 * HOUR
MONTHS_IN_A_YEAR = 12

FIRST_DAY = -719_162
"""0001-01-01, in days since 1970-01-01."""
LAST_DAY = 2_932_896
"""9999-12-31. pyarrow writes later days, and days before `FIRST_DAY`, wrongly."""

# The calendar repeats after CYCLE_YEARS, which have CYCLE_DAYS.
CYCLE_YEARS, CYCLE_DAYS = 400, 146_097


def day_number(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 for any year (0 is 1 BC). Raises ValueError for an invalid date."""
    # Python's dates have only the years 1 to 9999: takes a year of the first cycle.
    cycles, in_cycle = divmod(year - 1, CYCLE_YEARS)
    return cycles * CYCLE_DAYS + FIRST_DAY + dt.date(in_cycle + 1, month, day).toordinal() - 1
