"""Dropping a source whose lock is lost on the way; the metastore is a stand-in."""

import contextlib
import re
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from pyspark.errors import AnalysisException

from dbt.adapters.mzs3.csv_source import reset
from dbt.adapters.mzs3.csv_source.relations import MADE_PROPERTY, SourceRelations
from dbt.adapters.mzs3.errors import SourceError

RELATIONS = SourceRelations("raw", "orders")
VIEWS = [RELATIONS.source, RELATIONS.objects, RELATIONS.rejects]
TABLES = [RELATIONS.ledger, RELATIONS.rows]
OURS, THEIRS = "1" * 16, "2" * 16


class NotFound(AnalysisException):
    def getCondition(self):
        return "TABLE_OR_VIEW_NOT_FOUND"


class NoRename(AnalysisException):
    def getCondition(self):
        return "UNSUPPORTED"


@dataclass
class Table:
    """`made` is None for one of an earlier version."""

    made: str | None
    epochs: set[str] = field(default_factory=set)


class Metastore:
    """What is made of each name; `before` is told of each statement ahead of it."""

    def __init__(self, made=OURS):
        self.views = set(VIEWS)
        self.tables = {name: Table(made) for name in TABLES}
        self.tables[RELATIONS.rows].epochs = {"1", "3"}
        self.before = lambda text: None
        self.renames = True

    def make_anew(self):
        """Another run has reset the source, and ingested it."""
        for name in TABLES:
            self.tables[name] = Table(THEIRS, {"7"})
        self.views = set(VIEWS)

    def is_theirs(self):
        return all(self.tables.get(name) == Table(THEIRS, {"7"}) for name in TABLES)

    def sql(self, text):
        self.before(text)
        for pattern, answer in {
            r"SHOW TBLPROPERTIES (\S+)": self._properties,
            r"SHOW PARTITIONS (\S+)": self._partitions,
            r"SHOW TABLES IN `raw` LIKE 'orders__\*'": self._shown,
            r"DROP VIEW IF EXISTS (\S+)": self.views.discard,
            r"DROP TABLE IF EXISTS (\S+)": lambda name: self.tables.pop(name, None),
            r"ALTER TABLE (\S+) RENAME TO (\S+)": self._rename,
            r"ALTER TABLE (\S+) DROP IF EXISTS (.+)": self._drop_partitions,
        }.items():
            if match := re.fullmatch(pattern, text):
                rows = answer(*match.groups())
                return SimpleNamespace(collect=lambda rows=rows: rows)
        raise AssertionError(text)

    def _there(self, name):
        if name not in self.tables:
            raise NotFound(name)
        return self.tables[name]

    def _properties(self, name):
        made = self._there(name).made
        return [{"key": f"{MADE_PROPERTY}as", "value": made}] if made else []

    def _partitions(self, name):
        return [{"partition": f"mz_epoch={epoch}"} for epoch in sorted(self._there(name).epochs)]

    def _shown(self):
        return [{"tableName": name.split("`")[3]} for name in self.tables]

    def _rename(self, name, other):
        if not self.renames:
            raise NoRename(name)
        assert other not in self.tables
        self._there(name)
        self.tables[other] = self.tables.pop(name)

    def _drop_partitions(self, name, named):
        self._there(name).epochs -= set(re.findall(r"'(\d+)'", named))

    @property
    def catalog(self):
        return SimpleNamespace(tableExists=self.tables.__contains__)


class Lock:
    """That of the run under test, until somebody takes it."""

    def __init__(self):
        self.is_held = True

    def require(self, outcome):
        if not self.is_held:
            raise SourceError(outcome)


@pytest.fixture(autouse=True)
def own(monkeypatch):
    monkeypatch.setattr(reset, "_require_own", lambda *_: None)


def statements(metastore=None):
    """What a reset says to the metastore when nobody else is there."""
    told, metastore = [], metastore or Metastore()
    metastore.before = told.append
    reset.drop_source(metastore, RELATIONS, "lake.orders", Lock())
    assert (metastore.tables, metastore.views) == ({}, set())
    return told


def test_nothing_is_left():
    assert statements()
    # Nor of what an earlier reset left when it died; what somebody else has named so stays.
    metastore = Metastore()
    left = f"`raw`.`orders__rows_{THEIRS}`"
    foreign = {
        f"`raw`.`orders__rows_{'3' * 16}`": Table(OURS),
        "`raw`.`orders__items`": Table(None),
    }
    metastore.tables |= {left: Table(THEIRS), **foreign}
    reset.drop_source(metastore, RELATIONS, "lake.orders", Lock())
    assert metastore.tables == foreign


@pytest.mark.parametrize("made", [OURS, None])
@pytest.mark.parametrize("at", range(30))
def test_what_another_run_has_made_anew_stays(at, made):
    metastore, lock, told = Metastore(made), Lock(), []

    def before(text):
        if len(told) == at:  # sent, and late
            lock.is_held = False
            metastore.make_anew()
        told.append(text)

    metastore.before = before
    is_late = at < len(statements())
    if is_late:
        with contextlib.suppress(SourceError):
            reset.drop_source(metastore, RELATIONS, "lake.orders", lock)
        assert metastore.is_theirs(), told[at]
    else:
        reset.drop_source(metastore, RELATIONS, "lake.orders", lock)


def late(metastore, statement):
    """The error of a reset of which this statement comes after another run has made all anew."""

    def before(text):
        if text.startswith(statement):
            metastore.make_anew()
            metastore.before = lambda text: None

    metastore.before = before
    with pytest.raises(SourceError) as raised:
        reset.drop_source(metastore, RELATIONS, "lake.orders", Lock())
    return str(raised.value)


def test_what_is_given_back_is_told():
    metastore = Metastore()
    assert late(metastore, f"ALTER TABLE {RELATIONS.rows} RENAME") == (
        "lake.orders: another run made raw.orders__rows anew while this one reset the source; it "
        "is left as it is, and nothing more is dropped. Run again"
    )
    assert metastore.is_theirs()


def test_what_can_not_be_given_back_is_not_dropped():
    class Busy(Metastore):
        def _rename(self, name, other):
            if name != RELATIONS.rows and "rows" in name:
                raise NoRename("in use")
            super()._rename(name, other)

    metastore, aside = Busy(), f"`raw`.`orders__rows_{OURS}`"
    assert late(metastore, f"ALTER TABLE {RELATIONS.rows} RENAME") == (
        "lake.orders: another run made raw.orders__rows anew while this one reset the source, and "
        f"it has another name now, as this failed: ALTER TABLE {aside} RENAME TO "
        f"{RELATIONS.rows}: [UNSUPPORTED] in use. Once no run is at work on the source, remove "
        "what is in its way, and rename it so"
    )
    assert metastore.tables[aside] == Table(THEIRS, {"7"})


def test_a_catalog_that_renames_nothing_drops_by_name():
    metastore = Metastore()
    metastore.renames = False
    assert f"DROP TABLE IF EXISTS {RELATIONS.rows}" in statements(metastore)


@pytest.mark.parametrize("until", range(30))
def test_nothing_is_dropped_once_the_lock_is_lost(until):
    metastore, lock, asked, changed = Metastore(), Lock(), [], []

    def require(outcome):
        asked.append(len(changed))
        if len(asked) > until:
            raise SourceError(outcome)

    metastore.before = lambda text: None if text.startswith("SHOW") else changed.append(text)
    lock.require = require
    try:
        reset.drop_source(metastore, RELATIONS, "lake.orders", lock)
    except SourceError as exc:
        assert len(changed) == asked[-1]
        assert str(exc) == (
            "nothing is dropped"
            if until == 0
            else "the source is dropped in part, and nothing more"
        )
    else:
        assert len(asked) <= until


@pytest.mark.parametrize("until", range(30))
def test_a_reset_that_died_is_finished_by_the_next(until):
    metastore, told = Metastore(), []

    class Died(BaseException):
        pass

    def before(text):
        if len(told) == until:
            raise Died
        told.append(text)

    metastore.before = before
    with contextlib.suppress(Died):
        reset.drop_source(metastore, RELATIONS, "lake.orders", Lock())
    assert statements(metastore)
