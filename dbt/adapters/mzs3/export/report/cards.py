"""What the report shows of runs: a card for each model, its latest, and the failures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from dbt.adapters.mzs3.export.report import units
from dbt.adapters.mzs3.export.report.plots import Frame, Markup, join, line_plot, tag
from dbt.adapters.mzs3.export.report.scales import BYTES, COUNT, SECONDS, Unit
from dbt.adapters.mzs3.export.report.summary import (
    STRIP,
    WORDS,
    ModelRuns,
    ReportedRun,
    Span,
    Spread,
    Status,
    spreads,
)

_LATEST = 10
_SIGNS: dict[Status, str] = {"ok": "●", "error": "▲", "cancelled": "○"}

_HEIGHT = 32
# Statuses differ in form too: a failure stands out at full height, a cancelled run is hollow.
_HEIGHTS: dict[Status, int] = {"ok": 22, "error": 32, "cancelled": 22}

_LONG = 700


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


def status_strip(id: str, model: str, runs: Sequence[ReportedRun]) -> Markup:
    """Oldest first, at most STRIP; places of runs that never were are faint."""
    runs = runs[-STRIP:]
    empty = STRIP - len(runs)
    counts = [
        f"{sum(run.status == status for run in runs)} {word}" for status, word in WORDS.items()
    ]
    places = [_tick(place, "none", 4, None) for place in range(empty)]
    ticks = [
        _tick(empty + number, run.status, _HEIGHTS[run.status], run_title(run))
        for number, run in enumerate(runs)
    ]
    return tag(
        "svg",
        tag("title", f"Latest {units.plural(len(runs), 'export')} of {model}", id=f"{id}-t"),
        tag("desc", f"Oldest first: {', '.join(counts)}.", id=f"{id}-d"),
        join(*places, *ticks),
        class_="strip",
        role="img",
        aria_labelledby=f"{id}-t {id}-d",
        height=_HEIGHT,
    )


def run_title(run: ReportedRun) -> str:
    """One run in a line or two: when, how it ended, how long, how much."""
    said = [units.format_time(run.started), WORDS[run.status]]
    if run.seconds is not None:
        said.append(units.format_duration(run.seconds))
    if run.status == "ok":
        said.append(units.plural(run.rows or 0, "row"))
        said.append(units.format_bytes(run.bytes or 0))
    error = f"\n{run.error}" if run.error else ""
    return " · ".join(said) + error


def _tick(place: int, kind: str, height: int, title: str | None) -> Markup:
    width = 100 / STRIP
    return tag(
        "rect",
        None if title is None else tag("title", title),
        class_=kind,
        x=f"{(place + 0.14) * width:.2f}%",
        y=(_HEIGHT - height),
        width=f"{width * 0.72:.2f}%",
        height=height,
    )


def failure_list(failures: Iterable[ReportedRun]) -> Markup:
    """Newest first; those of one model that follow each other with the same error are one."""
    grouped = groupby(failures, key=lambda run: (run.model, run.status, run.error))
    return tag("ol", *(_entry(list(runs)) for _, runs in grouped), class_="failures")


def _entry(runs: list[ReportedRun]) -> Markup:
    run = runs[0]
    return tag(
        "li",
        tag(
            "div",
            tag("p", *model_name(run.model), class_="model"),
            tag("p", _ending(run)),
            tag("p", units.format_time(run.started)),
            _repeats(runs),
            class_="when",
        ),
        tag("div", _error(run), _particulars(run), class_="what"),
    )


def _ending(run: ReportedRun) -> Markup:
    after = f" after {units.format_duration(run.seconds)}" if run.seconds is not None else ""
    return join(run_badge(run), after)


def _repeats(runs: list[ReportedRun]) -> Markup | None:
    if len(runs) == 1:
        return None
    times = units.plural(len(runs) - 1, "time")
    return tag("p", f"and {times} before, since {units.format_time(runs[-1].started)}")


def _error(run: ReportedRun) -> Markup:
    error = (run.error or "").strip()
    if not error:
        return tag("p", "No error text was kept.", class_="quiet")
    if len(error) <= _LONG:
        return tag("pre", error)
    first = error.splitlines()[0]
    cut = first if len(first) <= 200 else first[:200] + "\N{HORIZONTAL ELLIPSIS}"
    return tag("details", tag("summary", cut, class_="long"), tag("pre", error))


def _particulars(run: ReportedRun) -> Markup:
    said = [run.location]
    if run.on_existing:
        said.append(f"on_existing: {run.on_existing}")
    if run.invocation_id:
        said.append(f"invocation {run.invocation_id}")
    return tag("p", " · ".join(said), class_="location")
