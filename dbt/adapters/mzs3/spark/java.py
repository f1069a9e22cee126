"""The Java process that we start for Spark: its users, its settings, its end and its output.

One with other settings replaces it where that is possible
(docs/decisions/0038-spark-is-begun-anew.md).
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from pyspark.sql import SparkSession

from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.secrets import HIDDEN, hide_login
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES
from dbt.adapters.mzs3.spark.settings import try_set

if TYPE_CHECKING:
    from pyspark.sql.conf import RuntimeConfig

_logger = logging.getLogger(__name__)

_END_S = 60
# What Spark does does not depend on it.
_NAME = "spark.app.name"
# Settings without secrets; any other may have a key or a password, whatever its name.
_PUBLIC = re.compile(
    r"spark\.(master|submit\.deployMode|sql\.(warehouse\.dir|catalogImplementation|extensions)"
    r"|(driver|executor)\.(memory|memoryOverhead|cores|instances))"
)
LOG_FILE = "spark.log"
_MAX_BYTES = 10 * 1024 * 1024  # as dbt's own log

lock = threading.RLock()
"""Callers hold it from `reuse_or_end` to `hold`."""
# The open sessions, by their ids.
_in_use: WeakValueDictionary[int, SparkSession] = WeakValueDictionary()
_started: _Started | None = None
# For the output of the next Java process: None is this process's console.
_output: Path | int | None = None


@dataclass(frozen=True)
class _Started:
    """The Java process that we have started, and the Spark in it, once that runs."""

    gateway: Any
    process: int
    """The id of the Python process that started it; a fork of that inherits this object."""
    session: SparkSession | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


def record_launch(gateway: Any) -> None:
    """Notes the Java process of Spark, which we may end unless it was running before."""
    global _started
    _started = _Started(gateway, os.getpid()) if gateway.proc is not None else None


def record_session(session: SparkSession, settings: Mapping[str, str]) -> None:
    """Notes the settings of the Spark that runs; it is ours if its Java process is."""
    global _started
    _started = _started and replace(_started, session=session, settings=settings)


def _our_spark() -> _Started | None:
    """The Spark that runs, if we and no host program started it."""
    running = SparkSession._instantiatedSession
    is_ours = _started is not None and running is not None and _started.session is running
    return _started if is_ours else None


def hold(session: SparkSession) -> SparkSession:
    """The session; its Spark is not replaced until it is released or lost."""
    _in_use[id(session)] = session
    return session


def release(session: SparkSession) -> None:
    """Lets the Spark of the session be replaced; safe to repeat."""
    _in_use.pop(id(session), None)


def reuse_or_end(given: Mapping[str, str], wanted: Mapping[str, str]) -> SparkSession | None:
    """The Spark that runs in this process, if it has the wanted settings or they can be changed
    while it runs; None where a new one may start.

    Our Spark is ended for a new one, with its Java process, unless a session is held. The host
    program's is never ended: it must have the settings of the profile (`given`), but not those
    that we add (`wanted`). Raises SparkJobError with all settings that differ.
    """
    _end_leftovers()
    running = SparkSession._instantiatedSession
    if running is None or running._sc._jsc is None:
        return None
    if ours := _our_spark():
        other = _unchangeable(running, ours.settings, wanted)
    else:
        other = _unchangeable(running, {key: _value(running.conf, key) for key in given}, given)
    if not other:
        return running
    if ours and not _in_use:
        _logger.debug("Spark is begun anew, as other settings are asked for: %s", ", ".join(other))
        end()
        return None
    whose, advice = (
        (
            "for another invocation of dbt, or another use of it, that has not ended",
            "Run one after the other, or each in a process of its own",
        )
        if ours
        else (
            "as the program that runs dbt has started it",
            "Have the program start it with these, take them out of server_side_parameters to use "
            "it as it is, or run dbt in a process of its own",
        )
    )
    # Settings that we derive from others are listed only if no others differ.
    listed = {key: both for key, both in other.items() if key in given or key not in wanted}
    lines = "".join(
        f"  - {key}: {_masked(key, now)} now, {_masked(key, then)} wanted\n"
        for key, (now, then) in (listed or other).items()
    )
    raise SparkJobError(
        f"Spark runs in this process, {whose}, with other settings than are wanted now, which "
        f"can't be changed while it runs:\n{lines}{advice}"
    )


def _end_leftovers() -> None:
    """Ends our Java process if no Spark runs in it any more: it keeps the settings of its start.
    Forgets one that has died, as for want of memory."""
    if _started is None:
        return
    if _started.process != os.getpid():
        raise SparkJobError(
            "this process is a fork of one in which dbt has started Spark, which the two can't "
            "share: fork before dbt runs, or start the process anew, as multiprocessing does with "
            "'spawn'"
        )
    has_died = _started.gateway.proc.poll() is not None
    running = SparkSession._instantiatedSession
    if has_died or running is None or running._sc._jsc is None:
        end()


def unset_others(session: SparkSession, wanted: Mapping[str, str]) -> None:
    """Resets those settings of the session with which our Spark was started, and that are not
    wanted."""
    if ours := _our_spark():
        for key in {*ours.settings} - {*wanted}:
            if _may_unset(session.conf, key):
                session.conf.unset(key)


def _unchangeable(
    running: SparkSession, has: Mapping[str, str | None], wanted: Mapping[str, str]
) -> dict[str, tuple[str | None, str | None]]:
    """The settings that differ and can't be changed while Spark runs, with their present and their
    wanted values."""
    differ = {
        key: (has.get(key), wanted.get(key))
        for key in sorted({*has} | {*wanted})
        if key != _NAME and _normalized(has.get(key)) != _normalized(wanted.get(key))
    }
    if not differ:
        return differ
    trial = running.newSession().conf
    return {
        key: (now, then)
        for key, (now, then) in differ.items()
        if not (_may_unset(trial, key) if then is None else try_set(trial, key, then))
    }


def _may_unset(conf: RuntimeConfig, key: str) -> bool:
    return conf.isModifiable(key) or key.startswith("spark.sql.catalog.")


def _normalized(value: str | None) -> str | None:
    return value and value.removeprefix("file://").removeprefix("file:")


def _value(conf: RuntimeConfig, key: str) -> str | None:
    try:
        value: str | None = conf.get(key)
    except SPARK_FAILURES:  # of a key without a default
        return None
    return value


def _masked(key: str, value: str | None) -> str:
    if value is None:
        return "not set"
    return hide_login(value) if _PUBLIC.fullmatch(key) else HIDDEN


def end() -> None:
    """Ends our Spark and its Java process, which has settings such as the memory."""
    global _started
    from pyspark import SparkContext

    ended, _started = _started, None
    if ended is None:
        return
    if SparkContext._gateway is ended.gateway:
        running = SparkSession._instantiatedSession
        with suppress(Exception):  # of a Java process that has died
            if running is not None:
                running.stop()
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = SparkSession._activeSession = None
    with suppress(Exception):
        ended.gateway.shutdown()
    process = ended.gateway.proc
    with suppress(OSError):
        process.stdin.close()  # at which it ends, and gives back the metastore on Derby
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def write_output_to(folder: Path | None) -> None:
    """Has the next Java process write to `spark.log` in this folder, or nowhere (None), instead of
    to the console."""
    global _output
    _output = subprocess.DEVNULL if folder is None else folder.absolute() / LOG_FILE


def output_hint() -> str:
    """Says where users find the output of the Java process."""
    if _output is None:
        return "the output of Spark above"
    if not isinstance(_output, Path):
        return "what Spark says where dbt keeps a log file, beside which is Spark's"
    cwd = Path.cwd()
    return str(_output.relative_to(cwd) if _output.is_relative_to(cwd) else _output)


@contextmanager
def java_output() -> Iterator[IO[bytes] | int | None]:
    """The output for Popen; None, the console, also where the file can't be written."""
    if not isinstance(_output, Path):
        yield _output
        return
    try:
        _output.parent.mkdir(parents=True, exist_ok=True)
        if _output.exists() and _output.stat().st_size > _MAX_BYTES:
            _output.replace(_output.with_name(f"{LOG_FILE}.1"))
        file = _output.open("ab")
    except OSError:
        yield None
        return
    with file:
        yield file
