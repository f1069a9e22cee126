import pytest

from dbt.adapters.mzs3.source.report import IngestReport


@pytest.mark.parametrize(
    ("objects", "line"),
    [
        (0, "lake.orders: COPY 1234 (0 new objects, 0 rejected) in 2.1s"),
        (1, "lake.orders: COPY 1234 (1 new object, 0 rejected) in 2.1s"),
        (3, "lake.orders: COPY 1234 (3 new objects, 0 rejected) in 2.1s"),
    ],
)
def test_the_line_of_the_log(objects, line):
    assert IngestReport("lake.orders", objects, 1234, 0, 2.06).line() == line


def test_skipped_objects_are_told_where_there_are_any():
    report = IngestReport("lake.orders", 3, 1234, 7, 2.06, skipped=2)
    assert report.line() == (
        "lake.orders: COPY 1234 (3 new objects, 2 skipped, 7 rejected) in 2.1s"
    )


@pytest.mark.parametrize(
    ("objects", "size", "runs", "text"),
    [
        (1, 1, 1, "1 object (1 B) waits for the next run"),
        (7, 1023, 1, "7 objects (1023 B) wait for the next run"),
        (7, 13_107_200, 2, "7 objects (12.5 MB) wait: about 2 more runs"),
        (7, 1 << 41, 7, "7 objects (2 TB) wait: about 7 more runs"),
    ],
)
def test_the_line_says_how_much_waits(objects, size, runs, text):
    waiting = {"waiting_objects": objects, "waiting_bytes": size, "waiting_runs": runs}
    report = IngestReport("lake.orders", 3, 1234, 0, 2.06, **waiting)
    assert report.line() == f"lake.orders: COPY 1234 (3 new objects, 0 rejected) in 2.1s; {text}"
