import os
import subprocess
import sys
from dataclasses import replace

from dbt.adapters.mzs3.csv_source.owner import current_owner


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


def test_two_reads_of_the_same_process_are_equal():
    assert current_owner() == current_owner()
