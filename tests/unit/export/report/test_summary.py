from datetime import date, datetime, timedelta, timezone

import pytest
from support.export.report_runs import NOW, failed, run

from dbt.adapters.mzs3.export.report import summary as report_summary
from dbt.adapters.mzs3.export.report.summary import (
    FAILURES,
    MAX_BUCKETS,
    STRIP,
    Spread,
    spreads,
    summarize,
)


def test_only_what_succeeded_is_counted_as_written():
    summary = summarize(
        [run(rows=10, bytes=100), run(rows=5, bytes=50), failed(rows=7, bytes=70)], NOW
    )
    expected = {"count": 3, "ok": 2, "error": 1, "left": 0, "rows": 15, "bytes": 150}
    assert summary.totals == expected


def test_the_median_duration_is_of_successes_of_all_models():
    runs = [run("a", seconds=1), run("a", seconds=9), run("b", seconds=4), failed(seconds=1000)]
    summary = summarize([*runs, run("b", seconds=None)], NOW)
    assert summary.median_seconds == 4
    assert {model.model: model.median_seconds for model in summary.models} == {
        "a": 5,
        "b": 4,
        "model.shop.orders": None,
    }


def test_a_clock_that_went_back_gives_no_negative_duration():
    assert run(seconds=-5).seconds == 0


def test_models_in_trouble_come_first():
    runs = [run("b"), run("a"), failed("z"), failed("y", status="cancelled")]
    # An older success does not help, an older failure does not hurt.
    runs += [
        run("z", started=NOW - timedelta(days=1)),
        failed("a", started=NOW - timedelta(days=1)),
    ]
    models = summarize(runs, NOW).models
    assert [model.model for model in models] == ["y", "z", "a", "b"]
    assert models[1].last_success == NOW - timedelta(days=1)
    assert models[0].last_success is None


def test_the_newest_runs_are_kept():
    runs = [run(started=NOW - timedelta(minutes=minute)) for minute in range(STRIP + 9)]
    assert summarize(runs, NOW).models[0].newest == runs[:STRIP]


def test_of_runs_that_started_at_once_the_first_given_is_the_newest():
    model = summarize([failed(), run(), run()], NOW).models[0]
    assert model.last.outcome == "error"


def test_failures_are_bounded_in_number_and_length():
    runs = [failed(started=NOW - timedelta(minutes=n), error="x" * 9000) for n in range(99)]
    summary = summarize(runs, NOW)
    assert [each.started for each in summary.failures] == [r.started for r in runs[:FAILURES]]
    assert all(len(each.error) == 4001 for each in summary.failures)
    assert all(len(each.error) == 301 for each in summary.models[0].newest)


def test_more_runs_than_are_taken_in_are_reported_not_counted(monkeypatch):
    monkeypatch.setattr(report_summary, "MAX_RUNS", 3)
    taken = []
    runs = (taken.append(number) or run() for number in range(100))
    summary = summarize(runs, NOW)
    assert (summary.totals["count"], summary.is_cut, len(taken)) == (3, True, 4)
    assert not summarize([run()] * 3, NOW).is_cut


def test_a_day_is_a_day_of_utc():
    late = datetime(2026, 11, 20, 23, 30, tzinfo=timezone(timedelta(hours=-2)))
    summary = summarize([run(started=late)], NOW)
    assert [summary.span.day(bucket) for bucket in summary.buckets] == [date(2026, 11, 21)]


def test_axes_reach_from_the_first_run_to_today_and_at_least_two_weeks():
    assert summarize([run()], NOW).span.buckets == 14
    span = summarize([run(started=NOW - timedelta(days=59))], NOW).span
    assert (span.first, span.last, span.width) == (date(2026, 9, 23), date(2026, 11, 21), 1)


@pytest.mark.parametrize("days", [369, 370, 3_000, 700_000])
def test_buckets_are_bounded_however_long_ago_the_first_run_was(days):
    summary = summarize([run(), run(started=NOW - timedelta(days=days))], NOW)
    assert summary.span.buckets <= MAX_BUCKETS
    assert sum(totals["count"] for totals in summary.buckets.values()) == 2
    assert set(summary.buckets) == {0, summary.span.buckets - 1}


def test_a_bucket_has_the_lowest_the_middle_and_the_highest():
    runs = [run(seconds=seconds) for seconds in (9, 1, 2)]
    summary = summarize(runs, NOW)
    assert spreads(summary.models[0].seconds, summary.span) == {13: Spread(1, 2, 9, 3)}
