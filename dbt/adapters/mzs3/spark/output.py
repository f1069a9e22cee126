"""The output of Spark's Java process and its Python workers: a file, as the console is dbt's."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FILE = "spark.log"
_MAX_BYTES = 10 * 1024 * 1024  # as dbt's own log

_is_console = True
_file: Path | None = None


def write_output_to(folder: Path | None) -> None:
    """The Java process that is started next appends to `spark.log` in this folder; None loses what
    it says. Without a call, it has the console of this process."""
    global _is_console, _file
    _is_console = False
    _file = None if folder is None else folder.absolute() / FILE


def output_hint() -> str:
    """Where to look for what the Java process said."""
    if _is_console:
        return "the output of Spark above"
    if _file is None:
        return "what Spark says where dbt keeps a log file, beside which is Spark's"
    return str(_file.relative_to(Path.cwd()) if _file.is_relative_to(Path.cwd()) else _file)


@contextlib.contextmanager
def java_streams() -> Iterator[dict[str, Any]]:
    """Arguments of Popen; none, for the console, also where the file can't be written."""
    if _is_console:
        yield {}
        return
    if _file is None:
        yield {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return
    try:
        _file.parent.mkdir(parents=True, exist_ok=True)
        if _file.exists() and _file.stat().st_size > _MAX_BYTES:
            _file.replace(_file.with_name(f"{FILE}.1"))
        file = _file.open("ab")
    except OSError:
        yield {}
        return
    with file:
        yield {"stdout": file, "stderr": file}
