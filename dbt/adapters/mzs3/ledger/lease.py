"""A lease that lets one run at a time change a source, on any host; other runs wait, or fail.

The lock is an optimisation; the ledger is correct without it, because adding a partition is a
compare-and-set (see `ledger`). The lock keeps two runs from doing the same work, of which one
would be lost.

The holder renews the lease regularly. A run that waits for the lock measures by its own clock how
long the lease was not renewed, and takes the lock over after `LEASE_S`: clocks of two hosts are
never compared. A holder that was only slow finds out at its next `require`, which the ledger calls
before anything that counts; the run that took over closes what that holder had planned.

In a catalog the lock is a table without rows, which every catalog supports: creating a table is
atomic, and the table's properties name its creator. The table is never changed, so a slow holder
can't reclaim it. To renew the lease, the holder has a second table, created when the run is
first due to renew it.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

from pyspark.sql import SparkSession

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.ledger.relations import SourceRelations
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES
from dbt.adapters.mzs3.spark.sql import quote_schema
from dbt.adapters.mzs3.spark.tables import (
    decode_property,
    encode_property,
    properties_sql,
    read_properties,
)
from dbt.adapters.mzs3.text import operation_command

try:
    import fcntl
except ImportError:  # on Windows, runs wait for a dead run's lock
    fcntl = None  # type: ignore[assignment]

WAIT_S = 600.0
POLL_S = 1.0
LEASE_S = 120.0
"""A holder that has not renewed its lease for this long has lost its lock."""
RENEW_S = 20.0
NOTHING_COMMITTED = "nothing of it is committed"

# Not `LOCATION_ALREADY_EXISTS`: a folder with the table's name is nobody's lock.
_EXISTS = re.compile("(?<!location_)already_?exists", re.IGNORECASE)

# Locks between threads of this process, which are one owner to the metastore.
_threads: dict[str, threading.Lock] = {}

_PROPERTY = "mzs3.lock."
_BEAT = "beat"
# Not `token`: Spark hides the values of properties with that name.
_TAKEN_AS = "taken_as"

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MACHINE_ID = Path("/etc/machine-id")
_PID_NAMESPACE = Path("/proc/self/ns/pid")
# The PID namespace of a Linux host itself; containers have others.
_OF_THE_HOST = "pid:[4026531836]"
_ENDED = frozenset("ZXx")  # zombie, dead


class SourceLock:
    """A lock that one run holds in a `with` block, on any host that shares the metastore.

    Takes over the lock of a dead process of this host at once, any other lock if it was not
    renewed for `LEASE_S`. Waits at most `wait_s` seconds, or until the user cancels. Then raises
    SourceError, which names the holder and says how to remove the lock.
    """

    def __init__(
        self,
        spark: SparkSession,
        relations: SourceRelations,
        source: str,
        *,
        wait_s: float = WAIT_S,
        cancellation: Cancellation | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.table = LockTable(spark, relations)
        self._relations = relations
        self._source = source
        self._wait_s = wait_s
        self._cancellation = cancellation or Cancellation(source)
        self._clock = clock
        self.holder = Holder(uuid.uuid4().hex, current_owner())
        self._seen: tuple[Holder | None, str | None] = (None, None)
        self._seen_since = 0.0
        self._beats = 0
        self._ended = threading.Event()
        self._renewer = threading.Thread(target=self._renew, daemon=True)
        self._thread = _threads.setdefault(relations.lock, threading.Lock())

    def __enter__(self) -> SourceLock:
        until = self._clock() + self._wait_s
        while not self._thread.acquire(timeout=min(POLL_S, self._wait_s)):
            self._cancellation.check()
            if self._clock() >= until:
                raise SourceError(
                    f"{self._source}: another thread of this process has been ingesting this "
                    f"source for more than {self._wait_s:.0f} s. Run again when it is done"
                )
        try:
            while (holder := self._try()) is not None:
                if self._clock() >= until:
                    who = str(holder.owner) or "somebody"
                    unlock = operation_command("unlock_s3_source", f"source: {self._source}")
                    raise SourceError(
                        f"{self._source}: {who} is ingesting this source and has not finished "
                        f"within {self._wait_s:.0f} s. Run again later; if that process is gone, "
                        f"take its lock away with: {unlock}"
                    )
                self._cancellation.wait(POLL_S)
            self._renewer.start()
        except BaseException:
            # This run may hold the lock by now, and nobody else frees it.
            with suppress(*SPARK_FAILURES):
                self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._ended.set()
            if self._renewer.is_alive():
                self._renewer.join(timeout=POLL_S)
            if self.table.holder() == self.holder:
                self.table.drop()
            if self._beats:
                self.table.drop_beat(self.holder.token)
        finally:
            self._thread.release()

    def require(self, outcome: str = NOTHING_COMMITTED) -> None:
        """Raises SourceError, which states the `outcome` of the run, if somebody took the lock."""
        if self.table.holder() != self.holder:
            raise SourceError(
                f"{self._source}: the lock {self._relations.shown('__lock')} was taken away while "
                f"this run was ingesting; {outcome}. Run again"
            )

    @contextmanager
    def alone(self, outcome: str = NOTHING_COMMITTED) -> Iterator[None]:
        """A context for dropping tables that the next holder may create again under the same name.

        A run may stall in a DROP until another run takes over. So this run creates a mark, then
        checks the lock. If the lock was lost before the check, nothing is dropped; if it is lost
        later, the next holder finds the mark in `require_alone`. Raises SourceError, which states
        the outcome of the run, if the lock is lost. After any other error a statement may still
        be running, for which nobody waits: then the mark stays.
        """
        self.table.mark(self.holder)
        try:
            self.require(outcome)
            yield
        except SourceError:
            # This package raises SourceError between statements: none is still running.
            self.table.drop_mark(self.holder.token)
            raise
        self.table.drop_mark(self.holder.token)

    def require_alone(self) -> None:
        """Raises SourceError if an earlier holder may still be dropping tables in `alone`."""
        for other in self.table.marks():
            owner = other.owner
            if not (owner == self.holder.owner or owner.is_gone()):
                mark = self._relations.shown(f"__drop_{other.token}")
                who = str(owner) or "another run"
                raise SourceError(
                    f"{self._source}: {who} was dropping tables of this source and has not come "
                    "to its end; what it still drops could be this run's. See to it that it is "
                    f"gone, and then drop the table that says so: DROP TABLE {mark}"
                )
            self.table.drop_mark(other.token)

    def _try(self) -> Holder | None:
        """Takes the lock, from another holder if allowed. Returns None, or the lock's holder."""
        with host_guard(self._relations.lock) as has_guard:
            if self._create():
                return None
            holder = self.table.holder()
            if holder is None:
                return None if self._create() else (self.table.holder() or UNKNOWN)
            # A lock that this process itself holds is one that it failed to free.
            is_abandoned = holder.owner == self.holder.owner or (
                has_guard and holder.owner.is_gone()
            )
            if not (is_abandoned or self._has_expired(holder)):
                return holder
            self.table.take_away(holder.token)
            if not self._create():
                return self.table.holder() or UNKNOWN
            if not is_abandoned:
                # Another host may have seen the same expiry, and drop the lock that was just made.
                self._cancellation.wait(POLL_S)
            if (holder := self.table.holder()) != self.holder:
                return holder or UNKNOWN
            if not is_abandoned:
                self.require_alone()  # the former holder may stall in a DROP
            return None

    def _has_expired(self, holder: Holder) -> bool:
        """Whether this holder has not renewed its lease for `LEASE_S`."""
        if holder == UNKNOWN:
            return False
        seen, now = (holder, self.table.beat(holder.token)), self._clock()
        if seen != self._seen:
            self._seen, self._seen_since = seen, now
        return now - self._seen_since >= LEASE_S

    def _renew(self) -> None:
        while not self._ended.wait(RENEW_S):
            self._beats += 1
            # If every renewal fails, the lock is lost, and `require` raises.
            with suppress(*SPARK_FAILURES):
                self.table.set_beat(self.holder.token, self._beats)
            if self._ended.is_set():
                # `__exit__` may have dropped the beat before this thread made it.
                with suppress(*SPARK_FAILURES):
                    self.table.drop_beat(self.holder.token)

    def _create(self) -> bool:
        """Creates the lock if it is free. Returns whether it is ours now."""
        try:
            self.table.create(self.holder)
        except SPARK_FAILURES as exc:
            # Another run was faster, which each metastore reports in other words; or the statement
            # took effect, and the response was lost.
            holder = self.table.holder()
            if holder is None and not _EXISTS.search(str(exc)):
                raise
            return holder == self.holder
        return True


@contextmanager
def host_guard(name: str) -> Iterator[bool]:
    """Yields True to one process of this host at a time, which may take over dead ones' locks.

    Otherwise two processes could see a dead lock, one replace it, and the other drop the new lock.
    """
    digest = hashlib.sha256(f"{current_owner().place} {name}".encode()).hexdigest()[:32]
    path = Path(tempfile.gettempdir()) / f"dbt-mzs3-{digest}.lock"
    with ExitStack() as stack:
        alone = False
        if fcntl is not None:
            with suppress(OSError):
                file = stack.enter_context(path.open("a"))
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                alone = True
        yield alone


@dataclass(frozen=True)
class Owner:
    """A process, distinct from every other one, even from later ones with the same PID.

    `place` is the scope in which `pid` is unique: host, container and user. `boot` identifies the
    host's boot, `started` is the process's start by the kernel's clock; both are empty if unknown.
    """

    place: str
    boot: str
    pid: int
    started: str
    host: str

    def __str__(self) -> str:
        return f"process {self.pid} on host {self.host}" if self.host else ""

    def is_gone(self) -> bool:
        """True only if the process has certainly ended; False if it is in another place."""
        if self.place != _place():
            return False
        if self.boot != _text(_BOOT_ID):
            # No process survives a reboot; but containers on two hosts may have the same names.
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
    return Owner(_place(), _text(_BOOT_ID), pid, _stat(pid)[1], socket.gethostname())


def _place() -> str:
    parts = [socket.gethostname(), str(os.getuid()) if hasattr(os, "getuid") else ""]
    # Hosts may share a name, and so may containers.
    return "/".join([*parts, _text(_MACHINE_ID), _namespace()])


def _namespace() -> str:
    return str(_PID_NAMESPACE.readlink()) if _PID_NAMESPACE.is_symlink() else ""


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _stat(pid: int) -> tuple[str, str]:
    """The state of a process, and when it started (see proc(5)); empty if unknown."""
    # The command's name before these, in parentheses, may contain spaces and parentheses.
    fields = _text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return (fields[0], fields[19]) if len(fields) > 19 else ("", "")


@dataclass(frozen=True)
class Holder:
    """Who has the lock; a process that takes it a second time has another `token`."""

    token: str
    owner: Owner


UNKNOWN = Holder("", Owner(place="", boot="", pid=0, started="", host=""))


class LockTable:
    """The tables in the catalog for the lock of one source, whoever holds it."""

    def __init__(self, spark: SparkSession, relations: SourceRelations) -> None:
        self._spark = spark
        self._relations = relations
        self._has_beat = False

    def create(self, holder: Holder) -> None:
        """Takes the lock for this holder. Raises if somebody has it."""
        self._create(self._relations.lock, holder)

    def holder(self) -> Holder | None:
        """The lock's holder; None if the lock is free, UNKNOWN if the table is no lock of ours."""
        return self._holder(self._relations.lock)

    def mark(self, holder: Holder) -> None:
        """Creates the mark: this holder drops tables that another one may create again."""
        self._create(self._relations.mark(holder.token), holder)

    def marks(self) -> list[Holder]:
        """The holders that have a mark."""
        tables = self._spark.sql(f"SHOW TABLES IN {quote_schema(self._relations.schema)}")
        tokens = (self._relations.marked(row["tableName"]) for row in tables.collect())
        found = [(token, self._holder(self._relations.mark(token))) for token in tokens if token]
        # The table's name contains the token, even if the properties are lost.
        return [replace(holder, token=token) for token, holder in found if holder is not None]

    def drop_mark(self, token: str) -> None:
        """Drops the mark of the holder with this token."""
        self._spark.sql(f"DROP TABLE IF EXISTS {self._relations.mark(token)}")

    def _create(self, table: str, holder: Holder) -> None:
        values = {_TAKEN_AS: holder.token, **asdict(holder.owner)}
        written = {key: encode_property(str(value)) for key, value in values.items()}
        self._spark.sql(
            f"CREATE TABLE {table} (nothing string) USING parquet "
            f"TBLPROPERTIES {properties_sql(_PROPERTY, written)}"
        )

    def _holder(self, table: str) -> Holder | None:
        found = read_properties(self._spark, table, _PROPERTY)
        if found is None:
            return None
        try:
            values = {one.name: decode_property(found[one.name]) for one in fields(Owner)}
            pid = int(values.pop("pid"))
            return Holder(decode_property(found[_TAKEN_AS]), Owner(**values, pid=pid))
        except (KeyError, ValueError):
            return UNKNOWN

    def drop(self) -> None:
        """Frees the lock."""
        self._spark.sql(f"DROP TABLE IF EXISTS {self._relations.lock}")

    def take_away(self, token: str) -> None:
        """Frees the lock that was taken under this token, unless somebody else has it by now."""
        holder = self.holder()
        if holder is not None and holder.token == token:
            self.drop()
        self.drop_beat(token)

    def set_beat(self, token: str, number: int) -> None:
        """Renews the lease of the holder with this token; `number` counts the renewals."""
        name, beat = self._relations.beat(token), properties_sql(_PROPERTY, {_BEAT: str(number)})
        if not self._has_beat:
            # An earlier attempt that failed may have created the table.
            self._spark.sql(f"CREATE TABLE IF NOT EXISTS {name} (nothing string) USING parquet")
        self._spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES {beat}")
        self._has_beat = True

    def beat(self, token: str) -> str | None:
        """A value that changes whenever the holder with this token renews its lease."""
        found = read_properties(self._spark, self._relations.beat(token), _PROPERTY)
        return found.get(_BEAT) if found else None

    def drop_beat(self, token: str) -> None:
        """Drops the table that renewed the lease of this holder."""
        self._spark.sql(f"DROP TABLE IF EXISTS {self._relations.beat(token)}")


@dataclass
class Cancellation:
    """Whether the user has cancelled the run, and the SourceError for a cancelled run.

    `event` may be set from any thread. Once `committing` is set, only the metastore knows whether
    the commit took effect.
    """

    source: str
    event: threading.Event = field(default_factory=threading.Event)
    committing: bool = False

    @property
    def requested(self) -> bool:
        """Whether the user has cancelled."""
        return self.event.is_set()

    def check(self) -> None:
        """Raises SourceError once the user has cancelled."""
        if self.requested:
            raise self.error()

    def wait(self, seconds: float) -> None:
        """Waits for this long. Raises SourceError as soon as the user cancels."""
        self.event.wait(seconds)
        self.check()

    def error(self) -> SourceError:
        """The error of a cancelled run."""
        if self.committing:
            return SourceError(
                f"{self.source}: cancelled while it was committing; either all of this run is "
                "committed or nothing is, and the next run takes what is missing"
            )
        return SourceError(f"{self.source}: cancelled; nothing of this run is committed")
