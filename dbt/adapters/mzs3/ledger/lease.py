"""A lease by which one run at a time changes a source, on whatever host: others wait, or fail.

The lock is an optimisation; the ledger makes it correct: what decides is which partitions are
added, and to add one is a compare-and-set (see `ledger`). The lock keeps two runs from doing the
same work, of which one would be lost.

Its holder renews the lease again and again. Who waits for it measures by a clock of its own how
long it was not renewed, and takes over after `LEASE_S`: no clocks of two hosts are compared. A
holder that was only slow finds out at its next `require`, which the ledger calls before anything
that counts; and whoever has taken over closes what it had planned.

In a catalog the lock is a table without rows, which every catalog has: creating a table is atomic,
and its properties say who created it. It is never changed, so a holder that was only slow can't
make it its own again: what renews the lease is a second table, of that holder alone, which is made
once a run takes longer.
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
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.ledger.cancellation import Cancellation
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
except ImportError:  # not on Windows, where a lock of a dead run is waited for
    fcntl = None  # type: ignore[assignment]

WAIT_S = 600.0
POLL_S = 1.0
LEASE_S = 120.0
"""A holder that has not been seen at work for so long has lost its lock."""
RENEW_S = 20.0
NOTHING_COMMITTED = "nothing of it is committed"

# Not where a folder of the table's name is there, of which nobody is the holder.
_EXISTS = re.compile("(?<!location_)already_?exists", re.IGNORECASE)

# Threads of this process are kept apart here: to the metastore they are one owner.
_threads: dict[str, threading.Lock] = {}

_PROPERTY = "mzs3.lock."
_BEAT = "beat"
# Not `token`: Spark shows no value of a property with such a name.
_TAKEN_AS = "taken_as"

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MACHINE_ID = Path("/etc/machine-id")
_PID_NAMESPACE = Path("/proc/self/ns/pid")
# The namespace of a Linux host itself has always this number; those of containers never do.
_OF_THE_HOST = "pid:[4026531836]"
_ENDED = frozenset("ZXx")  # zombie, dead


class SourceLock:
    """Held from `with` to its end, by one run on any host that shares the metastore.

    The lock of a process of this host that is gone is taken over at once, any other once it was
    not renewed for `LEASE_S`. It is waited for, `wait_s` seconds at most or until the user
    cancels. Raises SourceError, which says who holds it and how to get out.
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
        self._table = LockTable(spark, relations)
        self._relations = relations
        self._source = source
        self._wait_s = wait_s
        self._cancellation = cancellation or Cancellation(source)
        self._clock = clock
        self._me = Holder(uuid.uuid4().hex, current_owner())
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
            # It may be ours by now, and nobody else gives it back.
            with suppress(*SPARK_FAILURES):
                self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._ended.set()
            if self._renewer.is_alive():
                self._renewer.join(timeout=POLL_S)
            if self._table.holder() == self._me:
                self._table.drop()
            if self._beats:
                self._table.drop_beat(self._me.token)
        finally:
            self._thread.release()

    def require(self, outcome: str = NOTHING_COMMITTED) -> None:
        """Raises SourceError, with the outcome of the run, if somebody took the lock."""
        if self._table.holder() != self._me:
            raise SourceError(
                f"{self._source}: the lock {self._relations.shown('__lock')} was taken away while "
                f"this run was ingesting; {outcome}. Run again"
            )

    @contextmanager
    def alone(self, outcome: str = NOTHING_COMMITTED) -> Iterator[None]:
        """A context in which to drop what the next holder would make under the same name.

        A run may stall in a DROP until the lock is taken over. So it says first that it drops, and
        looks at the lock after that: it has lost the lock by then, and drops nothing; or who takes
        the lock later finds by `require_alone` what was said. Raises SourceError, with the outcome
        of the run, if it has. What ends the context otherwise may come while a statement is still
        on its way, for which nobody waits any more: then it stays said.
        """
        self._table.mark(self._me)
        try:
            self.require(outcome)
            yield
        except SourceError:
            # Our own are raised between statements, which have answered.
            self._table.drop_mark(self._me.token)
            raise
        self._table.drop_mark(self._me.token)

    def require_alone(self) -> None:
        """Raises SourceError if an earlier holder may still be in such a context."""
        for other in self._table.marks():
            owner = other.owner
            if not (owner == self._me.owner or owner.is_gone()):
                mark = self._relations.shown(f"__drop_{other.token}")
                who = str(owner) or "another run"
                raise SourceError(
                    f"{self._source}: {who} was dropping tables of this source and has not come "
                    "to its end; what it still drops could be this run's. See to it that it is "
                    f"gone, and then drop the table that says so: DROP TABLE {mark}"
                )
            self._table.drop_mark(other.token)

    def _try(self) -> Holder | None:
        """Takes the lock, or takes it over, if that is allowed: None; else who holds it."""
        with host_guard(self._relations.lock) as alone:
            if self._create():
                return None
            holder = self._table.holder()
            if holder is None:
                return None if self._create() else (self._table.holder() or UNKNOWN)
            # What is left of this very process is a lock it failed to give back.
            is_left = holder.owner == self._me.owner or (alone and holder.owner.is_gone())
            if not (is_left or self._has_expired(holder)):
                return holder
            self._table.take_away(holder.token)
            if not self._create():
                return self._table.holder() or UNKNOWN
            if not is_left:
                # Another run, on another host, may have seen it expire too, and be at the same.
                self._cancellation.wait(POLL_S)
            if (holder := self._table.holder()) != self._me:
                return holder or UNKNOWN
            if not is_left:
                self.require_alone()  # whoever had it may stall in a DROP
            return None

    def _has_expired(self, holder: Holder) -> bool:
        """Whether this holder has not renewed its lease for as long as we have looked."""
        if not holder.token:
            # It is not known for a lease: one of an earlier version is never seen at work.
            return False
        seen, now = (holder, self._table.beat(holder.token)), self._clock()
        if seen != self._seen:
            self._seen, self._seen_since = seen, now
        return now - self._seen_since >= LEASE_S

    def _renew(self) -> None:
        while not self._ended.wait(RENEW_S):
            self._beats += 1
            # If that goes on failing, the lock is lost, and `require` says so.
            with suppress(*SPARK_FAILURES):
                self._table.set_beat(self._me.token, self._beats)
            if self._ended.is_set():
                # Who gave the lock back may have dropped the beat before it was there.
                with suppress(*SPARK_FAILURES):
                    self._table.drop_beat(self._me.token)

    def _create(self) -> bool:
        """Whether the lock was free, and is ours now."""
        try:
            self._table.create(self._me)
        except SPARK_FAILURES as exc:
            # Somebody was faster, which Spark and metastores tell in many words; or ours took
            # effect, and the answer was lost.
            holder = self._table.holder()
            if holder is None and not _EXISTS.search(str(exc)):
                raise
            return holder == self._me
        return True


@contextmanager
def host_guard(name: str) -> Iterator[bool]:
    """True for one process of this host at a time, which alone may take over a dead one's lock.

    Between seeing a lock and dropping it, another process could have put its own in its place.
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
    """A process, told apart from every other one, later ones with the same number included.

    `place` is where `pid` means something: the host, the container and the user. `boot` is the
    host's boot, `started` when the process did, in the kernel's clock; empty where not known.
    """

    place: str
    boot: str
    pid: int
    started: str
    host: str

    def __str__(self) -> str:
        return f"process {self.pid} on host {self.host}" if self.host else ""

    def is_gone(self) -> bool:
        """True only if the process certainly runs no more; another place can't be judged."""
        if self.place != _place():
            return False
        if self.boot != _text(_BOOT_ID):
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
    """The state of a process, and when it started; both empty where that is not known."""
    # State and starttime of proc(5). The command's name before them is in parentheses, and may
    # hold spaces and parentheses.
    fields = _text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return (fields[0], fields[19]) if len(fields) > 19 else ("", "")


@dataclass(frozen=True)
class Holder:
    """Who has the lock; `token` is of this one time, not of a later one of the same process."""

    token: str
    owner: Owner


UNKNOWN = Holder("", Owner(place="", boot="", pid=0, started="", host=""))


class LockTable:
    """The lock of one source, whoever has it."""

    def __init__(self, spark: SparkSession, relations: SourceRelations) -> None:
        self._spark = spark
        self._relations = relations
        self._has_beat = False

    def create(self, holder: Holder) -> None:
        """Takes the lock for this holder. Raises if somebody has it."""
        self._create(self._relations.lock, holder)

    def holder(self) -> Holder | None:
        """Who has the lock; None if nobody has, UNKNOWN for what is no lock of ours."""
        return self._holder(self._relations.lock)

    def mark(self, holder: Holder) -> None:
        """Shows to all that come that this holder drops what another one may make again."""
        self._create(self._relations.mark(holder.token), holder)

    def marks(self) -> list[Holder]:
        """Whoever has shown that, and has not come to its end."""
        tables = self._spark.sql(f"SHOW TABLES IN {quote_schema(self._relations.schema)}")
        tokens = (self._relations.marked(row["tableName"]) for row in tables.collect())
        found = [(token, self._holder(self._relations.mark(token))) for token in tokens if token]
        # The name has the token, whatever the properties say.
        return [replace(holder, token=token) for token, holder in found if holder is not None]

    def drop_mark(self, token: str) -> None:
        """Removes what `mark` made."""
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
            values = {field.name: decode_property(found[field.name]) for field in fields(Owner)}
            pid = int(values.pop("pid"))
            # Locks of earlier versions have no token.
            return Holder(decode_property(found.get(_TAKEN_AS, "")), Owner(**values, pid=pid))
        except (KeyError, ValueError):
            return UNKNOWN

    def drop(self) -> None:
        """Frees the lock."""
        try:
            self._spark.sql(f"DROP TABLE IF EXISTS {self._relations.lock}")
        except AnalysisException:
            # Earlier versions made it a view.
            self._spark.sql(f"DROP VIEW IF EXISTS {self._relations.lock}")

    def take_away(self, token: str) -> None:
        """Frees the lock that was taken under this token, unless somebody else has it by now."""
        holder = self.holder()
        if holder is not None and holder.token == token:
            self.drop()
        self.drop_beat(token)

    def set_beat(self, token: str, number: int) -> None:
        """Renews the lease of the holder with this token, for so many times by now."""
        name, beat = self._relations.beat(token), properties_sql(_PROPERTY, {_BEAT: str(number)})
        if not self._has_beat:
            # One that failed before may have made it, or not.
            self._spark.sql(f"CREATE TABLE IF NOT EXISTS {name} (nothing string) USING parquet")
        self._spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES {beat}")
        self._has_beat = True

    def beat(self, token: str) -> str | None:
        """What changes whenever the holder with this token renews its lease."""
        found = read_properties(self._spark, self._relations.beat(token), _PROPERTY)
        return found.get(_BEAT) if found else None

    def drop_beat(self, token: str) -> None:
        """Removes what renewed the lease of this holder."""
        self._spark.sql(f"DROP TABLE IF EXISTS {self._relations.beat(token)}")
