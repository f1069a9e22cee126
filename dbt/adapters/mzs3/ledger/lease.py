"""The lock of a source: only the run that holds it changes the source; other runs wait, or fail.

The lock is an optimisation, which keeps two runs from doing the same work. The ledger is correct
without it, because adding a partition is a compare-and-set (see `ledger`).

The lock is a lease, which its holder renews regularly. Each waiting run measures, with its own
clock, the time since it last saw a renewal, and takes the lock over after `LEASE_S`: clocks of two
hosts are never compared. A holder that was only slow learns of this at its next `require`, which
the ledger calls before each write that counts. The new holder closes the slow run's epoch.

In the catalog the lock is a table without rows, whose properties name the holder. Every catalog
can create such a table atomically. The table is never altered: an ALTER by a slow holder could
change the next holder's lock. Renewals are written to a second table, named after the holder's
token, which the first renewal creates.
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

# Errors that a table exists; not `LOCATION_ALREADY_EXISTS`, as a leftover folder is no lock.
_EXISTS = re.compile("(?<!location_)already_?exists", re.IGNORECASE)

# Locks between the threads of this process, by lock table: all threads are the same `Owner`.
_threads: dict[str, threading.Lock] = {}

_PREFIX = "mzs3.lock."  # of properties of the tables
_RENEWAL = "beat"
# The holder's token. Not called `token`: Spark hides the values of such properties.
_TOKEN = "taken_as"  # noqa: S105 (the name of a property)

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MACHINE_ID = Path("/etc/machine-id")
_PID_NAMESPACE = Path("/proc/self/ns/pid")
# The PID namespace of a Linux host outside of containers.
_HOST_NAMESPACE = "pid:[4026531836]"
_DEAD_STATES = frozenset("ZXx")  # in proc(5): zombie, dead


class SourceLock:
    """The lock of a source, held in a `with` block by one run of all that share the metastore.

    Takes the lock over from a dead process of this host at once, and from any other holder after
    `LEASE_S` without a renewal. After `wait_s` seconds, raises SourceError with the holder and
    the command that removes the lock. Raises SourceError too if the user cancels.
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
        self._observed: tuple[Holder | None, str | None] = (None, None)
        self._observed_since = 0.0
        self._renewals = 0
        self._ended = threading.Event()
        self._renewer = threading.Thread(target=self._renew, daemon=True)
        self._thread = _threads.setdefault(relations.lock, threading.Lock())

    def __enter__(self) -> SourceLock:
        deadline = self._clock() + self._wait_s
        while not self._thread.acquire(timeout=min(POLL_S, self._wait_s)):
            self._cancellation.check()
            if self._clock() >= deadline:
                raise SourceError(
                    f"{self._source}: another thread of this process has been ingesting this "
                    f"source for more than {self._wait_s:.0f} s. Run again when it is done"
                )
        try:
            while (holder := self._try()) is not None:
                if self._clock() >= deadline:
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
            # This run may already hold the lock, and no other run would free it.
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
            if self._renewals:
                self.table.drop_renewals(self.holder.token)
        finally:
            self._thread.release()

    def require(self, outcome: str = NOTHING_COMMITTED) -> None:
        """Raises SourceError with the run's `outcome` if this run no longer holds the lock."""
        if self.table.holder() != self.holder:
            raise SourceError(
                f"{self._source}: the lock {self._relations.display_name('__lock')} was taken "
                f"away while this run was ingesting; {outcome}. Run again"
            )

    @contextmanager
    def dropping_tables(self, outcome: str = NOTHING_COMMITTED) -> Iterator[None]:
        """A context for dropping tables that the next holder may create again with the same names.

        A DROP may stall until another run holds the lock, and then drop that run's table. So this
        run first creates a mark, and then checks the lock. If the lock is already lost, raises
        SourceError with the run's `outcome`, and nothing is dropped. If the lock is lost later,
        the next holder finds the mark in `require_no_pending_drops`. After an error other than
        SourceError the mark stays, as Spark may still be running a statement.
        """
        self.table.mark(self.holder)
        try:
            self.require(outcome)
            yield
        except SourceError:
            # This package raises SourceError, not Spark: no statement is still running.
            self.table.drop_mark(self.holder.token)
            raise
        self.table.drop_mark(self.holder.token)

    def require_no_pending_drops(self) -> None:
        """Raises SourceError if an earlier holder may still be in `dropping_tables`."""
        for earlier in self.table.marks():
            owner = earlier.owner
            if not (owner == self.holder.owner or owner.is_gone()):
                mark = self._relations.display_name(f"__drop_{earlier.token}")
                who = str(owner) or "another run"
                raise SourceError(
                    f"{self._source}: {who} was dropping tables of this source and has not come "
                    "to its end; what it still drops could be this run's. See to it that it is "
                    f"gone, and then drop the table that says so: DROP TABLE {mark}"
                )
            self.table.drop_mark(earlier.token)

    def _try(self) -> Holder | None:
        """Tries once to take or take over the lock. Returns None on success, else the holder."""
        with host_guard(self._relations.lock) as has_guard:
            if self._create():
                return None
            holder = self.table.holder()
            if holder is None:
                return None if self._create() else (self.table.holder() or UNKNOWN)
            # A lock with the same owner was left by an earlier run of this process.
            is_abandoned = holder.owner == self.holder.owner or (
                has_guard and holder.owner.is_gone()
            )
            if not (is_abandoned or self._has_expired(holder)):
                return holder
            self.table.drop_if_held_by(holder.token)
            if not self._create():
                return self.table.holder() or UNKNOWN
            if not is_abandoned:
                # Another host may have seen the lease expire too, and may now drop the new lock.
                self._cancellation.wait(POLL_S)
            if (holder := self.table.holder()) != self.holder:
                return holder or UNKNOWN
            if not is_abandoned:
                self.require_no_pending_drops()  # the former holder's DROP may be stalled
            return None

    def _has_expired(self, holder: Holder) -> bool:
        """Whether this run has seen no renewal by this holder for `LEASE_S`."""
        if holder == UNKNOWN:
            return False
        observed, now = (holder, self.table.last_renewal(holder.token)), self._clock()
        if observed != self._observed:
            self._observed, self._observed_since = observed, now
        return now - self._observed_since >= LEASE_S

    def _renew(self) -> None:
        while not self._ended.wait(RENEW_S):
            self._renewals += 1
            # Failures are ignored: if every renewal fails, the lock is lost, and `require` raises.
            with suppress(*SPARK_FAILURES):
                self.table.renew(self.holder.token, self._renewals)
            if self._ended.is_set():
                # `__exit__` may have dropped the table before this thread created it.
                with suppress(*SPARK_FAILURES):
                    self.table.drop_renewals(self.holder.token)

    def _create(self) -> bool:
        """Creates the lock if it is free. Returns whether this run holds it now."""
        try:
            self.table.create(self.holder)
        except SPARK_FAILURES as exc:
            # Another run was faster, which each metastore reports with another error; or the
            # statement succeeded, and its response was lost.
            holder = self.table.holder()
            if holder is None and not _EXISTS.search(str(exc)):
                raise
            return holder == self.holder
        return True


@contextmanager
def host_guard(name: str) -> Iterator[bool]:
    """Yields True to one process of this host at a time: only that one may take over dead locks.

    Without this, if two processes found a dead lock, one could drop the other's new lock.
    """
    digest = hashlib.sha256(f"{current_owner().place} {name}".encode()).hexdigest()[:32]
    path = Path(tempfile.gettempdir()) / f"dbt-mzs3-{digest}.lock"
    with ExitStack() as stack:
        has_guard = False
        if fcntl is not None:
            with suppress(OSError):
                file = stack.enter_context(path.open("a"))
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                has_guard = True
        yield has_guard


@dataclass(frozen=True)
class Owner:
    """Identifies a process, so that a later process with the same PID is a different `Owner`.

    `place` is where `pid` is unique: host, container and user. `boot` is the id of the host's
    boot, `started` the start of the process in the kernel's clock; both are empty if unknown.
    """

    place: str
    boot: str
    pid: int
    started: str
    host: str

    def __str__(self) -> str:
        return f"process {self.pid} on host {self.host}" if self.host else ""

    def is_gone(self) -> bool:
        """Whether the process has certainly ended; False if its `place` is not this process's."""
        if self.place != _place():
            return False
        if self.boot != _read_text(_BOOT_ID):
            # Another boot: a reboot of this host or, if in a container, the boot of another host.
            return _namespace() == _HOST_NAMESPACE
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        state, started = _process_state(self.pid)
        return state in _DEAD_STATES or bool(self.started and started and started != self.started)


def current_owner() -> Owner:
    """The `Owner` that identifies this process."""
    pid = os.getpid()
    return Owner(_place(), _read_text(_BOOT_ID), pid, _process_state(pid)[1], socket.gethostname())


def _place() -> str:
    parts = [socket.gethostname(), str(os.getuid()) if hasattr(os, "getuid") else ""]
    # Two hosts may have the same name, as may two containers: hence also these ids.
    return "/".join([*parts, _read_text(_MACHINE_ID), _namespace()])


def _namespace() -> str:
    return str(_PID_NAMESPACE.readlink()) if _PID_NAMESPACE.is_symlink() else ""


def _read_text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _process_state(pid: int) -> tuple[str, str]:
    """A process's state and start time, as in proc(5); both empty if unknown."""
    # They follow the command's name in parentheses, which may itself contain parentheses.
    fields = _read_text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return (fields[0], fields[19]) if len(fields) > 19 else ("", "")


@dataclass(frozen=True)
class Holder:
    """A run that holds the lock: its process, and a `token` that no other run has."""

    token: str
    owner: Owner


UNKNOWN = Holder("", Owner(place="", boot="", pid=0, started="", host=""))
"""The holder of a lock whose table does not name its holder."""


class LockTable:
    """The tables in the catalog for the lock of one source: lock, renewals and marks."""

    def __init__(self, spark: SparkSession, relations: SourceRelations) -> None:
        self._spark = spark
        self._relations = relations
        self._has_renewals = False

    def create(self, holder: Holder) -> None:
        """Creates the lock for this holder. Raises Spark's error if the lock exists."""
        self._create(self._relations.lock, holder)

    def holder(self) -> Holder | None:
        """The lock's holder; None if the lock is free, UNKNOWN if its table names none."""
        return self._holder(self._relations.lock)

    def mark(self, holder: Holder) -> None:
        """Creates this holder's mark, which exists while the holder is in `dropping_tables`."""
        self._create(self._relations.mark(holder.token), holder)

    def marks(self) -> list[Holder]:
        """The holders whose marks exist."""
        tables = self._spark.sql(f"SHOW TABLES IN {quote_schema(self._relations.schema)}")
        tokens = (self._relations.token_of_mark(row["tableName"]) for row in tables.collect())
        holders = [(token, self._holder(self._relations.mark(token))) for token in tokens if token]
        # With the token from the table's name, as the properties may be lost.
        return [replace(holder, token=token) for token, holder in holders if holder is not None]

    def drop_mark(self, token: str) -> None:
        """Drops the mark of the holder with this token."""
        self._spark.sql(f"DROP TABLE IF EXISTS {self._relations.mark(token)}")

    def _create(self, table: str, holder: Holder) -> None:
        values = {_TOKEN: holder.token, **asdict(holder.owner)}
        encoded = {key: encode_property(str(value)) for key, value in values.items()}
        self._spark.sql(
            f"CREATE TABLE {table} (nothing string) USING parquet "
            f"TBLPROPERTIES {properties_sql(_PREFIX, encoded)}"
        )

    def _holder(self, table: str) -> Holder | None:
        properties = read_properties(self._spark, table, _PREFIX)
        if properties is None:
            return None
        try:
            values = {each.name: decode_property(properties[each.name]) for each in fields(Owner)}
            pid = int(values.pop("pid"))
            return Holder(decode_property(properties[_TOKEN]), Owner(**values, pid=pid))
        except (KeyError, ValueError):
            return UNKNOWN

    def drop(self) -> None:
        """Frees the lock."""
        self._spark.sql(f"DROP TABLE IF EXISTS {self._relations.lock}")

    def drop_if_held_by(self, token: str) -> None:
        """Frees the lock if its holder has this token, and drops that holder's renewals."""
        holder = self.holder()
        if holder is not None and holder.token == token:
            self.drop()
        self.drop_renewals(token)

    def renew(self, token: str, number: int) -> None:
        """Renews the lease of the holder with this token; `number` counts the renewals."""
        name = self._relations.renewals(token)
        renewal = properties_sql(_PREFIX, {_RENEWAL: str(number)})
        if not self._has_renewals:
            # The table may exist already, created by an earlier attempt that failed later.
            self._spark.sql(f"CREATE TABLE IF NOT EXISTS {name} (nothing string) USING parquet")
        self._spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES {renewal}")
        self._has_renewals = True

    def last_renewal(self, token: str) -> str | None:
        """The number of the last renewal by the holder with this token; None before the first."""
        properties = read_properties(self._spark, self._relations.renewals(token), _PREFIX)
        return properties.get(_RENEWAL) if properties else None

    def drop_renewals(self, token: str) -> None:
        """Drops the table of renewals of the holder with this token."""
        self._spark.sql(f"DROP TABLE IF EXISTS {self._relations.renewals(token)}")


@dataclass
class Cancellation:
    """Whether the user has cancelled the run, and the SourceError for a cancelled run.

    Any thread may set `event` to cancel. While `committing` is true, the commit may already have
    taken effect.
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
