"""The axes of plots, and the positions of their marks; `templates/plots.svg` draws them."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dbt.adapters.mzs3.export.report import units
from dbt.adapters.mzs3.export.report.summary import Span, Spread

_MAX_STEPS = 4  # on an axis
_LINE_OUTLIER = 25  # times the median
_BAR_OUTLIER = 6  # times the 90th percentile
# The height of the lowest value on a logarithmic axis, as a share of the axis; zero is below.
_LOG_FLOOR = 0.12
_TOP_MARGIN, _BOTTOM_MARGIN = 12, 22  # in pixels
_MAX_BAR_WIDTH = 2.4  # in % of the plot
_MIN_BAR_HEIGHT = 1.5  # in pixels
_MIN_TOTAL_DISTANCE = 12  # in % of the plot, between totals above cut bars
_DAY_STEPS = (1, 2, 3, 7, 14, 28, 56, 91, 182, 364)


@dataclass(frozen=True)
class Unit:
    """A quantity: its format, and the `steps` and `decades` of its linear and log axes."""

    format: Callable[[float], str]
    steps: Sequence[float]
    decades: Sequence[float]


@dataclass(frozen=True)
class Axis:
    """The ticks of an axis, ascending, and its scale."""

    ticks: tuple[float, ...]
    bottom: float
    top: float
    is_log: bool = False

    def at(self, value: float) -> float:
        """The height of a value: 0 is the bottom, 1 the top; values beyond them are clipped."""
        if not self.is_log:
            return min(1.0, max(0.0, value / self.top))
        if value <= 0:
            return 0.0
        share = math.log(value / self.bottom) / math.log(self.top / self.bottom)
        return min(1.0, _LOG_FLOOR + (1 - _LOG_FLOOR) * max(0.0, share))


def line_axis(values: Sequence[float], unit: Unit) -> Axis:
    """An axis from zero; logarithmic if outliers would make all other values look like zero."""
    positive = sorted(value for value in values if value > 0)
    if positive and positive[-1] > _LINE_OUTLIER * positive[len(positive) // 2]:
        return _log_axis(positive, unit, has_zero=len(positive) < len(values))
    return _linear(positive[-1] if positive else 0, unit)


def bar_axis(values: Sequence[float], unit: Unit) -> Axis:
    """A linear axis from zero, as readers compare lengths of bars; outliers are cut at the top."""
    positive = sorted(value for value in values if value > 0)
    if not positive:
        return _linear(0, unit)
    percentile_90 = positive[math.ceil(len(positive) * 0.9) - 1]
    is_cut = positive[-1] > _BAR_OUTLIER * percentile_90
    return _linear(1.3 * percentile_90 if is_cut else positive[-1], unit)


def _linear(highest: float, unit: Unit) -> Axis:
    step = next(step for step in unit.steps if step * _MAX_STEPS >= highest)
    steps = max(1, math.ceil(highest / step))
    return Axis(tuple(step * number for number in range(steps + 1)), 0, step * steps)


def _log_axis(positive: Sequence[float], unit: Unit, *, has_zero: bool) -> Axis:
    first = max(0, bisect_right(unit.decades, positive[0]) - 1)
    last = max(1, bisect_left(unit.decades, positive[-1]))
    marks = unit.decades[first : last + 1]
    every = math.ceil(len(marks) / _MAX_STEPS)
    ticks = (*([0.0] if has_zero else []), *marks[::-1][::every][::-1])
    return Axis(ticks, marks[0], marks[-1], is_log=True)


# Steps up to 10^30, which is more than any export has.
_COUNTS = [digit * 10**power for power in range(31) for digit in (1, 2, 5)]
COUNT = Unit(units.format_compact, _COUNTS, decades=[10.0**power for power in range(31)])
BYTES = Unit(
    units.format_bytes,
    steps=[digit * 1024**power for power in range(11) for digit in _COUNTS[:9]],
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


@dataclass(frozen=True)
class Plot:
    """A plot of values by day. Horizontal positions are in % of the width, vertical in pixels."""

    span: Span
    unit: Unit
    axis: Axis
    height: int
    most_days: int

    top = _TOP_MARGIN

    @property
    def inner_height(self) -> int:
        """The height in pixels without the labels at the top and the bottom."""
        return self.height - _TOP_MARGIN - _BOTTOM_MARGIN

    def x(self, bucket: float) -> float:
        """The horizontal middle of a bucket; its left edge, if called with `bucket - 0.5`."""
        return round((bucket + 0.5) / self.span.buckets * 100, 3)

    def y(self, value: float) -> float:
        """The position of a value in pixels from the top."""
        return round(_TOP_MARGIN + (1 - self.axis.at(value)) * self.inner_height, 1)

    @property
    def days(self) -> list[tuple[float, str]]:
        """At most about `most_days` labels of days, each after its horizontal position."""
        span = self.span
        days = span.buckets * span.width
        step = next((s for s in _DAY_STEPS if days / s <= self.most_days), days)
        buckets = range(0, span.buckets, max(1, round(step / span.width)))
        format_day = units.format_date if days > 300 else units.format_day
        return [(self.x(bucket), format_day(span.day(bucket))) for bucket in buckets]


@dataclass(frozen=True)
class BarPlot(Plot):
    """A stacked bar for each bucket: CSS class to value, from the bottom to the top."""

    stacks: Mapping[int, Mapping[str, int]]

    @property
    def bar_width(self) -> float:
        """The width of a bar in % of the plot's width."""
        return round(min(_MAX_BAR_WIDTH, 78 / self.span.buckets), 3)

    def bars(self, bucket: int) -> Iterator[tuple[str, float, float]]:
        """For each positive value of a bar: its class, top and visible height, in pixels."""
        below = 0.0
        for kind, value in self.stacks[bucket].items():
            top, bottom = self.y(below + value), self.y(below)
            below += value
            if value:
                height = round(max(bottom - top, _MIN_BAR_HEIGHT), 1)
                yield kind, round(bottom - height, 1), height

    @property
    def cut(self) -> dict[int, float]:
        """The totals of buckets whose bars are cut at the top, without those close to another."""
        found: dict[int, float] = {}
        last = -100.0
        for bucket, stack in self.stacks.items():
            total = sum(stack.values())
            if total > self.axis.top and self.x(bucket) - last > _MIN_TOTAL_DISTANCE:
                found[bucket] = total
                last = self.x(bucket)
        return found


@dataclass(frozen=True)
class LinePlot(Plot):
    """The medians of buckets as a line, in a band from the lowest to the highest values."""

    spreads: Mapping[int, Spread]

    @property
    def line(self) -> str:
        """The line as an SVG path; the plot is 1000 wide."""
        return f"M{self._points((bucket, each.median) for bucket, each in self.spreads.items())}"

    @property
    def band(self) -> str | None:
        """The band as an SVG path; None if lowest and highest values are equal everywhere."""
        if all(each.low == each.high for each in self.spreads.values()):
            return None
        upper = self._points((bucket, each.high) for bucket, each in self.spreads.items())
        lower = self._points((b, each.low) for b, each in reversed(list(self.spreads.items())))
        return f"M{upper}L{lower}Z"

    def _points(self, values: Iterable[tuple[int, float]]) -> str:
        return "L".join(
            f"{self.x(bucket) * 10:.1f} {self.y(value):.1f}" for bucket, value in values
        )


def bar_plot(span: Span, unit: Unit, stacks: Mapping[int, Mapping[str, int]]) -> BarPlot:
    """A bar plot, as wide as the page."""
    axis = bar_axis([sum(stack.values()) for stack in stacks.values()], unit)
    return BarPlot(span, unit, axis, 190, 6, stacks)


def line_plot(span: Span, unit: Unit, spreads: Mapping[int, Spread]) -> LinePlot:
    """A line plot, a third of the page wide."""
    values = [value for each in spreads.values() for value in (each.low, each.high)]
    return LinePlot(span, unit, line_axis(values, unit), 132, 3, spreads)
