"""A card for each model: its latest runs, and what its exports took and wrote over time."""

from __future__ import annotations

from dbt.adapters.mzs3.export.history.report import units
from dbt.adapters.mzs3.export.history.report.markup import Markup, join, tag
from dbt.adapters.mzs3.export.history.report.plots import Frame, line_plot
from dbt.adapters.mzs3.export.history.report.run import WORDS, ReportedRun, Status
from dbt.adapters.mzs3.export.history.report.scales import BYTES, COUNT, SECONDS, Unit
from dbt.adapters.mzs3.export.history.report.strip import status_strip
from dbt.adapters.mzs3.export.history.report.summary import ModelRuns, Span, Spread, spreads

_LATEST = 10
_SIGNS: dict[Status, str] = {"ok": "●", "error": "▲", "cancelled": "○"}


def model_card(number: int, model: ModelRuns, span: Span, *, is_open: bool) -> Markup:
    """The card; with `is_open` its plots are in sight and answer to the pointer."""
    plots = _plots(number, model, span, is_interactive=is_open)
    return tag(
        "article",
        tag(
            "header",
            tag("h3", *model_name(model.model)),
            run_badge(model.last),
            class_="card-head",
        ),
        tag("p", model.last.location, class_="location"),
        status_strip(f"m{number}-s", model.model, model.newest),
        _numbers(model),
        plots if is_open else _folded("Plots", plots),
        _folded("Latest exports", _latest_runs(model)),
        class_="card",
        id=model_id(number),
    )


def model_id(number: int) -> str:
    """The anchor of a model's card, by its place on the page."""
    return f"m{number}"


def model_name(model: str) -> tuple[Markup, ...]:
    """A dbt id with the model's name in front of the eye; others as they are."""
    path, name = split_id(model)
    shown = tag("span", name, class_="name")
    return (tag("span", path, class_="path"), shown) if path else (shown,)


def split_id(model: str) -> tuple[str, str]:
    """What a dbt id has before the model's name, and that: `orders.v2` is a version's."""
    kind, _, rest = model.partition(".")
    project, _, name = rest.partition(".")
    return (f"{kind}.{project}.", name) if kind and project and name else ("", model)


def run_badge(run: ReportedRun) -> Markup:
    """How the run ended, as a sign and a few words."""
    left = ", old files left" if run.left_old_files else ""
    return tag(
        "span",
        tag("span", _SIGNS[run.status], aria_hidden="true"),
        f" {WORDS[run.status]}{left}",
        class_=f"badge {run.status}",
    )


def _numbers(model: ModelRuns) -> Markup:
    totals, last = model.totals, model.last
    facts = [
        ("Exports", units.format_count(totals.count)),
        ("Succeeded", units.format_share(totals.runs["ok"], totals.count)),
        ("Median duration", units.format_duration(model.median_seconds)),
        ("Latest export", _latest(last)),
    ]
    if last.status != "ok":
        success = model.last_success
        facts.append(("Latest success", units.format_time(success) if success else "none"))
    return tag("dl", *(tag("div", tag("dt", k), tag("dd", v)) for k, v in facts), class_="facts")


def _latest(run: ReportedRun) -> str:
    said = units.format_time(run.started)
    if run.status == "ok":
        said += f" · {units.plural(run.rows or 0, 'row')} · {units.format_bytes(run.bytes or 0)}"
    return said


def _plots(number: int, model: ModelRuns, span: Span, *, is_interactive: bool) -> Markup:
    if not model.seconds:
        return tag("p", "No export of this model succeeded in this time.", class_="quiet")

    def plot(name: str, values: dict[int, list[float]], unit: Unit) -> Markup:
        found = spreads(values, span)
        frame = Frame(
            id=f"m{number}-{name.lower()}",
            title=f"{name} of {model.model}",
            description=_described(found, unit),
            span=span,
            height=132,
            day_labels=3,
        )
        drawn = line_plot(frame, found, unit, is_interactive=is_interactive)
        return tag("figure", tag("figcaption", name), drawn)

    return tag(
        "div",
        plot("Duration", model.seconds, SECONDS),
        plot("Rows", model.rows, COUNT),
        plot("Size", model.bytes, BYTES),
        class_="trio",
    )


def _described(found: dict[int, Spread], unit: Unit) -> str:
    if not found:
        return "No values."
    low = unit.format(min(each.low for each in found.values()))
    high = unit.format(max(each.high for each in found.values()))
    last = unit.format(found[max(found)].median)
    return f"From {low} to {high}; {last} at the end."


def _latest_runs(model: ModelRuns) -> Markup:
    heads = ("Started", "Status", "Duration", "Rows", "Size", "Files")
    return tag(
        "div",
        tag(
            "table",
            tag("thead", tag("tr", *(tag("th", head, scope="col") for head in heads))),
            tag("tbody", *(_row(run) for run in reversed(model.newest[-_LATEST:]))),
            class_="runs",
        ),
        class_="scroll",
        role="region",
        aria_label=f"Latest exports of {model.model}",
        tabindex=0,
    )


def _row(run: ReportedRun) -> Markup:
    cells = (
        units.format_time(run.started),
        run_badge(run),
        units.format_duration(run.seconds),
        units.format_count(run.rows),
        units.format_bytes(run.bytes),
        units.format_count(run.files),
    )
    return tag("tr", *(tag("td", cell) for cell in cells))


def _folded(summary: str, content: Markup) -> Markup:
    return tag("details", tag("summary", summary), join(content))
