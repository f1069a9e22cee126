"""What holds the lock of a source in a catalog: tables without rows, which every catalog has.

Creating a table is atomic, and its properties say who created it. It is never changed, so a holder
that was only slow can't make it its own again: what shows that the holder is at work is a second
table, of that holder alone, which is made once a run takes longer.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from dbt.adapters.mzs3.spark.table_properties import (
    decoded,
    encoded,
    properties_sql,
    read_properties,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt.adapters.mzs3.csv_source.relations import SourceRelations

_PROPERTY = "mzs3.lock."
_BEAT = "beat"

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MACHINE_ID = Path("/etc/machine-id")
_PID_NAMESPACE = Path("/proc/self/ns/pid")
# The namespace of a Linux host itself has always this number; those of containers never do.
_OF_THE_HOST = "pid:[4026531836]"
# Fields of /proc/<pid>/stat, counted from the one behind the command's name.
_STATE, _START = 0, 19
_ENDED = frozenset("ZXx")  # zombie, dead


class LockTable:
    """The lock of one source, whoever has it."""

    def __init__(self, spark: SparkSession, relations: SourceRelations) -> None:
        self._spark = spark
        self._relations = relations
        self._has_beat = False

    def create(self, values: Mapping[str, str]) -> None:
        """The lock is taken, and says so of whom. Raises if it was."""
        written = properties_sql(_PROPERTY, {key: encoded(v) for key, v in values.items()})
        self._make(self._relations.lock, written)

    def read(self) -> dict[str, str] | None:
        """What the lock says of its holder; None if there is none."""
        found = read_properties(self._spark, self._relations.lock, _PROPERTY)
        if found is None:
            return None
        try:
            return {key: decoded(value) for key, value in found.items()}
        except ValueError:
            return {}

    def drop(self) -> None:
        """The lock is free."""
        try:
            self._spark.sql(f"DROP TABLE IF EXISTS {self._relations.lock}")
        except AnalysisException:
            # Earlier versions made it a view.
            self._spark.sql(f"DROP VIEW IF EXISTS {self._relations.lock}")

    def set_beat(self, token: str, number: int) -> None:
        """The holder with this token was at work, so many times by now."""
        name, beat = self._relations.beat(token), properties_sql(_PROPERTY, {_BEAT: str(number)})
        if not self._has_beat:
            # One that failed before may have made it, or not.
            self._spark.sql(f"CREATE TABLE IF NOT EXISTS {name} (nothing string) USING parquet")
        self._spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES {beat}")
        self._has_beat = True

    def beat(self, token: str) -> str | None:
        """What changes while the holder with this token is at work."""
        found = read_properties(self._spark, self._relations.beat(token), _PROPERTY)
        return None if found is None else found.get(_BEAT)

    def drop_beat(self, token: str) -> None:
        """Nothing is left of that holder's work."""
        self._spark.sql(f"DROP TABLE IF EXISTS {self._relations.beat(token)}")

    def _make(self, name: str, properties: str) -> None:
        self._spark.sql(
            f"CREATE TABLE {name} (nothing string) USING parquet TBLPROPERTIES {properties}"
        )


@dataclass(frozen=True)
class Owner:
    """A process, told apart from every other one, later ones with the same number included.

    `place` is where `pid` means something: the host, the container and the user; `boot` is the
    host's boot since which it does. `started` is when the process did, in the kernel's clock.
    Both are empty where they are not known.
    """

    place: str
    boot: str
    pid: int
    started: str
    host: str

    def is_gone(self) -> bool:
        """True only if the process certainly runs no more; another place can't be judged."""
        if self.place != _place():
            return False
        if self.boot != _boot():
            # Nothing outlives a host's boot; but two containers on two hosts may look like one.
            return _namespace() == _OF_THE_HOST
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        state, started = _stat(self.pid)
        return state in _ENDED or bool(self.started and started and started != self.started)


def current_owner() -> Owner:
    """This process."""
    pid = os.getpid()
    return Owner(_place(), _boot(), pid, _stat(pid)[1], socket.gethostname())


def _place() -> str:
    parts = [socket.gethostname(), str(os.getuid()) if hasattr(os, "getuid") else ""]
    # Hosts may share a name, and so may containers.
    return "/".join([*parts, _text(_MACHINE_ID), _namespace()])


def _boot() -> str:
    return _text(_BOOT_ID)


def _namespace() -> str:
    return str(_PID_NAMESPACE.readlink()) if _PID_NAMESPACE.is_symlink() else ""


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _stat(pid: int) -> tuple[str, str]:
    """The state of a process, and when it started; both empty where that is not known."""
    # The command's name is in parentheses, and may hold spaces and parentheses itself.
    fields = _text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return (fields[_STATE], fields[_START]) if len(fields) > _START else ("", "")
