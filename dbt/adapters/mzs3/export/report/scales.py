"""Axes: which values to mark, and how high a value stands between them."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dbt.adapters.mzs3.export.report import units

_MOST_STEPS = 4
_OUTLIER_OF_LINES = 25
_OUTLIER_OF_BARS = 6
# Where the smallest value of a logarithmic axis stands; below it is room for zero.
_LOG_FLOOR = 0.12


@dataclass(frozen=True)
class Unit:
    """A quantity: how it is written, and the steps that read well on its axis, ascending."""

    format: Callable[[float], str]
    steps: Sequence[float]
    decades: Sequence[float]


@dataclass(frozen=True)
class Axis:
    """Marked values ascending, and the scale between them."""

    ticks: tuple[float, ...]
    bottom: float
    top: float
    is_log: bool = False

    def at(self, value: float) -> float:
        """The height of a value: 0 at the bottom, 1 at the top; what is beyond stays inside."""
        if not self.is_log:
            return min(1.0, max(0.0, value / self.top))
        if value <= 0:
            return 0.0
        share = math.log(value / self.bottom) / math.log(self.top / self.bottom)
        return min(1.0, _LOG_FLOOR + (1 - _LOG_FLOOR) * max(0.0, share))


def line_axis(values: Sequence[float], unit: Unit) -> Axis:
    """From zero; logarithmic where an outlier would press all else flat."""
    positive = sorted(value for value in values if value > 0)
    if positive and positive[-1] > _OUTLIER_OF_LINES * positive[len(positive) // 2]:
        return _log_axis(positive, unit, has_zero=len(positive) < len(values))
    return _linear(positive[-1] if positive else 0, unit)


def bar_axis(values: Sequence[float], unit: Unit) -> Axis:
    """From zero, as the length of a bar is read; an outlier is cut at the top."""
    positive = sorted(value for value in values if value > 0)
    if not positive:
        return _linear(0, unit)
    usual = positive[math.ceil(len(positive) * 0.9) - 1]
    is_cut = positive[-1] > _OUTLIER_OF_BARS * usual
    return _linear(1.3 * usual if is_cut else positive[-1], unit)


def _linear(highest: float, unit: Unit) -> Axis:
    step = next(step for step in unit.steps if step * _MOST_STEPS >= highest)
    steps = max(1, math.ceil(highest / step))
    return Axis(tuple(step * number for number in range(steps + 1)), 0, step * steps)


def _log_axis(positive: Sequence[float], unit: Unit, *, has_zero: bool) -> Axis:
    first = max(0, bisect_right(unit.decades, positive[0]) - 1)
    last = max(1, bisect_left(unit.decades, positive[-1]))
    marks = unit.decades[first : last + 1]
    every = math.ceil(len(marks) / _MOST_STEPS)
    shown = marks[::-1][::every][::-1]
    return Axis((0.0, *shown) if has_zero else tuple(shown), marks[0], marks[-1], is_log=True)


# Up to 10^30, which is more than anyone exports.
_COUNTS = [digit * 10**power for power in range(31) for digit in (1, 2, 5)]
COUNT = Unit(
    units.format_compact,
    steps=_COUNTS,
    decades=[10.0**power for power in range(31)],
)
BYTES = Unit(
    units.format_bytes,
    steps=[
        digit * 1024**power
        for power in range(11)
        for digit in (1, 2, 5, 10, 20, 50, 100, 200, 500)
    ],
    decades=[digit * 1024**power for power in range(11) for digit in (1, 10, 100)],
)
SECONDS = Unit(
    units.format_duration,
    steps=[
        *(0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30),
        *(60 * digit for digit in (1, 2, 5, 10, 15, 30)),
        *(3600 * digit for digit in (1, 2, 3, 6, 12)),
        *(86400 * count for count in _COUNTS),
    ],
    decades=[
        *(0.001, 0.01, 0.1, 1, 10, 60, 600, 3600, 36000),
        *(86400 * 10**power for power in range(1, 31)),
    ],
)
