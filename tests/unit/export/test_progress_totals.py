"""The totals: the latest word of each part counts, and junk does not."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from dbt.adapters.mzs3.export import progress
from dbt.adapters.mzs3.export.progress import ProgressTotals, Snapshot

TOKEN = "5f" * 16


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def message(**changed: Any) -> bytes:
    known: dict[str, Any] = {
        "token": TOKEN,
        "part": 0,
        "attempt": "a",
        "rows": 10,
        "bytes": 100,
        "done": False,
    }
    return json.dumps({**known, **changed}).encode()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=clock))
    return clock


@pytest.fixture
def totals(clock: Clock) -> ProgressTotals:
    return ProgressTotals(TOKEN, 4)


def test_nothing_is_known_until_a_part_reports(totals: ProgressTotals) -> None:
    assert totals.snapshot() == Snapshot("computing", 0, 4, 0, 0, None)


def test_the_latest_word_of_each_part_counts(totals: ProgressTotals, clock: Clock) -> None:
    totals.accept(message(part=0, rows=10, bytes=100))
    totals.accept(message(part=1, rows=5, bytes=50))
    clock.now += 10
    totals.accept(message(part=0, rows=30, bytes=300, done=True))
    assert totals.snapshot() == Snapshot("writing", 1, 4, 35, 350, 35.0)


def test_a_retried_attempt_replaces_the_earlier_one(totals: ProgressTotals) -> None:
    totals.accept(message(attempt="a", rows=30, bytes=300))
    totals.accept(message(attempt="b", rows=10, bytes=100))
    assert (totals.snapshot().rows, totals.snapshot().bytes) == (10, 100)


def test_an_export_that_begins_again_has_nothing_done(
    totals: ProgressTotals, clock: Clock
) -> None:
    totals.accept(message(part=0, rows=30, done=True))
    clock.now += 10
    totals.begin_again()
    assert totals.snapshot() == Snapshot("computing", 0, 4, 0, 0, None)
    totals.accept(message(part=1, attempt="b", rows=10, bytes=100))
    clock.now += 10
    assert totals.snapshot() == Snapshot("writing", 0, 4, 10, 100, 10.0)


def test_a_datagram_that_was_overtaken_changes_nothing(totals: ProgressTotals) -> None:
    totals.accept(message(rows=30, done=True))
    totals.accept(message(rows=30))
    totals.accept(message(rows=20))
    assert (totals.snapshot().rows, totals.snapshot().parts_done) == (30, 1)


@pytest.mark.parametrize(
    "junk",
    [
        b"",
        b"\xff\xfe\x00",
        b"[" * 1024,
        b"17",
        b"null",
        b"{}",
        b'{"token": "',
        message(token=None),
        message(token=""),
        message(token=TOKEN[:-1] + "0"),
        message(token="é" * 32),
        b'{"token": "\\ud800"}',
        message(part=4),
        message(part=-1),
        message(part="0"),
        message(part=True),
        message(rows=1.5),
        message(bytes=-1),
        message(rows=None),
    ],
)
def test_junk_is_ignored(totals: ProgressTotals, junk: bytes) -> None:
    totals.accept(message())
    before = totals.snapshot()
    totals.accept(junk)
    assert totals.snapshot() == before
