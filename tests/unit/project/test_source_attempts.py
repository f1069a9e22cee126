"""One attempt at a source for all who need it."""

import threading
from concurrent.futures import ThreadPoolExecutor

from dbt.adapters.mzs3.project.source_runs import run_once


def test_whoever_comes_later_gets_the_outcome_of_the_first():
    calls = []

    def action():
        calls.append(True)
        return "in error"

    assert [run_once("run 1", "a", action) for _ in range(3)] == ["in error"] * 3
    assert len(calls) == 1
    assert run_once("run 1", "b", lambda: None) is None


def test_another_run_tries_again():
    run_once("run 1", "a", lambda: "in error")
    assert run_once("run 2", "a", lambda: None) is None


def test_whoever_comes_while_it_runs_waits_for_it():
    calls = []
    ready = threading.Barrier(4)

    def attempt():
        ready.wait(60)
        return run_once("run 1", "a", lambda: calls.append(True) or "done")

    with ThreadPoolExecutor(4) as pool:
        outcomes = [each.result() for each in [pool.submit(attempt) for _ in range(4)]]
    assert outcomes == ["done"] * 4
    assert len(calls) == 1
