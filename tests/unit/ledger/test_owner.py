import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dbt.adapters.mzs3.ledger import lease as owner
from dbt.adapters.mzs3.ledger.lease import current_owner


def ended_process():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_process_is_not_gone_while_it_runs():
    assert not current_owner().is_gone()
    assert not replace(current_owner(), pid=os.getppid(), started="").is_gone()


def test_a_process_that_ended_is_gone():
    assert replace(current_owner(), pid=ended_process()).is_gone()


def test_a_number_that_another_process_has_now_means_the_first_is_gone():
    assert replace(current_owner(), started="another time").is_gone()


def test_processes_of_another_place_are_never_judged():
    assert not replace(current_owner(), place="elsewhere", pid=ended_process()).is_gone()


@pytest.fixture
def namespace(tmp_path, monkeypatch):
    """Says in which namespace of processes this one is."""

    def be_in(number):
        link = tmp_path / "pid"
        link.symlink_to(f"pid:[{number}]")
        monkeypatch.setattr(owner, "_PID_NAMESPACE", link)

    return be_in


def test_no_process_outlives_a_boot_of_its_host(namespace):
    namespace(4026531836)
    assert replace(current_owner(), boot="an earlier one").is_gone()


def test_a_container_that_looks_like_this_one_may_run_on_another_host(namespace):
    namespace(4026532205)
    assert not replace(current_owner(), boot="of another host").is_gone()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")
def test_a_process_that_ended_and_was_not_waited_for_is_gone():
    process = subprocess.Popen([sys.executable, "-c", ""])
    try:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert replace(current_owner(), pid=process.pid, started="").is_gone()
    finally:
        process.wait()


def test_two_reads_of_the_same_process_are_equal():
    assert current_owner() == current_owner()
