"""The latest runs that did not succeed, or not wholly, with what they said; repeats said once."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from dbt.adapters.mzs3.export.history.report import units
from dbt.adapters.mzs3.export.history.report.cards import model_name, run_badge
from dbt.adapters.mzs3.export.history.report.markup import Markup, join, tag
from dbt.adapters.mzs3.export.history.report.run import ReportedRun

_LONG = 700


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
