"""The lock of a source where the metastore fails, or has what is no lease."""

import itertools
import threading
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from pyspark.errors import AnalysisException

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.ledger import lease as source_lock
from dbt.adapters.mzs3.ledger.lease import (
    LEASE_S,
    UNKNOWN,
    Cancellation,
    Holder,
    LockTable,
    Owner,
    SourceLock,
)
from dbt.adapters.mzs3.ledger.relations import SourceRelations

RELATIONS = SourceRelations("raw", "orders")
ELSEWHERE = Owner(place="elsewhere", boot="", pid=7, started="", host="etl-1")


class Metastore:
    """Tables that are made and altered; the first statements fail, before or after it."""

    def __init__(self, *fail):
        self.fail = list(fail)
        self.tables = {}

    def sql(self, text):
        words = text.split(" ")
        fails = self.fail.pop(0) if self.fail else ""
        if fails != "before":
            if words[0] == "CREATE":
                assert words[2:5] == ["IF", "NOT", "EXISTS"]
                self.tables.setdefault(words[5], 0)
            elif words[2] not in self.tables:
                raise AnalysisException("TABLE_OR_VIEW_NOT_FOUND")
            else:
                self.tables[words[2]] += 1
        if fails:
            raise AnalysisException("timed out")


@pytest.mark.parametrize("fails", ["before", "after"])
@pytest.mark.parametrize("earlier", [(), ("",)], ids=["made", "altered"])
def test_a_renewal_that_fails_does_not_end_the_renewals(fails, earlier, monkeypatch):
    monkeypatch.setattr(source_lock, "RENEW_S", 0)
    metastore = Metastore(*earlier, fails)
    lock = SourceLock(metastore, RELATIONS, "lake.orders")
    renew, renewals = lock.table.renew, []

    def told(token, number):
        renewals.append(number)
        if number == 4:
            lock._ended.set()
        renew(token, number)

    monkeypatch.setattr(lock.table, "renew", told)
    lock._renew()
    assert renewals == [1, 2, 3, 4]
    assert metastore.tables[RELATIONS.renewals(lock.holder.token)] >= 3


def expired(monkeypatch, holder):
    monkeypatch.setattr(LockTable, "last_renewal", lambda *_: None)
    ticks = iter([0.0, LEASE_S])
    lock = SourceLock(None, RELATIONS, "lake.orders", clock=lambda: next(ticks))
    return [lock._has_expired(holder) for _ in range(2)]


def test_a_table_that_is_no_lock_never_expires(monkeypatch):
    assert expired(monkeypatch, Holder("one", ELSEWHERE)) == [False, True]
    assert expired(monkeypatch, UNKNOWN) == [False, False]


def test_a_folder_of_the_locks_name_is_no_lock_that_somebody_has(monkeypatch):
    lock = SourceLock(None, RELATIONS, "lake.orders")

    def refused(text):
        def create(*_):
            raise AnalysisException(text)

        monkeypatch.setattr(LockTable, "create", create)
        monkeypatch.setattr(LockTable, "holder", lambda _: None)
        return lock._create()

    assert refused("[TABLE_OR_VIEW_ALREADY_EXISTS] Cannot create table") is False
    assert refused("AlreadyExistsException: Table orders__lock") is False
    with pytest.raises(AnalysisException, match="as its associated location"):
        refused("[LOCATION_ALREADY_EXISTS] Cannot name it, as its associated location")


class OneLock(LockTable):
    """A `LockTable` whose holder is known; each look at it may fail."""

    def __init__(self, fails=()):
        self.has, self.renewed, self.fails = None, set(), list(fails)
        self.dropping = []

    def create(self, holder):
        if self.has is not None:
            raise AnalysisException("AlreadyExistsException")
        self.has = holder

    def holder(self):
        if self.has is not None and self.fails and self.fails.pop(0):
            raise AnalysisException("no connection")
        return self.has

    def drop(self):
        self.has = None

    def marks(self):
        return self.dropping

    def last_renewal(self, token):
        return None

    def drop_renewals(self, token):
        self.renewed.discard(token)


class CancelledWhenItsOwn(Cancellation):
    """The user cancels once this run has put its lock in the place of another's."""

    table: OneLock
    token = ""

    def wait(self, seconds):
        if self.table.has.token == self.token:
            raise SourceError("cancelled")


def taking_over(table):
    """A lock that finds one of another host, which is expired when it looks again."""
    table.create(Holder("another", ELSEWHERE))
    stop = CancelledWhenItsOwn("lake.orders")
    ticks = itertools.count(step=LEASE_S)
    lock = SourceLock(None, RELATIONS, "lake.orders", cancellation=stop, clock=lambda: next(ticks))
    stop.table, stop.token, lock.table = table, lock.holder.token, table
    return lock


FAILS_AT_ITS_OWN = [False] * 5 + [True]
"""Twice two looks at the other's lock, and one as it is taken away; then one at its own."""


def test_who_is_cancelled_as_it_takes_over_leaves_no_lock():
    table = OneLock()
    with pytest.raises(SourceError, match="cancelled"):
        taking_over(table).__enter__()
    assert table.has is None


def test_what_is_taken_over_from_a_run_that_stalls_in_a_drop_is_given_back(monkeypatch):
    """A reset, say: what it still drops would be what this run commits, or its ledger."""
    monkeypatch.setattr(source_lock, "POLL_S", 0)
    table = OneLock()
    lock = taking_over(table)
    lock._cancellation = Cancellation("lake.orders")
    table.dropping = [table.has]
    with pytest.raises(SourceError, match="was dropping tables of this source"):
        lock.__enter__()
    assert table.has is None


def test_who_cannot_tell_whether_it_took_over_leaves_no_lock(monkeypatch):
    table = OneLock(FAILS_AT_ITS_OWN)
    lock = taking_over(table)
    lock._cancellation = Cancellation("lake.orders")
    monkeypatch.setattr(source_lock, "POLL_S", 0)
    with pytest.raises(AnalysisException, match="no connection"):
        lock.__enter__()
    assert table.has is None


def test_who_gives_up_waiting_leaves_the_lock_to_its_holder():
    table = OneLock()
    lock = taking_over(table)
    lock._wait_s = 0
    with pytest.raises(SourceError, match="is ingesting this source"):
        lock.__enter__()
    assert table.has.token == "another"
    assert not lock._thread.locked()


class Renewed(OneLock):
    """Its holder renews the lease between any two looks of others."""

    def __init__(self):
        super().__init__()
        self.renewals = itertools.count()

    def last_renewal(self, token):
        return str(next(self.renewals))


def test_a_lease_that_is_renewed_is_not_taken_over():
    table = Renewed()
    lock = taking_over(table)
    lock._wait_s = 5 * LEASE_S
    with pytest.raises(SourceError, match="is ingesting this source and has not finished"):
        lock.__enter__()
    assert table.has.token == "another"


def test_two_that_take_over_at_once_do_not_both_have_the_lock(monkeypatch):
    """The other one drops the lock that this one has just put in the place of the dead one."""
    table, other = OneLock(), Holder("other", Owner("there", "", 8, "", "etl-2"))
    lock = taking_over(table)

    class TakenMeanwhile(Cancellation):
        def wait(self, _):
            if table.has == lock.holder:
                table.drop()
                table.create(other)

    lock._cancellation = TakenMeanwhile("lake.orders")
    ticks = iter([0.0, 0.0, 0.0, LEASE_S, LEASE_S, *[9_999.0] * 9])
    lock._clock = lambda: next(ticks)
    with pytest.raises(SourceError, match="process 8 on host etl-2 is ingesting this source"):
        lock.__enter__()
    assert table.has == other


def test_a_lock_that_has_another_holder_by_now_is_not_dropped_as_the_dead_ones():
    table = OneLock()
    table.create(Holder("next", ELSEWHERE))
    table.drop_if_held_by("dead")
    assert table.has.token == "next"
    table.drop_if_held_by("next")
    assert table.has is None


def test_a_run_that_has_lost_its_lock_leaves_it_to_the_next_holder():
    table = OneLock()
    lock = SourceLock(None, RELATIONS, "lake.orders")
    lock.table = table
    with lock:
        table.drop()
        table.create(Holder("next", ELSEWHERE))
    assert table.has.token == "next"


def test_the_error_of_a_run_is_told_though_its_lock_cannot_be_taken_away():
    table = OneLock(FAILS_AT_ITS_OWN)
    with pytest.raises(SourceError, match="cancelled"):
        taking_over(table).__enter__()


def test_a_renewal_that_comes_after_the_lock_was_given_back_is_dropped(monkeypatch):
    monkeypatch.setattr(source_lock, "RENEW_S", 0)
    monkeypatch.setattr(source_lock, "POLL_S", 0.01)
    table, begun, go_on = OneLock(), threading.Event(), threading.Event()

    def late(token, number):
        begun.set()
        go_on.wait(60)
        table.renewed.add(token)

    table.renew = late
    lock = SourceLock(None, RELATIONS, "lake.orders")
    lock.table = table
    with lock:
        assert begun.wait(60)
    go_on.set()
    lock._renewer.join(60)
    assert table.renewed == set()


@pytest.mark.parametrize(
    ("ends", "stays"),
    [(None, False), (SourceError("lost"), False), (KeyboardInterrupt(), True), (OSError(), True)],
)
def test_what_a_run_drops_stays_said_while_a_statement_may_be_on_its_way(monkeypatch, ends, stays):
    lock, said = SourceLock(None, RELATIONS, "lake.orders"), []
    monkeypatch.setattr(LockTable, "holder", lambda _: lock.holder)
    monkeypatch.setattr(LockTable, "mark", lambda _, holder: said.append(holder.token))
    monkeypatch.setattr(LockTable, "drop_mark", lambda _, token: said.remove(token))
    with nullcontext() if ends is None else pytest.raises(type(ends)), lock.dropping_tables():
        assert said
        if ends is not None:
            raise ends
    assert bool(said) == stays


def test_who_has_said_that_it_drops_is_known_by_the_name_of_the_table(monkeypatch):
    """Its properties may be those of a later version, or be lost."""
    token = "0" * 32
    tables = [{"tableName": f"Orders__drop_{token}"}, {"tableName": "orders__drop_x"}]
    spark = SimpleNamespace(sql=lambda _: SimpleNamespace(collect=lambda: tables))
    monkeypatch.setattr(LockTable, "_holder", lambda *_: UNKNOWN)
    with pytest.raises(SourceError) as raised:
        SourceLock(spark, RELATIONS, "lake.orders").require_no_pending_drops()
    assert str(raised.value) == (
        "lake.orders: another run was dropping tables of this source and has not come to its end; "
        "what it still drops could be this run's. See to it that it is gone, and then drop the "
        f"table that says so: DROP TABLE {RELATIONS.display_name('__drop_' + token)}"
    )
