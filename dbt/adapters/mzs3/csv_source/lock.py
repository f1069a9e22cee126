"""One run at a time ingests a source, on whatever host: the second waits, or fails clearly."""

from __future__ import annotations

import hashlib
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from dbt.adapters.mzs3.csv_source.cancel import Cancellation
from dbt.adapters.mzs3.csv_source.owner import Owner, current_owner
from dbt.adapters.mzs3.csv_source.properties import (
    decoded,
    encoded,
    properties_sql,
    read_properties,
)
from dbt.adapters.mzs3.csv_source.relations import SourceRelations
from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.spark.sql import quote_literal

try:
    import fcntl
except ImportError:  # not on Windows, where a lock of a dead run is left to the user
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAIT_S = 600.0
POLL_S = 1.0
_PROPERTY = "mzs3.lock."

# Threads of this process are kept apart here: to the metastore they are one owner.
_threads: dict[str, threading.Lock] = {}
_threads_guard = threading.Lock()


class SourceLock:
    """Held from `with` to its end, by one run on any host that shares the metastore.

    It is a view: creating one is atomic in the metastore and leaves nothing on the file system.
    The lock of a process of this host that is gone is taken over; that of a live one, or of one
    on another host, is waited for, `wait_s` seconds at most or until the user cancels. Raises
    SourceError, which says who holds it and how to get out.
    """

    def __init__(
        self,
        spark: SparkSession,
        relations: SourceRelations,
        source: str,
        *,
        wait_s: float = WAIT_S,
        cancellation: Cancellation | None = None,
    ) -> None:
        self._spark = spark
        self._relations = relations
        self._source = source
        self._wait_s = wait_s
        self._cancellation = cancellation or Cancellation(source)
        self._me = current_owner()
        with _threads_guard:
            self._thread = _threads.setdefault(relations.lock, threading.Lock())

    def __enter__(self) -> SourceLock:
        until = time.monotonic() + self._wait_s
        while not self._thread.acquire(timeout=min(POLL_S, self._wait_s)):
            self._cancellation.check()
            if time.monotonic() >= until:
                raise SourceError(
                    f"{self._source}: another thread of this process has been ingesting this "
                    f"source for more than {self._wait_s:.0f} s. Run again when it is done"
                )
        try:
            while (holder := self._try()) is not None:
                if time.monotonic() >= until:
                    raise SourceError(self._held_text(holder))
                self._cancellation.wait(POLL_S)
        except BaseException:
            self._thread.release()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._holder() == self._me:
                self._spark.sql(f"DROP VIEW IF EXISTS {self._relations.lock}")
        finally:
            self._thread.release()

    def require(self, outcome: str = "nothing of it is committed") -> None:
        """Raises SourceError if the lock is no longer this run's: somebody dropped it.

        `outcome` is what the error says of the run.
        """
        if self._holder() != self._me:
            raise SourceError(
                f"{self._source}: the lock {self._relations.shown('__lock')} was taken away while "
                f"this run was ingesting; {outcome}. Run again"
            )

    def _try(self) -> Owner | None:
        """None if the lock is ours now, else who holds it."""
        with _host_guard(self._relations.lock) as alone:
            if self._create():
                return None
            holder = self._holder()
            if holder is not None:
                # What is left of this very process is a lock it failed to give back.
                if holder != self._me and not (alone and holder.is_gone()):
                    return holder
                self._spark.sql(f"DROP VIEW IF EXISTS {self._relations.lock}")
            return None if self._create() else (self._holder() or _UNKNOWN)

    def _create(self) -> bool:
        me = self._me
        since = datetime.now(timezone.utc).isoformat(timespec="seconds")
        values = {key: encoded(str(getattr(me, key))) for key in _OWNER_KEYS}
        try:
            self._spark.sql(
                f"CREATE VIEW {self._relations.lock} "
                f"TBLPROPERTIES {properties_sql(_PROPERTY, values)} AS SELECT "
                f"{quote_literal(me.host)} AS host, {me.pid} AS pid, "
                f"{quote_literal(since)} AS since"
            )
        except AnalysisException as exc:
            if exc.getCondition() == "TABLE_OR_VIEW_ALREADY_EXISTS":
                return False
            raise
        return True

    def _holder(self) -> Owner | None:
        found = read_properties(self._spark, self._relations.lock, _PROPERTY)
        if found is None:
            return None
        try:
            values = {key: decoded(found[key]) for key in _OWNER_KEYS}
            pid = int(values.pop("pid"))
        except (KeyError, ValueError):
            return _UNKNOWN
        return Owner(**values, pid=pid)

    def _held_text(self, holder: Owner) -> str:
        who = f"process {holder.pid} on host {holder.host}" if holder.host else "somebody"
        return (
            f"{self._source}: {who} is ingesting this source and has not finished within "
            f"{self._wait_s:.0f} s. Run again later; if that process is gone, take its lock away "
            f"with: DROP VIEW {self._relations.lock}"
        )


_OWNER_KEYS = tuple(field.name for field in fields(Owner))
_UNKNOWN = Owner(place="", boot="", pid=0, started="", host="")


@contextmanager
def _host_guard(name: str) -> Iterator[bool]:
    """True for one process of this host at a time: only that one may take over a dead one's lock.

    Between seeing a lock and dropping it, another process could have put its own in its place.
    """
    digest = hashlib.sha256(f"{current_owner().place} {name}".encode()).hexdigest()[:32]
    path = Path(tempfile.gettempdir()) / f"dbt-mzs3-{digest}.lock"
    with ExitStack() as stack:
        try:
            file = stack.enter_context(path.open("a"))
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            alone = False
        else:
            alone = fcntl is not None
        yield alone
