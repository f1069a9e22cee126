"""What a reader takes away from the first glance: a sentence, and five numbers."""

from __future__ import annotations

from collections.abc import Sequence

from dbt.adapters.mzs3.export.history.report import units
from dbt.adapters.mzs3.export.history.report.cards import model_id, split_id
from dbt.adapters.mzs3.export.history.report.markup import Markup, tag
from dbt.adapters.mzs3.export.history.report.summary import MAX_RUNS, ModelRuns, Summary

_NAMED = 6
_NAME = 60


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
