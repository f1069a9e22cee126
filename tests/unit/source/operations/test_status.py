"""The table of a source's state, and the lines of what users decided."""

from datetime import datetime, timezone

import pytest

from dbt.adapters.mzs3.source.operations.object_actions import ActionResult, ObjectAction
from dbt.adapters.mzs3.source.operations.status import SourceStatus, lag_text, status_table


def test_the_table_has_a_line_for_each_source_and_errors_below():
    at = int(datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc).timestamp())
    lines = status_table(
        [
            SourceStatus("lake.orders", "ok", 12, 0, 0, 0, None, 3, at),
            SourceStatus("lake.new", "never ingested"),
            SourceStatus(
                "lake.items", "in error", 1, 2, 2048, 2, 26 * 3600, 1, at,
                "lake.items: object s3://b/1.csv, line 2, byte 4: expected 2 columns, got 3",
                "s3://b/1.csv",
            ),
        ]
    )  # fmt: skip
    assert lines == [
        "source       state           objects  waiting  bytes waiting  runs left    lag  epochs  "
        "last event",
        "-----------  --------------  -------  -------  -------------  ---------  -----  ------  "
        "--------------------",
        "lake.items   in error              1        2           2 kB          2  1d 2h       1  "
        "2026-01-02 03:04:05Z",
        "lake.new     never ingested        0        0              -          -      -       0  "
        "-",
        "lake.orders  ok                   12        0              -          -      -       3  "
        "2026-01-02 03:04:05Z",
        "lake.items: object s3://b/1.csv, line 2, byte 4: expected 2 columns, got 3\n"
        "  to go on without it: dbt run-operation skip_s3_objects --args "
        "'{source: lake.items, objects: [\"s3://b/1.csv\"]}'",
    ]


def test_an_error_that_does_not_name_its_source_is_shown_with_it():
    lines = status_table([SourceStatus("lake.items", "in error", last_error="it was overwritten")])
    assert lines[-1] == "lake.items: it was overwritten"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59, "59s"), (60, "1m 0s"), (3_661, "1h 1m"), (200_000, "2d 7h")],
)
def test_a_lag_has_two_units_at_most(seconds, text):
    assert lag_text(seconds) == text


@pytest.mark.parametrize(
    ("action", "objects", "line"),
    [
        (ObjectAction.RETRY, 1, "lake.orders: 1 object to be taken again by the next run"),
        (ObjectAction.SKIP, 2, "lake.orders: 2 objects skipped"),
        (ObjectAction.RETRACT, 2, "lake.orders: 2 objects retracted, 7 rows taken out"),
    ],
)
def test_the_line_of_a_decision(action, objects, line):
    assert ActionResult("lake.orders", action, objects, 7).line() == line
