"""Where each mark of a plot stands; `templates/plots.svg` draws them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from dbt.adapters.mzs3.export.report.scales import Axis, Unit, bar_axis, line_axis
from dbt.adapters.mzs3.export.report.summary import Span, Spread
from dbt.adapters.mzs3.export.report.units import format_date, format_day

_ABOVE, _BELOW = 12, 22
_WIDEST_BAR = 2.4  # in %
_LOWEST_BAR = 1.5
_BETWEEN_NUMBERS = 12  # in %
_DAY_STEPS = (1, 2, 3, 7, 14, 28, 56, 91, 182, 364)


@dataclass(frozen=True)
class Plot:
    """Days from left to right, in % of the width; values from the bottom up, in pixels."""

    span: Span
    unit: Unit
    axis: Axis
    height: int
    most_days: int

    top = _ABOVE

    @property
    def inner_height(self) -> int:
        """The pixels between the labels above and those below."""
        return self.height - _ABOVE - _BELOW

    def left(self, bucket: int) -> float:
        """Where a bucket starts."""
        return round(bucket / self.span.buckets * 100, 3)

    def x(self, bucket: int) -> float:
        """The middle of a bucket."""
        return round((bucket + 0.5) / self.span.buckets * 100, 3)

    def y(self, value: float) -> float:
        """The pixels from the top."""
        return round(_ABOVE + (1 - self.axis.at(value)) * self.inner_height, 1)

    @property
    def days(self) -> list[tuple[float, str]]:
        """The days to write below, at most about `most_days`, each with its place."""
        span = self.span
        days = span.buckets * span.width
        step = next((s for s in _DAY_STEPS if days / s <= self.most_days), days)
        buckets = range(0, span.buckets, max(1, round(step / span.width)))
        write = format_date if days > 300 else format_day
        return [(self.x(bucket), write(span.day(bucket))) for bucket in buckets]


@dataclass(frozen=True)
class BarPlot(Plot):
    """Stacks of values from the bottom up, by bucket; each value has its CSS class."""

    stacks: Mapping[int, Mapping[str, int]]

    @property
    def bar_width(self) -> float:
        """In % of the width."""
        return round(min(_WIDEST_BAR, 78 / self.span.buckets), 3)

    def bars(self, bucket: int) -> Iterator[tuple[str, float, float]]:
        """Class, pixels from the top, and height; a value that is not zero is seen."""
        below = 0.0
        for kind, value in self.stacks[bucket].items():
            top, bottom = self.y(below + value), self.y(below)
            below += value
            if value:
                height = round(max(bottom - top, _LOWEST_BAR), 1)
                yield kind, round(bottom - height, 1), height

    @property
    def cut(self) -> dict[int, float]:
        """The stacks that are cut at the top, and their totals; none near another."""
        found: dict[int, float] = {}
        last = -100.0
        for bucket, stack in self.stacks.items():
            total = sum(stack.values())
            if total > self.axis.top and self.x(bucket) - last > _BETWEEN_NUMBERS:
                found[bucket] = total
                last = self.x(bucket)
        return found


@dataclass(frozen=True)
class LinePlot(Plot):
    """The medians of buckets as a line, in a band from lowest to highest."""

    spreads: Mapping[int, Spread]

    @property
    def line(self) -> str:
        """An SVG path, 1000 wide."""
        return f"M{self._points((bucket, each.median) for bucket, each in self.spreads.items())}"

    @property
    def band(self) -> str | None:
        """An SVG path, 1000 wide; None where lowest and highest are the same throughout."""
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
    """A plot over the whole width of the page."""
    axis = bar_axis([sum(stack.values()) for stack in stacks.values()], unit)
    return BarPlot(span, unit, axis, 190, 6, stacks)


def line_plot(span: Span, unit: Unit, spreads: Mapping[int, Spread]) -> LinePlot:
    """A plot over a third of the page."""
    values = [value for each in spreads.values() for value in (each.low, each.high)]
    return LinePlot(span, unit, line_axis(values, unit), 132, 3, spreads)
