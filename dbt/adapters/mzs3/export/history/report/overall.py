"""All models together: exports per day by status, and what they wrote."""

from __future__ import annotations

from dbt.adapters.mzs3.export.history.report import units
from dbt.adapters.mzs3.export.history.report.markup import Markup, join, tag
from dbt.adapters.mzs3.export.history.report.plots import Bar, Frame, bar_plot
from dbt.adapters.mzs3.export.history.report.run import STATUSES, WORDS
from dbt.adapters.mzs3.export.history.report.scales import BYTES, COUNT
from dbt.adapters.mzs3.export.history.report.summary import Span, Summary, Totals, bucket_totals

_HEIGHT = 190


def overall_plots(summary: Summary) -> Markup:
    """Plots over the same days, and their numbers in a table."""
    span = summary.span
    per = "day" if span.width == 1 else f"{span.width} days"
    buckets = bucket_totals(summary.days, span)
    return tag(
        "section",
        _exports(f"Exports per {per}", summary, buckets),
        _size(f"Size per {per}", summary, buckets),
        tag("details", tag("summary", "These numbers as a table"), _table(span, buckets)),
        class_="overall",
    )


def _exports(title: str, summary: Summary, buckets: dict[int, Totals]) -> Markup:
    runs = summary.totals.runs
    counted = ", ".join(f"{units.format_count(runs[each])} {WORDS[each]}" for each in STATUSES)
    frame = Frame("runs", title, f"In all: {counted}.", summary.span, _HEIGHT)
    bars = {
        bucket: Bar(
            tuple((status, totals.runs[status]) for status in STATUSES),
            f"{frame.dates(bucket)}: {_counted(totals)}",
        )
        for bucket, totals in buckets.items()
    }
    keys = [tag("li", _key(status), WORDS[status]) for status in STATUSES if runs[status]]
    return tag(
        "figure",
        tag("figcaption", tag("h2", title), tag("ul", *keys, class_="legend")),
        bar_plot(frame, bars, COUNT),
    )


def _size(title: str, summary: Summary, buckets: dict[int, Totals]) -> Markup:
    if not summary.totals.bytes:
        return tag("p", "Nothing was written.", class_="quiet")
    total = units.format_bytes(summary.totals.bytes)
    frame = Frame("size", title, f"In all: {total}.", summary.span, _HEIGHT)
    bars = {
        bucket: Bar(
            (("volume", totals.bytes),),
            f"{frame.dates(bucket)}: {units.format_bytes(totals.bytes)}, "
            f"{units.plural(totals.rows, 'row')}",
        )
        for bucket, totals in buckets.items()
    }
    return tag("figure", tag("figcaption", tag("h2", title)), bar_plot(frame, bars, BYTES))


def _counted(totals: Totals) -> str:
    return ", ".join(
        f"{totals.runs[each]:,} {WORDS[each]}" for each in STATUSES if totals.runs[each]
    )


def _key(status: str) -> Markup:
    swatch = tag("rect", class_=status, x=1, y=1, width=10, height=10)
    return tag("svg", swatch, class_="key", width=12, height=12, aria_hidden="true")


def _table(span: Span, buckets: dict[int, Totals]) -> Markup:
    heads = ("Day", *(WORDS[status].capitalize() for status in STATUSES), "Rows", "Size")
    rows = [
        tag(
            "tr",
            tag("th", units.format_date(span.day(bucket)), scope="row"),
            *(tag("td", units.format_count(totals.runs[status])) for status in STATUSES),
            tag("td", units.format_count(totals.rows)),
            tag("td", units.format_bytes(totals.bytes)),
        )
        for bucket, totals in reversed(buckets.items())
    ]
    head = tag("thead", tag("tr", *(tag("th", each, scope="col") for each in heads)))
    return tag(
        "div",
        tag("table", head, tag("tbody", join(*rows))),
        class_="scroll",
        role="region",
        aria_label="Exports and size by day",
        tabindex=0,
    )
