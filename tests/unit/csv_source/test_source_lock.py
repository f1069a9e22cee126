"""The lock of a source where the metastore fails, or has what is no lease."""

import pytest
from pyspark.errors import AnalysisException

from dbt.adapters.mzs3.csv_source import lock as lock_module
from dbt.adapters.mzs3.csv_source.lock import LEASE_S, Holder, SourceLock
from dbt.adapters.mzs3.csv_source.lock_table import LockTable
from dbt.adapters.mzs3.csv_source.owner import Owner
from dbt.adapters.mzs3.csv_source.relations import SourceRelations

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
def test_a_beat_that_fails_does_not_end_the_beats(fails, earlier, monkeypatch):
    monkeypatch.setattr(lock_module, "RENEW_S", 0)
    metastore = Metastore(*earlier, fails)
    lock = SourceLock(metastore, RELATIONS, "lake.orders")
    beat, beats = lock._table.set_beat, []

    def told(token, number):
        beats.append(number)
        if number == 4:
            lock._ended.set()
        beat(token, number)

    monkeypatch.setattr(lock._table, "set_beat", told)
    lock._renew()
    assert beats == [1, 2, 3, 4]
    assert metastore.tables[RELATIONS.beat(lock._me.token)] >= 3


def expired(monkeypatch, token):
    monkeypatch.setattr(LockTable, "beat", lambda *_: None)
    ticks = iter([0.0, LEASE_S])
    lock = SourceLock(None, RELATIONS, "lake.orders", clock=lambda: next(ticks))
    holder = Holder(token, ELSEWHERE)
    return [lock._has_expired(holder) for _ in range(2)]


def test_a_lock_of_an_earlier_version_is_no_lease(monkeypatch):
    assert expired(monkeypatch, "one") == [False, True]
    assert expired(monkeypatch, "") == [False, False]


def test_a_folder_of_the_locks_name_is_no_lock_that_somebody_has(monkeypatch):
    lock = SourceLock(None, RELATIONS, "lake.orders")

    def refused(text):
        def create(*_):
            raise AnalysisException(text)

        monkeypatch.setattr(LockTable, "create", create)
        monkeypatch.setattr(LockTable, "read", lambda _: None)
        return lock._create()

    assert refused("[TABLE_OR_VIEW_ALREADY_EXISTS] Cannot create table") is False
    assert refused("AlreadyExistsException: Table orders__lock") is False
    with pytest.raises(AnalysisException, match="as its associated location"):
        refused("[LOCATION_ALREADY_EXISTS] Cannot name it, as its associated location")
