"""The Java process that we start for Spark: who uses it, whether one with other settings may
replace it (docs/decisions/0038-spark-is-begun-anew.md), and where it writes."""

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
from dbt.adapters.mzs3.secrets import HIDDEN, without_login
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES
from dbt.adapters.mzs3.spark.settings import try_set

if TYPE_CHECKING:
    from pyspark.sql.conf import RuntimeConfig

_logger = logging.getLogger(__name__)

_END_S = 60
# A name, which decides nothing of what Spark does.
_NAME = "spark.app.name"
# Any other setting may hold a key, or a password, whatever its name.
_SHOWN = re.compile(
    r"spark\.(master|submit\.deployMode|sql\.(warehouse\.dir|catalogImplementation|extensions)"
    r"|(driver|executor)\.(memory|memoryOverhead|cores|instances))"
)
LOG_FILE = "spark.log"
_MAX_BYTES = 10 * 1024 * 1024  # as dbt's own log

lock = threading.RLock()
"""To be held from `reuse_or_end` to `hold`."""
# By their ids.
_held: WeakValueDictionary[int, SparkSession] = WeakValueDictionary()
_started: _Started | None = None
# Where the next Java process writes: None is this process's console.
_output: Path | int | None = None


@dataclass(frozen=True)
class _Started:
    """The Java process that we have started, and the Spark in it, once that runs."""

    gateway: Any
    process: int
    """Of the Python that has started it: a fork of that inherits this object."""
    session: SparkSession | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


def record_launch(gateway: Any) -> None:
    """This Java process runs for Spark. It is ours to end, unless it was running before."""
    global _started
    _started = _Started(gateway, os.getpid()) if gateway.proc is not None else None


def record_session(session: SparkSession, settings: Mapping[str, str]) -> None:
    """Spark runs with these settings now, and is ours if its Java process is."""
    global _started
    _started = _started and replace(_started, session=session, settings=settings)


def _own() -> _Started | None:
    """The Spark that runs, if it is ours; one that a host program started after ours is not."""
    running = SparkSession._instantiatedSession
    is_ours = _started is not None and running is not None and _started.session is running
    return _started if is_ours else None


def hold(session: SparkSession) -> SparkSession:
    """The session, whose Spark is not replaced until the session is released or lost."""
    _held[id(session)] = session
    return session


def release(session: SparkSession) -> None:
    """The session is not used any more; safe to repeat."""
    _held.pop(id(session), None)


def reuse_or_end(given: Mapping[str, str], wanted: Mapping[str, str]) -> SparkSession | None:
    """The Spark that runs in this process, if it has the wanted settings, or can be given them
    while it runs; None where a new one may start.

    Our Spark, with its Java process, is ended for that unless a session is held. The host
    program's is never ended: it must have the settings of the profile itself (`given`), and need
    not have what we add to them (`wanted`). Raises SparkJobError with all settings that differ.
    """
    _end_remains()
    running = SparkSession._instantiatedSession
    if running is None or running._sc._jsc is None:
        return None
    if ours := _own():
        other = _fixed(running, ours.settings, wanted)
    else:
        other = _fixed(running, {key: _value(running.conf, key) for key in given}, given)
    if not other:
        return running
    if ours and not _held:
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
        f"  - {key}: {_shown(key, now)} now, {_shown(key, then)} wanted\n"
        for key, (now, then) in (listed or other).items()
    )
    raise SparkJobError(
        f"Spark runs in this process, {whose}, with other settings than are wanted now, which "
        f"can't be changed while it runs:\n{lines}{advice}"
    )


def _end_remains() -> None:
    """Ends our Java process where no Spark runs in it any more, as it keeps the settings that it
    was started with; forgets one that has died, as for want of memory."""
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
    """The session gets Spark's defaults for what our Spark was started with, and is not wanted."""
    if ours := _own():
        for key in {*ours.settings} - {*wanted}:
            if _may_unset(session.conf, key):
                session.conf.unset(key)


def _fixed(
    running: SparkSession, has: Mapping[str, str | None], wanted: Mapping[str, str]
) -> dict[str, tuple[str | None, str | None]]:
    """The settings that differ and can't be changed while Spark runs, each with the value that it
    has and the one that is wanted."""
    differ = {
        key: (has.get(key), wanted.get(key))
        for key in sorted({*has} | {*wanted})
        if key != _NAME and _compared(has.get(key)) != _compared(wanted.get(key))
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


def _compared(value: str | None) -> str | None:
    return value and value.removeprefix("file://").removeprefix("file:")


def _value(conf: RuntimeConfig, key: str) -> str | None:
    try:
        value: str | None = conf.get(key)
    except SPARK_FAILURES:  # of a key without a default
        return None
    return value


def _shown(key: str, value: str | None) -> str:
    if value is None:
        return "not set"
    return without_login(value) if _SHOWN.fullmatch(key) else HIDDEN


def end() -> None:
    """Ends our Spark and its Java process, of which settings such as its memory are."""
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
    """The Java process that is started next appends to `spark.log` in this folder; None discards
    its output. Without a call, it has the console of this process."""
    global _output
    _output = subprocess.DEVNULL if folder is None else folder.absolute() / LOG_FILE


def output_hint() -> str:
    """Where users find the output of the Java process, in words."""
    if _output is None:
        return "the output of Spark above"
    if not isinstance(_output, Path):
        return "what Spark says where dbt keeps a log file, beside which is Spark's"
    cwd = Path.cwd()
    return str(_output.relative_to(cwd) if _output.is_relative_to(cwd) else _output)


@contextmanager
def java_output() -> Iterator[IO[bytes] | int | None]:
    """What Popen takes; None, for the console, also where the file can't be written."""
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
