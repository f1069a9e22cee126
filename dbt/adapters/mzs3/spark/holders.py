"""Whose the Spark of this process is, who works on it, and whether one with other settings may
take its place (docs/decisions/0038-spark-is-begun-anew.md)."""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from pyspark.sql import SparkSession

from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES
from dbt.adapters.mzs3.text import without_login

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

lock = threading.RLock()
"""To be held from the question for Spark to `hold`."""
# By their ids.
_held: WeakValueDictionary[int, SparkSession] = WeakValueDictionary()
_started: _Started | None = None


@dataclass(frozen=True)
class _Started:
    """The Java process that we have started, and the Spark in it, once that runs."""

    gateway: Any
    process: int
    """Of the Python that has started it, of which a fork inherits all this."""
    session: SparkSession | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


def launched(gateway: Any) -> None:
    """A Java process runs for Spark, and is ours to end, unless we were told of one that ran."""
    global _started
    _started = _Started(gateway, os.getpid()) if gateway.proc is not None else None


def started(session: SparkSession, settings: Mapping[str, str]) -> None:
    """Spark runs now, with these settings, and is ours if its Java process is."""
    global _started
    if _started is not None:
        _started = _Started(_started.gateway, _started.process, session, settings)


def _own() -> _Started | None:
    """The Spark that runs, if it is ours; what a host program has begun after ours is not."""
    running = SparkSession._instantiatedSession
    is_ours = _started is not None and running is not None and _started.session is running
    return _started if is_ours else None


def hold(session: SparkSession) -> SparkSession:
    """The session, on whose Spark somebody works from now on, until it is released or lost."""
    _held[id(session)] = session
    return session


def release(session: SparkSession) -> None:
    """Nobody works in the session any more; safe to repeat."""
    _held.pop(id(session), None)


def usable(given: Mapping[str, str], wanted: Mapping[str, str]) -> SparkSession | None:
    """The Spark that runs in this process, if it is as it is wanted; None where one may start.

    What differs can only be a setting that can't be changed while Spark runs. Ours is stopped
    then, with its Java process, unless somebody holds a session. The host program's is never
    stopped: it has to have what the profile says itself (`given`), and not what we add to that
    (`wanted`).
    Raises SparkJobError with all settings that differ.
    """
    _end_what_is_left()
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
    # Not those that we derive from others, unless that is all.
    named = {key: both for key, both in other.items() if key in given or key not in wanted}
    raise SparkJobError(
        f"Spark runs in this process, {whose}, with other settings than are wanted now, which "
        f"can't be changed while it runs:\n{_told(named or other)}\n{advice}"
    )


def _end_what_is_left() -> None:
    """Ends our Java process where no Spark runs in it any more: it keeps the settings that it was
    started with. Forgets one that has died, as for want of memory."""
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


def set_where_possible(conf: RuntimeConfig, key: str, value: str) -> bool:
    """Whether a session takes the setting, which it then has.

    `isModifiable` says no of what no class of Spark declares, as a catalog's settings.
    """
    if not conf.isModifiable(key) and not key.startswith("spark.sql."):
        return False
    try:
        conf.set(key, value)
    except SPARK_FAILURES:
        if conf.isModifiable(key):
            raise
        return False
    return True


def forget_others(session: SparkSession, wanted: Mapping[str, str]) -> None:
    """The session gets Spark's defaults for what our Spark was started with, and is not wanted."""
    if ours := _own():
        for key in {*ours.settings} - {*wanted}:
            if _is_unset(session.conf, key):
                session.conf.unset(key)


_Differing = dict[str, tuple[str | None, str | None]]


def _fixed(
    running: SparkSession, has: Mapping[str, str | None], wanted: Mapping[str, str]
) -> _Differing:
    """What differs and can't be changed while Spark runs: each key with what is and is wanted."""
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
        if not (_is_unset(trial, key) if then is None else set_where_possible(trial, key, then))
    }


def _is_unset(conf: RuntimeConfig, key: str) -> bool:
    """Whether a session can do without the setting."""
    return conf.isModifiable(key) or key.startswith("spark.sql.catalog.")


def _compared(value: str | None) -> str | None:
    return value and value.removeprefix("file://").removeprefix("file:")


def _value(conf: RuntimeConfig, key: str) -> str | None:
    try:
        value: str | None = conf.get(key)
    except SPARK_FAILURES:  # of a key without a default
        return None
    return value


def _told(other: _Differing) -> str:
    return "\n".join(
        f"  - {key}: {_shown(key, now)} now, {_shown(key, then)} wanted"
        for key, (now, then) in other.items()
    )


def _shown(key: str, value: str | None) -> str:
    if value is None:
        return "not set"
    return without_login(value) if _SHOWN.fullmatch(key) else "***"


def end() -> None:
    """Ends Spark, if its Java process is ours, and that: its memory, for example, is for good."""
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
    except TimeoutExpired:
        process.kill()
        process.wait()
