"""Tasks that run at a time, and end together when the user cancels."""

import threading

import pytest

from dbt.adapters.mzs3.project import source_runs
from dbt.adapters.mzs3.project.source_runs import run_together

PATIENCE_S = 60  # for what must happen; nothing waits so long unless it is broken


def never():
    raise AssertionError("nothing was cancelled")


def run(tasks, threads=4, cancelled=None, interrupt=never):
    cancelled = cancelled or threading.Event()
    run_together(tasks, threads=threads, cancelled=cancelled, interrupt=interrupt)


def test_nothing_to_do_is_done():
    run([])


def test_tasks_run_at_the_same_time():
    meet = threading.Barrier(3)
    run([lambda: meet.wait(PATIENCE_S)] * 3)
    assert not meet.broken


def test_no_more_tasks_run_at_a_time_than_there_are_threads():
    inside, most, guard = [], [], threading.Lock()
    met = threading.Barrier(2)

    def task():
        with guard:
            inside.append(1)
            most.append(len(inside))
        met.wait(PATIENCE_S)
        with guard:
            inside.pop()

    run([task] * 6, threads=2)
    assert len(most) == 6
    assert max(most) == 2


def test_the_failure_of_a_task_is_raised_after_the_others_have_ended():
    failed, ended = threading.Event(), []

    def fail():
        failed.set()
        raise KeyError("a")

    def end():
        failed.wait(PATIENCE_S)
        ended.append(True)

    with pytest.raises(KeyError):
        run([fail, end])
    assert ended == [True]


def test_what_runs_is_interrupted_again_until_it_ends():
    cancelled, ended = threading.Event(), threading.Event()
    interrupts = []

    def interrupt():
        interrupts.append(True)
        # As if the first one had met no Spark job.
        if len(interrupts) == 2:
            ended.set()

    def task():
        cancelled.set()
        assert ended.wait(PATIENCE_S)

    run([task], cancelled=cancelled, interrupt=interrupt)
    assert len(interrupts) >= 2


def test_ctrl_c_in_the_waiting_thread_stops_what_runs_and_goes_on(monkeypatch):
    cancelled, ended = threading.Event(), threading.Event()
    wait, waits = source_runs.wait, []

    def wait_or_interrupt(*args, **options):
        waits.append(True)
        if len(waits) == 1:
            raise KeyboardInterrupt
        return wait(*args, **options)

    monkeypatch.setattr(source_runs, "wait", wait_or_interrupt)
    with pytest.raises(KeyboardInterrupt):
        run([lambda: ended.wait(PATIENCE_S)], cancelled=cancelled, interrupt=ended.set)
    assert cancelled.is_set()
    assert ended.is_set()
