"""A `spark-submit` that starts no Spark, and work for it."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException

from dbt.adapters.mzs3.errors import ConfigError, SparkJobError
from dbt.adapters.mzs3.spark.job import Call

# As Spark's does, it puts the files on the driver's path, and starts the main file.
SCRIPT = f"""#!{sys.executable}
import json, os, sys
from pathlib import Path

seen = Path(__file__).with_name("seen.json")
arguments = sys.argv[1:]
named = dict(zip(arguments[:-2], arguments[1:-1]))
properties = Path(named["--properties-file"])
seen.write_text(json.dumps({{
    "arguments": arguments,
    "environment": dict(os.environ),
    "process": os.getpid(),
    "properties": properties.read_text(),
    "modes": [oct(p.stat().st_mode & 0o777) for p in (properties.parent, properties)],
}}))
if os.environ.get("FAKE_SUBMIT") == "fails":
    print("first line")
    sys.exit("no such master, key is the-secret")
if os.environ.get("FAKE_SUBMIT") == "hangs":
    import time
    time.sleep(600)
sys.path[:0] = named["--py-files"].split(",")
from dbt.adapters.mzs3.submit import driver
from support.spark.submitted import FakeSession
driver.serve(arguments[-1], FakeSession)
"""


def make_spark_home(folder: Path) -> Path:
    """A folder for SPARK_HOME whose `spark-submit` notes how it was called."""
    script = folder / "bin" / "spark-submit"
    script.parent.mkdir()
    script.write_text(SCRIPT)
    script.chmod(0o755)
    return folder


def seen(home: Path) -> dict[str, Any]:
    """How the script was called."""
    found: dict[str, Any] = json.loads((home / "bin" / "seen.json").read_text())
    return found


class FakeSession:
    """What the driver needs of a session."""

    def __init__(self, settings: Any) -> None:
        if os.environ.get("FAKE_SUBMIT") == "has no master":
            raise PySparkException("no such master")
        self.settings = settings
        self.interrupted = threading.Event()

    def interruptAll(self) -> None:
        self.interrupted.set()


def tells(spark: Any, *, texts: list[str], tell: Callable[[Any], None]) -> tuple[str, int, int]:
    for text in texts:
        tell(text)
    return spark.settings.parameters["spark.a"], spark.settings.executor_timeout, os.getpid()


def where_from(spark: Any) -> tuple[str, bool]:
    """Where the driver has our code from, and whether dbt was loaded."""
    return sys.modules[Call.__module__].__file__ or "", "dbt_common" in sys.modules


def fails(spark: Any, *, kind: str) -> None:
    if kind == "Spark":
        raise SparkJobError("Spark said the-secret")
    if kind == "config":
        raise ConfigError("model.a", ["parts is wrong"])
    raise KeyError("unexpected")


def cannot_be_sent(spark: Any) -> object:
    return threading.Lock()


class _Unreadable:
    def __reduce__(self) -> Any:
        return int, ("not a number",)


def cannot_be_read(spark: Any) -> object:
    return _Unreadable()


def until_cancelled(
    spark: Any, *, cancelled: threading.Event, tell: Callable[[Any], None], then: str | None = None
) -> None:
    """Ends once it is cancelled and interrupted, with a file if it is to leave one."""
    tell(os.getpid())
    cancelled.wait(60)
    spark.interrupted.wait(60)
    if then is not None:
        Path(then).write_text("put in order")
    raise SparkJobError("the export was cancelled; no upload is left open")


def commits_late(spark: Any, *, cancelled: threading.Event, tell: Callable[[Any], None]) -> str:
    tell(None)
    cancelled.wait(60)
    return "committed"


def never_ends(spark: Any, *, tell: Callable[[Any], None]) -> None:
    tell(os.getpid())
    time.sleep(600)


def dies(spark: Any) -> None:
    for number in range(30):
        print(f"line {number} of the-secret\n\tat org.apache.Spark.main(Spark.scala:1)")
    print('Traceback (most recent call last):\n  File "a.py", line 1\n    1 / 0', flush=True)
    os._exit(7)


def until_interrupted(spark: Any, *, tell: Callable[[Any], None]) -> str:
    tell(None)
    return "interrupted" if spark.interrupted.wait(60) else "not interrupted"
