"""Which records of an object each of its ranges reads, and where in it these are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dbt.adapters.mzs3.csv_source.executor.ranges.survey import Survey


@dataclass(frozen=True)
class RangePlan:
    """The records that one range reads: whole ones, and each record is of exactly one range.

    They are the object's bytes from `start` to `end`. Up to `own_end` these are in the range
    itself; the rest, which is the end of its last record, is in the ranges behind it. `line` and
    `record` count the lines and the records before `start`, a header included. A range in which
    no record ends has none of its own: `start` is `end`.
    """

    start: int
    own_end: int
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
        own_end = offset + survey.size
        if not begun:
            begun.append(RangePlan(0, own_end, own_end))
        elif ends.first is None:
            begun.append(RangePlan(own_end, own_end, own_end))
        else:
            start = offset + ends.first
            begun.append(RangePlan(start, own_end, own_end, line + ends.first_line, record + 1))
        inside ^= survey.quotes % 2 == 1
        offset, line, record = own_end, line + survey.newlines, record + ends.count
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
