"""Intervals as PostgreSQL writes them (IntervalStyle postgres).

`1 year 2 mons -3 days +04:05:06.789`: a part is left out if it is zero, hours pass 24, and what is
positive right after a part that is negative has its sign.
"""

from __future__ import annotations

import string

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.formats.csv.datetimes import SECOND, time_text
from dbt.adapters.mzs3.formats.csv.quoting import concatenated, text_scalar

HOUR = 3600 * SECOND
MONTHS_IN_A_YEAR = 12
INTERVAL_ALPHABET = string.digits + "+-:. yearsmond"


def interval_text(intervals: pa.Array) -> pa.Array:
    """Structs `(months int32, days int32, micros int64)` as `large_string`.

    Parts may have different signs; nothing carries over from one to another but months to years.
    (What PostgreSQL 17 and later take for infinity is written as the number that it is to Spark.)
    """
    months, days, micros = intervals.flatten()  # NULL under a NULL interval
    years = pc.divide(months, MONTHS_IN_A_YEAR)  # towards zero, as PostgreSQL does
    months = pc.subtract(months, pc.multiply(years, MONTHS_IN_A_YEAR))
    parts: list[pa.Array] = []
    after_negative = pa.repeat(False, len(intervals))
    zero_date = pa.repeat(True, len(intervals))
    for values, unit in ((years, "year"), (months, "mon"), (days, "day")):
        zero = pc.equal(values, 0)
        if not pc.all(zero, min_count=0).as_py():
            parts.append(_counted(values, zero, after_negative, unit))
            after_negative = pc.if_else(zero, after_negative, pc.less(values, 0))
            zero_date = pc.and_(zero_date, zero)
    shown = pc.or_(zero_date, pc.not_equal(micros, 0))
    parts.append(pc.if_else(shown, _time(micros, after_negative), text_scalar("")))
    return pc.ascii_ltrim(concatenated(*parts), " ")


def _counted(values: pa.Array, zero: pa.Array, after_negative: pa.Array, unit: str) -> pa.Array:
    """` 2 days`, ` 1 day`, ` -1 days`; nothing for zero."""
    signed = pc.and_(after_negative, pc.greater(values, 0))
    plus = pc.if_else(signed, text_scalar("+"), text_scalar(""))
    plural = pc.if_else(pc.equal(values, 1), text_scalar(""), text_scalar("s"))
    number = pc.cast(values, pa.large_string())
    text = concatenated(" ", plus, number, f" {unit}", plural)
    return pc.if_else(zero, text_scalar(""), text)


def _time(micros: pa.Array, after_negative: pa.Array) -> pa.Array:
    """` 04:05:06.789`, with the sign of what may be more than a day."""
    hours = pc.divide(micros, HOUR)
    rest = pc.abs(pc.subtract(micros, pc.multiply(hours, HOUR)))
    positive = pc.if_else(after_negative, text_scalar("+"), text_scalar(""))
    sign = pc.if_else(pc.less(micros, 0), text_scalar("-"), positive)
    hour_text = pc.utf8_lpad(pc.cast(pc.abs(hours), pa.large_string()), 2, "0")
    below_hours = pc.utf8_slice_codeunits(time_text(rest.view(pa.time64("us"))), 2)
    return concatenated(" ", sign, hour_text, below_hours)
