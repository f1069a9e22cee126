"""What the report says, added up: by model, by day, and in all."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, timezone
from itertools import islice
from statistics import median
from typing import Literal

MAX_RUNS = 200_000
MAX_BUCKETS = 370
STRIP = 60
FAILURES = 25
_LEAST_DAYS = 14
_TEXT = 4000
_SHORT_TEXT = 300

Status = Literal["ok", "error", "cancelled"]
STATUSES: tuple[Status, ...] = ("ok", "error", "cancelled")
WORDS: dict[Status, str] = {"ok": "succeeded", "error": "failed", "cancelled": "cancelled"}


@dataclass(frozen=True)
class Spread:
    """The values of one bucket."""

    low: float
    median: float
    high: float
    count: int


@dataclass(frozen=True)
class Span:
    """The days on every axis, cut into buckets of some days each; `last` is in the last one."""

    first: date
    last: date
    width: int

    @property
    def buckets(self) -> int:
        """How many there are; at most MAX_BUCKETS."""
        return ((self.last - self.first).days // self.width) + 1

    def bucket(self, day: int) -> int:
        """The bucket of a day, by its ordinal."""
        return (day - self.first.toordinal()) // self.width

    def day(self, bucket: int) -> date:
        """The first day of a bucket."""
        return self.first + timedelta(days=bucket * self.width)


@dataclass
class RunTotals:
    """Runs by status, and what those that succeeded wrote; `left` counts those with old files."""

    runs: Counter[Status] = field(default_factory=Counter)
    left: int = 0
    rows: int = 0
    bytes: int = 0

    def add(self, run: ReportedRun) -> None:
        """One run more."""
        self.runs[run.status] += 1
        self.left += run.left_old_files
        if run.status == "ok":
            self.rows += run.rows or 0
            self.bytes += run.bytes or 0

    @property
    def count(self) -> int:
        """All runs."""
        return self.runs.total()


@dataclass
class ModelRuns:
    """One model: totals, its newest runs (oldest first), and its successes' numbers by day."""

    model: str
    totals: RunTotals = field(default_factory=RunTotals)
    newest: list[ReportedRun] = field(default_factory=list)
    last_success: datetime | None = None
    seconds: dict[int, list[float]] = field(default_factory=dict)
    rows: dict[int, list[float]] = field(default_factory=dict)
    bytes: dict[int, list[float]] = field(default_factory=dict)

    @property
    def last(self) -> ReportedRun:
        """The run that started last."""
        return self.newest[-1]

    @property
    def median_seconds(self) -> float | None:
        """Of the runs that succeeded."""
        return _median(self)


@dataclass
class Summary:
    """All of it; models with a failed latest run first, then by name; newest failure first.

    Among the failures are the successes that left old files.
    """

    span: Span
    totals: RunTotals
    days: dict[int, RunTotals]
    models: list[ModelRuns]
    failures: list[ReportedRun]
    is_cut: bool

    @property
    def median_seconds(self) -> float | None:
        """Of all runs that succeeded."""
        return _median(*self.models)


def summarize(runs: Iterable[ReportedRun], now: datetime) -> Summary:
    """The runs added up; of more than MAX_RUNS, the first ones given, and it says so.

    Keeps three numbers a run, and a few dozen runs a model with their errors cut short.
    """
    totals, days = RunTotals(), dict[int, RunTotals]()
    models: dict[str, ModelRuns] = {}
    newest: dict[str, _Newest] = {}
    failures = _Newest(FAILURES, _TEXT)
    source = iter(runs)
    for run in islice(source, MAX_RUNS):
        day = run.started.astimezone(timezone.utc).toordinal()
        totals.add(run)
        days.setdefault(day, RunTotals()).add(run)
        model = models.setdefault(run.model, ModelRuns(run.model))
        model.totals.add(run)
        newest.setdefault(run.model, _Newest(STRIP, _SHORT_TEXT)).add(run)
        if run.status == "ok":
            model.last_success = max(model.last_success or run.started, run.started)
            for values, value in (
                (model.seconds, run.seconds),
                (model.rows, run.rows),
                (model.bytes, run.bytes),
            ):
                if value is not None:
                    values.setdefault(day, []).append(value)
        if run.is_noteworthy:
            failures.add(run)
    for name, model in models.items():
        model.newest = newest[name].in_order()
    return Summary(
        span=_span(days, now),
        totals=totals,
        days=days,
        models=sorted(models.values(), key=lambda each: (each.last.status == "ok", each.model)),
        failures=failures.in_order()[::-1],
        is_cut=next(source, None) is not None,
    )


def spreads(values: dict[int, list[float]], span: Span) -> dict[int, Spread]:
    """By bucket, for those that have values."""
    merged: dict[int, list[float]] = {}
    for day, of_day in values.items():
        merged.setdefault(span.bucket(day), []).extend(of_day)
    return {
        bucket: Spread(min(found), median(found), max(found), len(found))
        for bucket, found in sorted(merged.items())
    }


def bucket_totals(days: dict[int, RunTotals], span: Span) -> dict[int, RunTotals]:
    """By bucket, for those that have runs."""
    merged: dict[int, RunTotals] = {}
    for day, totals in sorted(days.items()):
        into = merged.setdefault(span.bucket(day), RunTotals())
        into.runs.update(totals.runs)
        into.left += totals.left
        into.rows += totals.rows
        into.bytes += totals.bytes
    return merged


class _Newest:
    """The newest runs of those added."""

    def __init__(self, most: int, text: int) -> None:
        self._most = most
        self._text = text
        self._heap: list[tuple[datetime, int, ReportedRun]] = []
        self._added = 0

    def add(self, run: ReportedRun) -> None:
        # Of runs that started at once, those given first count as newer, as in the table.
        self._added -= 1
        key = (run.started, self._added)
        if len(self._heap) == self._most and key < self._heap[0][:2]:
            return
        if run.error is not None and len(run.error) > self._text:
            run = replace(run, error=run.error[: self._text] + "\N{HORIZONTAL ELLIPSIS}")
        heapq.heappush(self._heap, (*key, run))
        if len(self._heap) > self._most:
            heapq.heappop(self._heap)

    def in_order(self) -> list[ReportedRun]:
        """Oldest first."""
        return [run for _, _, run in sorted(self._heap, key=lambda each: each[:2])]


def _span(days: dict[int, RunTotals], now: datetime) -> Span:
    today = now.astimezone(timezone.utc).toordinal()
    last = max([today, *days])
    first = min([last - _LEAST_DAYS + 1, *days])
    width = math.ceil((last - first + 1) / MAX_BUCKETS)
    return Span(date.fromordinal(max(1, first)), date.fromordinal(last), width)


def _median(*models: ModelRuns) -> float | None:
    seconds = [value for model in models for day in model.seconds.values() for value in day]
    return median(seconds) if seconds else None


@dataclass(frozen=True)
class ReportedRun:
    """One run of a model; `started` and `ended` know their time zone. Any text is untrusted.

    `rows`, `bytes` and `files` are what the run made visible; None where it made nothing. The
    `error` of a run that succeeded says what it left of the export before it.
    """

    model: str
    location: str
    started: datetime
    ended: datetime | None
    status: Status
    rows: int | None = None
    bytes: int | None = None
    files: int | None = None
    error: str | None = None
    invocation_id: str | None = None
    format: str | None = None
    on_existing: str | None = None
    as_of: int | None = None

    @property
    def left_old_files(self) -> bool:
        """Whether it succeeded, and could not remove all of what it replaced."""
        return self.status == "ok" and self.error is not None

    @property
    def is_noteworthy(self) -> bool:
        """Whether there is more to say of it than that it succeeded."""
        return self.status != "ok" or self.left_old_files

    @property
    def seconds(self) -> float | None:
        """How long it took; None where its end is not known, never negative."""
        if self.ended is None:
            return None
        return max(0.0, (self.ended - self.started).total_seconds())
