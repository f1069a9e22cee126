"""The totals of the report: by model, by day, and of all runs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, timezone
from itertools import islice
from statistics import median

from dbt.adapters.mzs3.export.history_table import RecordedRun

MAX_RUNS = 200_000
MAX_BUCKETS = 370
STRIP = 60  # how many runs of a model are shown
FAILURES = 25  # how many noteworthy runs are shown
_MIN_DAYS = 14
_MAX_ERROR = 4000  # characters
_MAX_SHORT_ERROR = 300

OUTCOMES = ("ok", "error", "cancelled")


class ReportedRun(RecordedRun):
    """A run in the report."""

    @property
    def outcome(self) -> str:
        """How the run ended, one of OUTCOMES."""
        return "ok" if self.status == "rows" else self.status

    @property
    def left_old_files(self) -> bool:
        """Whether the run succeeded, but could not delete all of the files that it replaced."""
        return self.outcome == "ok" and self.error is not None

    @property
    def is_noteworthy(self) -> bool:
        """Whether the run failed, was cancelled, or left old files."""
        return self.outcome != "ok" or self.left_old_files

    @property
    def counts(self) -> dict[str, int]:
        """What the run adds to the totals."""
        is_ok = self.outcome == "ok"
        return {
            "count": 1,
            self.outcome: 1,
            "left": int(self.left_old_files),
            "rows": (self.rows or 0) if is_ok else 0,
            "bytes": (self.bytes or 0) if is_ok else 0,
        }

    @property
    def seconds(self) -> float | None:
        """How long the run took, at least 0; None if its end is unknown."""
        if self.ended is None:
            return None
        return max(0.0, (self.ended - self.started).total_seconds())


@dataclass(frozen=True)
class Spread:
    """The range, median and number of the values in one bucket."""

    low: float
    median: float
    high: float
    count: int


@dataclass(frozen=True)
class Span:
    """The days of all plots, in buckets of `width` days; the last bucket includes `last`."""

    first: date
    last: date
    width: int

    @property
    def buckets(self) -> int:
        """The number of buckets, at most MAX_BUCKETS."""
        return ((self.last - self.first).days // self.width) + 1

    def bucket(self, day: int) -> int:
        """The bucket of a day, which is given as `date.toordinal`."""
        return (day - self.first.toordinal()) // self.width

    def day(self, bucket: int) -> date:
        """The first day of a bucket."""
        return self.first + timedelta(days=bucket * self.width)


@dataclass
class ModelRuns:
    """One model: its `totals`, with the keys of `ReportedRun.counts`; its `newest` runs, newest
    first; and the seconds, rows and bytes of each run that succeeded, by day."""

    model: str
    totals: Counter[str] = field(default_factory=Counter)
    newest: list[ReportedRun] = field(default_factory=list)
    last_success: datetime | None = None
    seconds: dict[int, list[float]] = field(default_factory=dict)
    rows: dict[int, list[float]] = field(default_factory=dict)
    bytes: dict[int, list[float]] = field(default_factory=dict)

    @property
    def last(self) -> ReportedRun:
        """The run that started last."""
        return self.newest[0]

    @property
    def median_seconds(self) -> float | None:
        """The median duration of the runs that succeeded."""
        return _median([self])


@dataclass
class Summary:
    """The content of the report. Models whose last run did not succeed come first; then by name.

    `buckets` has the totals of buckets with runs, in order; `failures` are the noteworthy runs,
    newest first. `median_seconds` is of all successful runs. `is_cut`: older runs are left out.
    """

    span: Span
    totals: Counter[str]
    buckets: dict[int, Counter[str]]
    models: list[ModelRuns]
    failures: list[ReportedRun]
    is_cut: bool
    median_seconds: float | None


def summarize(runs: Iterable[ReportedRun], now: datetime) -> Summary:
    """Adds up the MAX_RUNS newest runs; `runs` are given newest first. Keeps three numbers of each
    run, and a few dozen runs of each model, with shortened errors."""
    days: dict[int, Counter[str]] = {}
    models: dict[str, ModelRuns] = {}
    failures: list[ReportedRun] = []
    source = iter(runs)
    for run in islice(source, MAX_RUNS):
        day = run.started.astimezone(timezone.utc).toordinal()
        model = models.get(run.model) or models.setdefault(run.model, ModelRuns(run.model))
        for totals in (days.setdefault(day, Counter()), model.totals):
            totals.update(run.counts)
        if len(model.newest) < STRIP:
            model.newest.append(_cut_error(run, _MAX_SHORT_ERROR))
        if run.is_noteworthy and len(failures) < FAILURES:
            failures.append(_cut_error(run, _MAX_ERROR))
        if run.outcome == "ok":
            model.last_success = model.last_success or run.started
            for values, value in (
                (model.seconds, run.seconds),
                (model.rows, run.rows),
                (model.bytes, run.bytes),
            ):
                if value is not None:
                    values.setdefault(day, []).append(value)
    span = _span(days, now)
    totals, buckets = Counter[str](), dict[int, Counter[str]]()
    for day, of_day in sorted(days.items()):
        totals.update(of_day)
        buckets.setdefault(span.bucket(day), Counter()).update(of_day)
    return Summary(
        span=span,
        totals=totals,
        buckets=buckets,
        models=sorted(models.values(), key=lambda each: (each.last.outcome == "ok", each.model)),
        failures=failures,
        is_cut=next(source, None) is not None,
        median_seconds=_median(models.values()),
    )


def spreads(values: dict[int, list[float]], span: Span) -> dict[int, Spread]:
    """The spread of the values in each bucket that has any."""
    merged: dict[int, list[float]] = {}
    for day, of_day in values.items():
        merged.setdefault(span.bucket(day), []).extend(of_day)
    return {
        bucket: Spread(min(found), median(found), max(found), len(found))
        for bucket, found in sorted(merged.items())
    }


def _cut_error(run: ReportedRun, max_length: int) -> ReportedRun:
    if run.error is None or len(run.error) <= max_length:
        return run
    return replace(run, error=run.error[:max_length] + "\N{HORIZONTAL ELLIPSIS}")


def _span(days: dict[int, Counter[str]], now: datetime) -> Span:
    today = now.astimezone(timezone.utc).toordinal()
    last = max([today, *days])
    first = min([last - _MIN_DAYS + 1, *days])
    width = math.ceil((last - first + 1) / MAX_BUCKETS)
    return Span(date.fromordinal(max(1, first)), date.fromordinal(last), width)


def _median(models: Iterable[ModelRuns]) -> float | None:
    seconds = [value for model in models for day in model.seconds.values() for value in day]
    return median(seconds) if seconds else None
