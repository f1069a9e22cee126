"""Whose the Spark of this process is, who works on it, and whether one with other settings may
take its place (docs/decisions/0038-spark-is-begun-anew.md)."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from pyspark.sql import SparkSession

from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES
from dbt.adapters.mzs3.text import may_be_secret

if TYPE_CHECKING:
    from pyspark.sql.conf import RuntimeConfig

_END_S = 60
# A name, which decides nothing of what Spark does.
_NAME = "spark.app.name"

lock = threading.RLock()
"""To be held from the question for Spark to `hold`."""
# By their ids.
_held: WeakValueDictionary[int, SparkSession] = WeakValueDictionary()
_started: _Started | None = None


@dataclass(frozen=True)
class _Started:
    """The Spark that we have started, in a Java process that we have started too."""

    session: SparkSession
    settings: Mapping[str, str]


def started(session: SparkSession, settings: Mapping[str, str]) -> None:
    """Spark runs now, with these settings, and is ours to stop."""
    global _started
    _started = _Started(session, settings)


def _own() -> _Started | None:
    """The Spark that runs, if it is ours; what a host program has begun after ours is not."""
    is_ours = _started is not None and _started.session is SparkSession._instantiatedSession
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
        _end(running)
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
    named = {key: values for key, values in other.items() if key in given}
    raise SparkJobError(
        f"Spark runs in this process, {whose}, with other settings than the profile says, which "
        f"can't be changed while it runs:\n{_told(named or other)}\n{advice}"
    )


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
        f"  - {key} is {_shown(key, now)}, and the profile says {_shown(key, then)}"
        for key, (now, then) in other.items()
    )


def _shown(key: str, value: str | None) -> str:
    if value is None:
        return "not set"
    return "***" if may_be_secret(f"{key}={value}") else value


def _end(session: SparkSession) -> None:
    """Stops Spark, and its Java process, of which some settings are: its memory, for example."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    session.stop()
    gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None
    gateway.proc.stdin.close()  # at which it ends, and gives back the metastore on Derby
    try:
        gateway.proc.wait(_END_S)
    except TimeoutExpired:
        gateway.proc.kill()
