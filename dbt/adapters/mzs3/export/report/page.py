"""The page: one self-contained HTML file, which needs no network and has no script."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timezone
from itertools import groupby
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from dbt.adapters.mzs3.export.report import units
from dbt.adapters.mzs3.export.report.plots import BYTES, COUNT, SECONDS, bar_plot, line_plot
from dbt.adapters.mzs3.export.report.summary import (
    MAX_RUNS,
    OUTCOMES,
    STRIP,
    ReportedRun,
    spreads,
    summarize,
)

MAX_MODELS = 300
_OPEN_MODELS = 24
# Characters that XML does not allow, and those that change the direction of text.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069"
    "\ud800-\udfff\ufffe\uffff]"
)


def render_report(
    runs: Iterable[ReportedRun],
    *,
    now: datetime,
    title: str = "Exports to S3",
    subject: str | None = None,
    since: datetime | None = None,
) -> str:
    """The page about `runs`, which are given newest first; those beyond MAX_RUNS are left out.

    It is well-formed XML; texts of runs are escaped. `subject` says whose exports these are;
    `since` is the start of the period.
    """
    summary = summarize(runs, now)
    span, buckets = summary.span, summary.buckets
    exports = {
        bucket: {outcome: totals[outcome] for outcome in OUTCOMES}
        for bucket, totals in buckets.items()
    }
    sizes = {bucket: {"volume": totals["bytes"]} for bucket, totals in buckets.items()}
    cards = [
        {
            "id": f"m{number}",
            "model": model,
            "is_open": number < _OPEN_MODELS,  # only plots in open cards react to the pointer
            "duration": line_plot(span, SECONDS, spreads(model.seconds, span)),
            "rows": line_plot(span, COUNT, spreads(model.rows, span)),
            "size": line_plot(span, BYTES, spreads(model.bytes, span)),
        }
        for number, model in enumerate(summary.models[:MAX_MODELS])
    ]
    # Successive failures of one model with the same error are shown as one.
    failures = groupby(summary.failures, key=lambda run: (run.model, run.outcome, run.error))
    return _TEMPLATES.get_template("page.html").render(
        title=title,
        subject=subject,
        since=since and since.astimezone(timezone.utc),
        now=now,
        summary=summary,
        buckets=buckets,
        exports=bar_plot(span, COUNT, exports),
        sizes=bar_plot(span, BYTES, sizes),
        cards=cards,
        failures=[list(runs) for _, runs in failures],
        MAX_RUNS=MAX_RUNS,
        STRIP=STRIP,
    )


def split_id(model: str) -> tuple[str, str]:
    """Splits a dbt id before the name of the model, which may end in a version: `orders.v2`."""
    kind, _, rest = model.partition(".")
    project, _, name = rest.partition(".")
    return (f"{kind}.{project}.", name) if kind and project and name else ("", model)


def _printable(value: Any) -> Any:
    """Replaces characters of a text that can't be displayed; Jinja calls it for each value."""
    return _UNPRINTABLE.sub("\ufffd", value) if type(value) is str else value


_TEMPLATES = Environment(
    loader=PackageLoader(__package__),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=_printable,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_TEMPLATES.filters |= {
    "plural": units.plural,
    "split_id": split_id,
    **{name: each for name, each in vars(units).items() if name.startswith("format_")},
}
