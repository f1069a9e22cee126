"""Which records of an object each of its ranges reads, and where in it these are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dbt.adapters.mzs3.csv_source.executor.ranges.survey import Survey


@dataclass(frozen=True)
class RangePlan:
    """The records that one range reads: whole ones, and each record is of exactly one range.

    They are the object's bytes from `start` to `end`. The range itself ends at `range_end`; what
    is behind that, the end of its last record, is in the ranges that follow. `line` and `record`
    count the lines and the records before `start`, a header included. A range in which no record
    ends has none of its own: `start` is `end`.
    """

    start: int
    range_end: int
    end: int
    line: int = 0
    record: int = 0


def plan_ranges(surveys: Sequence[Survey]) -> list[RangePlan]:
    """A plan for each range of one object, whose surveys these are, in order."""
    begun: list[RangePlan] = []  # each without its `end`
    inside = False
    offset = line = record = 0
    for survey in surveys:
        ends = survey.ends(inside=inside)
        range_end = offset + survey.size
        if not begun:
            begun.append(RangePlan(0, range_end, range_end))
        elif ends.first is None:
            begun.append(RangePlan(range_end, range_end, range_end))
        else:
            start = offset + ends.first
            begun.append(
                RangePlan(start, range_end, range_end, line + ends.first_line, record + 1)
            )
        inside ^= survey.quotes % 2 == 1
        offset, line, record = range_end, line + survey.newlines, record + ends.count
    return _with_ends(begun, offset)


def _with_ends(begun: list[RangePlan], size: int) -> list[RangePlan]:
    """A range's last record ends where the records of the next one that has any begin."""
    plans: list[RangePlan] = []
    end = size
    for index in range(len(begun) - 1, -1, -1):
        plan = begun[index]
        if index == 0 or plan.record:
            plans.append(replace(plan, end=end))
            end = plan.start
        else:
            plans.append(plan)
    return plans[::-1]
