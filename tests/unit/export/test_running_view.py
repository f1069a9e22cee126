"""The row of an export that runs: when it is written, which others it replaces, how it goes."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from dbt.adapters.mzs3.export import running_view
from dbt.adapters.mzs3.export.progress import Snapshot
from dbt.adapters.mzs3.export.running_view import RunningCopy, RunningEntry, view_text

WAIT_S = 60
DAY_MS = 24 * 3600 * 1000
COPY = RunningCopy(
    run="r1",
    model="model.shop.orders",
    location="s3://b/it's/",
    started=1_700_000_000_000,
    updated=1_700_000_010_000,
    progress=Snapshot("writing", 1, 4, 3_000_000_000, 5, 0.5),
    invocation_id="i-1",
)


class View:
    """Rows in memory, and each set of rows that was written."""

    name = "a view"

    def __init__(self, *copies: RunningCopy) -> None:
        self.copies: list[RunningCopy] | None = [*copies] or None
        self.written: list[list[RunningCopy]] = []
        self.changed = threading.Condition()
        self.failure: Exception | None = None
        self.reads = 0

    def now(self) -> float:
        return COPY.updated / 1000

    def read(self) -> list[RunningCopy] | None:
        with self.changed:
            self.reads += 1
            self.changed.notify_all()
        if self.failure is not None:
            raise self.failure
        return self.copies

    def write(self, copies: Iterable[RunningCopy]) -> None:
        with self.changed:
            self.copies = [*copies]
            self.written.append(self.copies)
            self.changed.notify_all()

    make = write

    def wait_for(self, happened: Any) -> None:
        with self.changed:
            assert self.changed.wait_for(happened, WAIT_S)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_view, "WRITE_INTERVAL_S", 0.001)


def entry(view: Any, warnings: list[str]) -> RunningEntry:
    about = {"model": COPY.model, "location": COPY.location, "invocation_id": "i-1"}
    begun = Snapshot("running", parts=4)
    return RunningEntry(view, begun, lambda exc: warnings.append(str(exc)), **about)


def test_the_text_of_the_view_has_the_row_as_literals() -> None:
    text = view_text([COPY])
    assert (
        "FROM VALUES ('r1', 'model.shop.orders', "
        "cast(x'73333a2f2f622f697427732f' AS string), 1700000000000, 1700000010000, "
        "'writing', 1, 4, 3000000000, 5, 0.5, NULL, NULL, 'i-1') AS copies(`run`, `model`, "
    ) in text
    assert "timestamp_millis(CAST(`started` AS bigint)) AS `started`" in text
    silent = "unix_millis(now()) - CAST(`updated` AS bigint)"
    assert text.endswith(f" WHERE `run` IS NOT NULL AND {silent} <= {DAY_MS}")
    assert text.endswith("'dead', 'running') AS `state` " + text[text.index("FROM VALUES") :])


def test_an_export_that_ends_soon_asks_spark_for_nothing() -> None:
    view = View()
    running = entry(view, warned := [])
    running.begin()
    running.set_progress(Snapshot("writing", 1, 4, 2, 3, 4.0))
    running.end()
    assert (view.reads, view.written, warned) == (0, [], [])


@pytest.mark.usefixtures("at_once")
def test_the_row_has_what_was_noted_last_and_goes_at_the_end() -> None:
    view = View()
    running = entry(view, warned := [])
    running.set_progress(Snapshot("writing", 1, 4, 2, 3, 4.0))
    running.begin()
    view.wait_for(lambda: len(view.written) > 1)
    running.set_progress(Snapshot("committing", 4, 4, 5, 6, 7.0))
    view.wait_for(lambda: view.written[-1][0].progress.phase == "committing")
    running.end()
    assert (view.copies, warned) == ([], [])
    first, second = view.written[0][0], view.written[1][0]
    assert first == replace(
        COPY,
        run=first.run,
        started=first.started,
        updated=first.updated,
        progress=Snapshot("writing", 1, 4, 2, 3, 4.0),
    )
    assert first.started == second.started <= first.updated <= second.updated
    assert view.written[-2][0].progress == Snapshot("committing", 4, 4, 5, 6, 7.0)


@pytest.mark.usefixtures("at_once")
def test_rows_of_others_stay_unless_they_are_of_dead_runs() -> None:
    other = replace(COPY, model="model.shop.others")
    rows = {
        "of another export": other,
        "of the same model, which may run twice": replace(COPY, updated=COPY.updated - 50_000),
        "dead, of another model": replace(other, updated=COPY.updated - DAY_MS // 2),
        "dead": replace(COPY, updated=COPY.updated - 70_000),
    }
    view = View(*(replace(copy, run=run) for run, copy in rows.items()))
    running = entry(view, [])
    running.begin()
    view.wait_for(lambda: view.written)
    running.end()
    assert [copy.run for copy in view.copies or ()] == [*rows][:3]


@pytest.mark.usefixtures("at_once")
def test_a_row_that_another_process_has_put_back_goes_all_the_same() -> None:
    view = View()
    running = entry(view, warned := [])
    running.begin()
    view.wait_for(lambda: view.written)
    remove = view.write
    back = iter([True])

    def removed_in_vain(copies: Iterable[RunningCopy]) -> None:
        before = view.copies
        remove(copies)
        if not view.copies and next(back, False):
            view.copies = before

    view.write = removed_in_vain  # type: ignore[method-assign]
    running.end()
    assert (view.copies, warned) == ([], [])


@pytest.mark.usefixtures("at_once")
def test_of_all_failures_the_first_is_told() -> None:
    view = View()
    view.failure = RuntimeError("no permission")
    running = entry(view, warned := [])
    running.begin()
    view.wait_for(lambda: view.reads > 2)
    running.end()
    assert warned == ["no permission"]
