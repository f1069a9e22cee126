"""The Java process that we start for Spark: its sessions, settings, end and output.

If possible, it is replaced when other settings are needed
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
# The application's name; a difference in it does not matter.
_NAME = "spark.app.name"
# Settings that never contain secrets; any other setting may contain a key or a password.
_PUBLIC = re.compile(
    r"spark\.(master|submit\.deployMode|sql\.(warehouse\.dir|catalogImplementation|extensions)"
    r"|(driver|executor)\.(memory|memoryOverhead|cores|instances))"
)
LOG_FILE = "spark.log"
_MAX_BYTES = 10 * 1024 * 1024  # the limit of dbt's own log

lock = threading.RLock()
"""Callers hold this lock from `reuse_or_end` to `mark_in_use`."""
# The open sessions, by their ids.
_in_use: WeakValueDictionary[int, SparkSession] = WeakValueDictionary()
_started: _Started | None = None
# The output of the next Java process; None is this process's console.
_output: Path | int | None = None


@dataclass(frozen=True)
class _Started:
    """The Java process that we have started, and its Spark once that runs."""

    gateway: Any
    process: int
    """The id of the Python process that started Java; a forked process inherits this object."""
    session: SparkSession | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


def record_launch(gateway: Any) -> None:
    """Records the Java process of Spark, which we may end unless it was running before."""
    global _started
    _started = _Started(gateway, os.getpid()) if gateway.proc is not None else None


def record_session(session: SparkSession, settings: Mapping[str, str]) -> None:
    """Records the running Spark and its settings, if its Java process is ours."""
    global _started
    _started = _started and replace(_started, session=session, settings=settings)


def _our_spark() -> _Started | None:
    """The running Spark, if we started it, not a host program."""
    running = SparkSession._instantiatedSession
    is_ours = _started is not None and running is not None and _started.session is running
    return _started if is_ours else None


def mark_in_use(session: SparkSession) -> SparkSession:
    """Returns the session; its Spark is not replaced until it is released or garbage-collected."""
    _in_use[id(session)] = session
    return session


def release(session: SparkSession) -> None:
    """Allows replacing the session's Spark; safe to repeat."""
    _in_use.pop(id(session), None)


def reuse_or_end(given: Mapping[str, str], wanted: Mapping[str, str]) -> SparkSession | None:
    """The running Spark of this process, if it has the wanted settings or they can be changed in a
    session; None if the caller should start a new one.

    If settings differ, our Spark and its Java process are ended, unless a session is in use. The
    Spark of a host program is not ended: it must have the profile's settings (`given`), but not
    those that we add (in `wanted`). Raises SparkJobError with all settings that differ.
    """
    _end_leftovers()
    running = SparkSession._instantiatedSession
    if running is None or running._sc._jsc is None:
        return None
    if ours := _our_spark():
        diffs = _unchangeable(running, ours.settings, wanted)
    else:
        diffs = _unchangeable(running, {key: _value(running.conf, key) for key in given}, given)
    if not diffs:
        return running
    if ours and not _in_use:
        _logger.debug("Spark is begun anew, as other settings are asked for: %s", ", ".join(diffs))
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
    # Lists settings that we derive from others only if no other settings differ.
    listed = {key: both for key, both in diffs.items() if key in given or key not in wanted}
    lines = "".join(
        f"  - {key}: {_masked(key, now)} now, {_masked(key, then)} wanted\n"
        for key, (now, then) in (listed or diffs).items()
    )
    raise SparkJobError(
        f"Spark runs in this process, {whose}, with other settings than are wanted now, which "
        f"can't be changed while it runs:\n{lines}{advice}"
    )


def _end_leftovers() -> None:
    """Ends our Java process if its Spark has stopped, as a new Spark in it would keep the old
    settings. Forgets a Java process that has died, for example because memory was low."""
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
    """Resets settings of the session with which our Spark was started, if they are not wanted any
    more."""
    if ours := _our_spark():
        for key in {*ours.settings} - {*wanted}:
            if _may_unset(session.conf, key):
                session.conf.unset(key)


def _unchangeable(
    running: SparkSession, present: Mapping[str, str | None], wanted: Mapping[str, str]
) -> dict[str, tuple[str | None, str | None]]:
    """The settings that differ and can't be changed while Spark runs, with their present and
    wanted values."""
    differ = {
        key: (present.get(key), wanted.get(key))
        for key in sorted({*present} | {*wanted})
        if key != _NAME and _normalized(present.get(key)) != _normalized(wanted.get(key))
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
    except SPARK_FAILURES:  # a key that is not set and has no default
        return None
    return value


def _masked(key: str, value: str | None) -> str:
    if value is None:
        return "not set"
    return hide_login(value) if _PUBLIC.fullmatch(key) else HIDDEN


def end() -> None:
    """Ends our Spark and its Java process, as settings such as its memory can't be changed."""
    global _started
    from pyspark import SparkContext

    ended, _started = _started, None
    if ended is None:
        return
    if SparkContext._gateway is ended.gateway:
        running = SparkSession._instantiatedSession
        with suppress(Exception):  # if the Java process has died
            if running is not None:
                running.stop()
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = SparkSession._activeSession = None
    with suppress(Exception):
        ended.gateway.shutdown()
    process = ended.gateway.proc
    with suppress(OSError):
        process.stdin.close()  # the process then ends, and releases the metastore on Derby
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def write_output_to(folder: Path | None) -> None:
    """Redirects the output of the next Java process from the console to `spark.log` in this
    folder; None discards it."""
    global _output
    _output = subprocess.DEVNULL if folder is None else folder.absolute() / LOG_FILE


def output_hint() -> str:
    """A text that tells users where the output of the Java process is."""
    if _output is None:
        return "the output of Spark above"
    if not isinstance(_output, Path):
        return "what Spark says where dbt keeps a log file, beside which is Spark's"
    cwd = Path.cwd()
    return str(_output.relative_to(cwd) if _output.is_relative_to(cwd) else _output)


@contextmanager
def java_output() -> Iterator[IO[bytes] | int | None]:
    """Yields stdout and stderr for Popen: None, the console, if the file can't be written."""
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
