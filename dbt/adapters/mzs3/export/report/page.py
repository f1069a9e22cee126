"""The page: one HTML file that needs nothing else, no network and no script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from importlib.resources import files

from dbt.adapters.mzs3.export.report import units
from dbt.adapters.mzs3.export.report.cards import (
    failure_list,
    model_card,
    model_id,
    model_name,
    run_badge,
    split_id,
)
from dbt.adapters.mzs3.export.report.plots import Bar, Frame, Markup, bar_plot, join, tag
from dbt.adapters.mzs3.export.report.scales import BYTES, COUNT
from dbt.adapters.mzs3.export.report.summary import (
    MAX_RUNS,
    STATUSES,
    STRIP,
    WORDS,
    ModelRuns,
    ReportedRun,
    RunTotals,
    Span,
    Summary,
    bucket_totals,
    summarize,
)

MAX_MODELS = 300
_OPEN_MODELS = 24
_UNINDEXED = 8
# What an error text might smuggle in would still find every door shut.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_PATTERN = Markup(
    '<svg class="patterns" width="0" height="0" aria-hidden="true"><defs><pattern id="hatch" '
    'width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect class="hatch-ground" width="5" height="5"/><rect class="hatch-line" width="2" '
    'height="5"/></pattern></defs></svg>'
)

_HEIGHT = 190

_NAMED = 6
_NAME = 60


def render_report(
    runs: Iterable[ReportedRun],
    *,
    now: datetime,
    title: str = "Exports to S3",
    subject: str | None = None,
    since: datetime | None = None,
) -> str:
    """The page about these runs, well-formed as XML; no text of a run can become markup in it.

    Give the runs newest first: of more than MAX_RUNS, the rest is left out, and the page says so.
    `subject` says whose exports they are, `since` from when on they were looked for; `now` is
    aware of its time zone. The page's size depends on models and days, not on runs.
    """
    summary = summarize(runs, now)
    if not summary.totals.count:
        content = join(_heading(title, subject, None, now), _nothing(since))
    else:
        content = join(
            _heading(title, subject, summary, now),
            lead(summary),
            headline(summary),
            overall_plots(summary),
            _models(summary),
            _failures(summary),
        )
    return f"<!DOCTYPE html>\n{_document(title, content)}\n"


def _document(title: str, content: Markup) -> Markup:
    style = files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    return tag(
        "html",
        tag(
            "head",
            tag("meta", charset="utf-8"),
            Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"/>'),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="color-scheme", content="light dark"),
            tag("title", title),
            tag("style", Markup(style)),
        ),
        tag("body", _PATTERN, tag("main", content)),
        lang="en",
    )


def _heading(title: str, subject: str | None, summary: Summary | None, now: datetime) -> Markup:
    said = [subject] if subject else []
    if summary is not None:
        span = summary.span
        said.append(f"{units.format_date(span.first)} to {units.format_date(span.last)}")
        said.append(units.plural(len(summary.models), "model"))
    said.append(f"made {units.format_time(now)}; all times are UTC")
    return tag("header", tag("h1", title), tag("p", " · ".join(said)), class_="top")


def _nothing(since: datetime | None) -> Markup:
    found = f"since {units.format_date(since.astimezone(timezone.utc))}" if since else "yet"
    example = "models:\n  - name: orders_export\n    config:\n      materialized: copy_to_s3"
    return tag(
        "section",
        tag("h2", f"No exports {found}"),
        tag("p", "Every run of a ", tag("code", "copy_to_s3"), " model will show up here."),
        tag(
            "ol",
            tag("li", "Have a model that is exported:", tag("pre", example)),
            tag("li", "Run it: ", tag("code", "dbt run --select orders_export")),
            tag("li", "Make this page again: ", tag("code", "dbt run-operation copy_report")),
        ),
        tag(
            "p",
            "You have run exports? Look further back, with ",
            tag("code", "--args '{days: 365}'"),
            ", or in another schema, with ",
            tag("code", "--args '{schema: analytics}'"),
            ".",
        ),
        class_="nothing",
    )


def _models(summary: Summary) -> Markup:
    shown = summary.models[:MAX_MODELS]
    left = len(summary.models) - len(shown)
    cards = [
        model_card(number, model, summary.span, is_open=number < _OPEN_MODELS)
        for number, model in enumerate(shown)
    ]
    return tag(
        "section",
        tag("h2", "Models"),
        tag(
            "p",
            f"A tick is an export, the newest at the right, at most {STRIP}. Lines show exports "
            "that succeeded: the median of a day, in a band from its lowest to its highest.",
            class_="quiet",
        ),
        _index(shown),
        *cards,
        tag("p", f"{units.plural(left, 'model')} more, by name, are counted above.")
        if left
        else None,
    )


def _index(models: list[ModelRuns]) -> Markup | None:
    """Links to the cards, where these are too many to scroll through."""
    if len(models) <= _UNINDEXED:
        return None
    entries = [
        tag(
            "li",
            tag("a", *model_name(model.model), href=f"#{model_id(number)}"),
            " ",
            run_badge(model.last) if model.last.is_noteworthy else None,
        )
        for number, model in enumerate(models)
    ]
    return tag("nav", tag("ul", *entries), class_="index", aria_label="Models")


def _failures(summary: Summary) -> Markup | None:
    if not summary.failures:
        return None
    totals = summary.totals
    of_all = totals.count - totals.runs["ok"] + totals.left
    shown = len(summary.failures)
    head = "Failed, cancelled or with old files left" if totals.left else "Failed and cancelled"
    head += f", the latest {shown} of {of_all:,}" if shown < of_all else ""
    return tag("section", tag("h2", head), failure_list(summary.failures), id="failures")


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


def _exports(title: str, summary: Summary, buckets: dict[int, RunTotals]) -> Markup:
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


def _size(title: str, summary: Summary, buckets: dict[int, RunTotals]) -> Markup:
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


def _counted(totals: RunTotals) -> str:
    return ", ".join(
        f"{totals.runs[each]:,} {WORDS[each]}" for each in STATUSES if totals.runs[each]
    )


def _key(status: str) -> Markup:
    swatch = tag("rect", class_=status, x=1, y=1, width=10, height=10)
    return tag("svg", swatch, class_="key", width=12, height=12, aria_hidden="true")


def _table(span: Span, buckets: dict[int, RunTotals]) -> Markup:
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


def lead(summary: Summary) -> Markup:
    """How the latest export of each model ended, with links to those that did not succeed."""
    models = summary.models
    left = _left(models)
    bad = [(number, model) for number, model in enumerate(models) if model.last.status != "ok"]
    if len(models) == 1:
        said = "did not succeed" if bad else "succeeded"
        return tag("p", f"The latest export {said}.{left}", class_="lead bad" if bad else "lead")
    if not bad:
        return tag("p", f"The latest export of every model succeeded.{left}", class_="lead")
    links = [
        tag("a", _short(model.model), href=f"#{model_id(number)}")
        for number, model in bad[:_NAMED]
    ]
    named: list[str] = [part for link in links for part in (", ", link)][1:]
    more = f" and {len(bad) - _NAMED:,} more" if len(bad) > _NAMED else ""
    said = f"The latest export of {len(bad):,} of {units.plural(len(models), 'model')}"
    return tag("p", said, " did not succeed: ", *named, more, f".{left}", class_="lead bad")


def _left(models: Sequence[ModelRuns]) -> str:
    count = sum(model.last.left_old_files for model in models)
    if not count:
        return ""
    who = "It" if len(models) == 1 else f"{count:,} of those that succeeded"
    return f" {who} left files of the export before it, for whoever lists the location."


def _short(model: str) -> str:
    _, name = split_id(model)
    return name if len(name) <= _NAME else name[:_NAME] + "\N{HORIZONTAL ELLIPSIS}"


def headline(summary: Summary) -> Markup:
    """Five numbers; beside the short ones the exact ones."""
    totals = summary.totals
    failed = totals.runs["error"], totals.runs["cancelled"]
    tiles = (
        ("Exports", units.format_count(totals.count), _cut(summary)),
        (
            "Succeeded",
            units.format_share(totals.runs["ok"], totals.count),
            f"{failed[0]:,} failed, {failed[1]:,} cancelled",
        ),
        (
            "Median duration",
            units.format_duration(summary.median_seconds),
            "of those that succeeded",
        ),
        ("Rows", _rows(totals.rows), f"{units.format_count(totals.rows)} exported"),
        ("Size", units.format_bytes(totals.bytes), f"{units.format_count(totals.bytes)} bytes"),
    )
    return tag(
        "dl",
        *(
            tag("div", tag("dt", name), tag("dd", value, class_="big"), tag("dd", more))
            for name, value, more in tiles
        ),
        class_="headline",
    )


def _rows(count: int) -> str:
    return units.format_count(count) if count < 100_000 else units.format_compact(count)


def _cut(summary: Summary) -> str:
    if summary.is_cut:
        return f"the newest {units.format_count(MAX_RUNS)}; older ones are left out"
    return f"of {units.plural(len(summary.models), 'model')}"
