"""The page: one HTML file that needs nothing else, no network and no script."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone
from importlib.resources import files

from dbt.adapters.mzs3.export.history.report import units
from dbt.adapters.mzs3.export.history.report.cards import (
    model_card,
    model_id,
    model_name,
    run_badge,
)
from dbt.adapters.mzs3.export.history.report.failures import failure_list
from dbt.adapters.mzs3.export.history.report.headline import headline, lead
from dbt.adapters.mzs3.export.history.report.markup import Markup, join, tag
from dbt.adapters.mzs3.export.history.report.overall import overall_plots
from dbt.adapters.mzs3.export.history.report.run import ReportedRun
from dbt.adapters.mzs3.export.history.report.summary import (
    STRIP,
    ModelRuns,
    Summary,
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
