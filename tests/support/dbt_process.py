"""dbt as users run it: in a process of its own, with a console."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

# What a shell has started in its background ignores Ctrl-C, and so does all that it starts.
_DBT = """
import signal
from dbt.cli.main import cli

signal.signal(signal.SIGINT, signal.default_int_handler)
cli()
"""


def start_dbt(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _DBT, "--no-use-colors", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str], timeout: float = 300) -> str:
    """Its console, once it has ended."""
    output, _ = process.communicate(timeout=timeout)
    return output


def interrupt(process: subprocess.Popen[str], then: Callable[[], object]) -> str:
    """Its console after Ctrl-C; `then` is called once dbt has cancelled what runs."""
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of its processes
    assert process.stdout is not None
    console = ""
    for line in process.stdout:
        console += line
        if "CANCEL query" in line:
            then()
    process.wait(timeout=300)
    return console
