"""What Spark's Java process and its Python workers say: in a file, as the console is dbt's."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaGateway  # type: ignore[import-untyped]
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

FILE = "spark.log"
_MAX_BYTES = 10 * 1024 * 1024  # as dbt's own log


@dataclass(frozen=True)
class Output:
    """Where a Java process writes: to a file of `folder`, or nowhere if that is None."""

    folder: Path | None

    @property
    def path(self) -> Path | None:
        """The file, as short as it can be said."""
        if self.folder is None:
            return None
        path = (self.folder / FILE).absolute()
        return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path

    @contextlib.contextmanager
    def opened(self) -> Iterator[dict[str, Any]]:
        """Arguments of Popen; where the file can't be written, none: the console has it then."""
        if (path := self.path) is None:
            yield {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            return
        try:
            _make_room(path)
            file = path.open("ab")
        except OSError:
            yield {}
            return
        with file:
            yield {"stdout": file, "stderr": file}


_output: Output | None = None


def write_output_to(folder: Path | None) -> None:
    """The Java process that is started next writes to `spark.log` in this folder, at its end.

    None: what it says is lost. Without a call, it has the console of this process.
    """
    global _output
    _output = Output(folder)


def output_hint() -> str:
    """Where to look for what the Java process said."""
    if _output is None:
        return "the output of Spark above"
    if _output.path is None:
        return "what Spark says where dbt keeps a log file, beside which is Spark's"
    return str(_output.path)


def start_java(conf: SparkConf) -> JavaGateway:
    """A Java process for Spark, with the settings that can only be given at its start."""
    if _output is None:
        return launch_gateway(conf)
    with _output.opened() as arguments:
        return launch_gateway(conf, arguments)


def _make_room(path: Path) -> None:
    """A file that has become large makes room for a new one; the one before it goes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > _MAX_BYTES:
        path.replace(path.with_name(f"{path.name}.1"))
