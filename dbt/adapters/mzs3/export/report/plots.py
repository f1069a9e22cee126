"""Plots as SVG, and the page's markup, in which nothing untrusted can become markup."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from html import escape

from dbt.adapters.mzs3.export.report.scales import Axis, Unit, bar_axis, line_axis
from dbt.adapters.mzs3.export.report.summary import Span, Spread
from dbt.adapters.mzs3.export.report.units import format_date, format_day

# What XML has no characters for, and what would reorder the text around it.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069"
    "\ud800-\udfff\ufffe\uffff]"
)
_VOID = {"meta", "br", "col", "rect", "line", "circle", "path"}

_ABOVE, _BELOW = 12, 22
_WIDEST_BAR = 2.4  # in %
_MOST_DOTS = 45
_DAY_STEPS = (1, 2, 3, 7, 14, 28, 56, 91, 182, 364)


class Markup(str):
    """Text that is markup already; anything else is escaped."""

    __slots__ = ()


def text(value: str) -> Markup:
    """The text for a reader to see, whatever is in it; what can't be shown becomes U+FFFD."""
    return Markup(escape(_UNPRINTABLE.sub("\ufffd", value), quote=True))


def tag(name: str, /, *children: str | None, **attributes: object) -> Markup:
    """An element, well-formed as XML and right as HTML.

    `class_` stands for `class`, `_` for `-`; an attribute or child that is None is left out.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_markup(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = join(*children)
    if name in _VOID and not inner:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{inner}</{name}>")


def join(*parts: str | None) -> Markup:
    """The parts one after another, escaped where they are not markup."""
    return Markup("".join(_markup(part) for part in parts if part is not None))


def _markup(value: str) -> str:
    return value if isinstance(value, Markup) else text(value)


@dataclass(frozen=True)
class Frame:
    """What a plot is called, for people who see it and people who don't, and its days."""

    id: str
    title: str
    description: str
    span: Span
    height: int = 150
    day_labels: int = 6

    def x(self, bucket: float) -> float:
        """The middle of a bucket, in % of the width."""
        return round((bucket + 0.5) / self.span.buckets * 100, 3)

    def y(self, share: float) -> float:
        """The pixels from the top, for a height from 0 to 1."""
        return round(_ABOVE + (1 - share) * (self.height - _ABOVE - _BELOW), 1)

    def dates(self, bucket: int) -> str:
        """`21 Nov 2026`, or `21 Nov 2026 and 2 days on`."""
        more = self.span.width - 1
        return format_date(self.span.day(bucket)) + (f" and {more} days on" if more else "")


@dataclass(frozen=True)
class Bar:
    """A stack of values from the bottom up, with their classes, and what is said on hovering."""

    parts: tuple[tuple[str, float], ...]
    title: str

    @property
    def total(self) -> float:
        """The height of the stack."""
        return sum(value for _, value in self.parts)


def bar_plot(frame: Frame, bars: Mapping[int, Bar], unit: Unit) -> Markup:
    """Stacked bars; one that is cut at the top carries its number."""
    axis = bar_axis([bar.total for bar in bars.values()], unit)
    drawn: list[Markup] = []
    labelled = -100.0
    for bucket, bar in bars.items():
        drawn.append(_stack(frame, axis, bucket, bar))
        x = frame.x(bucket)
        if bar.total > axis.top and x - labelled > 12:
            drawn.append(_text(unit.format(bar.total) + " ↑", x, _ABOVE - 3, "cut", 6))
            labelled = x
    return _plot(
        frame, axis, unit, join(*drawn), _hits(frame, ((b, v.title) for b, v in bars.items()))
    )


def line_plot(
    frame: Frame, values: Mapping[int, Spread], unit: Unit, *, is_interactive: bool
) -> Markup:
    """The medians as a line, in a band from lowest to highest."""
    axis = line_axis([value for each in values.values() for value in (each.low, each.high)], unit)
    drawn = [_curves(frame, axis, values)]
    last = max(values, default=-1)
    for bucket, spread in values.items():
        if bucket == last or len(values) <= _MOST_DOTS:
            at = {"cx": f"{frame.x(bucket)}%", "cy": frame.y(axis.at(spread.median))}
            is_last = bucket == last
            drawn.append(
                tag("circle", class_="last" if is_last else None, r=3.5 if is_last else 1.8, **at)
            )
    titles = ((bucket, _said(frame, unit.format, bucket, each)) for bucket, each in values.items())
    return _plot(frame, axis, unit, join(*drawn), _hits(frame, titles if is_interactive else ()))


def _plot(frame: Frame, axis: Axis, unit: Unit, marks: Markup, hits: Markup) -> Markup:
    scale = " Logarithmic scale." if axis.is_log else ""
    return tag(
        "svg",
        tag("title", frame.title, id=f"{frame.id}-t"),
        tag("desc", frame.description + scale, id=f"{frame.id}-d"),
        _grid(frame, axis, unit),
        marks,
        hits,
        class_="plot",
        role="img",
        aria_labelledby=f"{frame.id}-t {frame.id}-d",
        height=frame.height,
    )


def _grid(frame: Frame, axis: Axis, unit: Unit) -> Markup:
    drawn: list[Markup] = []
    for tick in axis.ticks:
        y = frame.y(axis.at(tick))
        of_zero = "zero" if tick == 0 else "grid"
        drawn.append(tag("line", class_=of_zero, x1="0", x2="100%", y1=y, y2=y))
        drawn.append(tag("text", unit.format(tick) if tick else "0", class_="y", x=-8, y=y + 4))
    if axis.is_log:
        drawn.append(tag("text", "log scale", class_="note", x="100%", y=9))
    span = frame.span
    days = span.buckets * span.width
    step = next((s for s in _DAY_STEPS if days / s <= frame.day_labels), days)
    step = max(1, round(step / span.width))
    for number, bucket in enumerate(range(0, span.buckets, step)):
        day = span.day(bucket)
        label = f"{format_day(day)} {day.year}" if days > 300 else format_day(day)
        kind = "x sparse" if number % 2 else "x"
        drawn.append(_text(label, frame.x(bucket), frame.height - 5, kind, 6))
    return join(*drawn)


def _stack(frame: Frame, axis: Axis, bucket: int, bar: Bar) -> Markup:
    width = min(_WIDEST_BAR, 78 / frame.span.buckets)
    x = f"{frame.x(bucket) - width / 2:.3f}%"
    drawn: list[Markup] = []
    below = 0.0
    for kind, value in bar.parts:
        top, bottom = frame.y(axis.at(below + value)), frame.y(axis.at(below))
        below += value
        # A value that is not zero is seen, however small.
        height = max(bottom - top, 1.5) if value else 0
        if height:
            y = round(bottom - height, 1)
            drawn.append(
                tag("rect", class_=kind, x=x, y=y, width=f"{width:.3f}%", height=round(height, 1))
            )
    return join(*drawn)


def _curves(frame: Frame, axis: Axis, values: Mapping[int, Spread]) -> Markup:
    """In a box of its own that is stretched to the plot's width; 1000 wide inside."""
    if len(values) < 2:
        return Markup("")

    def path(points: Iterable[tuple[int, float]]) -> str:
        return "L".join(f"{frame.x(b) * 10:.1f} {frame.y(axis.at(v)):.1f}" for b, v in points)

    line = path((bucket, each.median) for bucket, each in values.items())
    upper = path((bucket, each.high) for bucket, each in values.items())
    lower = path((bucket, each.low) for bucket, each in reversed(list(values.items())))
    is_banded = any(each.low < each.high for each in values.values())
    return tag(
        "svg",
        tag("path", class_="band", d=f"M{upper}L{lower}Z") if is_banded else None,
        tag("path", class_="line", d=f"M{line}"),
        width="100%",
        height=frame.height,
        viewBox=f"0 0 1000 {frame.height}",
        preserveAspectRatio="none",
    )


def _hits(frame: Frame, titles: Iterable[tuple[int, str]]) -> Markup:
    """What answers to the pointer: the whole height above a bucket."""
    width = 100 / frame.span.buckets
    place = {"y": _ABOVE, "width": f"{width:.3f}%", "height": frame.height - _ABOVE - _BELOW}
    return join(
        *(
            tag("rect", tag("title", title), class_="hit", x=f"{bucket * width:.3f}%", **place)
            for bucket, title in titles
        )
    )


def _said(frame: Frame, write: Callable[[float], str], bucket: int, spread: Spread) -> str:
    said = f"{frame.dates(bucket)}: {write(spread.median)}"
    if spread.count == 1:
        return said
    extent = f"{write(spread.low)} to {write(spread.high)}"
    return f"{said} in the middle of {spread.count} exports, {extent}"


def _text(label: str, x: float, y: float, kind: str, edge: float) -> Markup:
    """Centred on its place, unless that is so near an edge that it would stick out."""
    side = " start" if x < edge else " end" if x > 100 - edge else ""
    return tag(
        "text",
        label,
        class_=kind + side,
        x=f"{0 if side == ' start' else 100 if side else x}%",
        y=y,
    )
