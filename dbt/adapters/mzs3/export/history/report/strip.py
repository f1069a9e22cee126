"""The status strip: a tick for each of a model's latest runs, the newest at the right."""

from __future__ import annotations

from collections.abc import Sequence

from dbt.adapters.mzs3.export.history.report import units
from dbt.adapters.mzs3.export.history.report.markup import Markup, join, tag
from dbt.adapters.mzs3.export.history.report.run import WORDS, ReportedRun, Status
from dbt.adapters.mzs3.export.history.report.summary import STRIP

_HEIGHT = 32
# Statuses differ in form too: a failure stands out at full height, a cancelled run is hollow.
_HEIGHTS: dict[Status, int] = {"ok": 22, "error": 32, "cancelled": 22}


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
