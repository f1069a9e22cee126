"""dbt as users run it: in a process of its own, with a console."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def start_dbt(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    code = "from dbt.cli.main import cli; cli()"
    return subprocess.Popen(
        [sys.executable, "-c", code, "--no-use-colors", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    """Its console, once it has ended."""
    output, _ = process.communicate(timeout=300)
    return output
