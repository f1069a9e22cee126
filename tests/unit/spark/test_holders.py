"""Which Spark a process uses: the one that runs, one begun anew, or none and an error."""

from types import SimpleNamespace

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.spark import holders

WAREHOUSE = "spark.sql.warehouse.dir"
PARTITIONS = "spark.sql.shuffle.partitions"
MEMORY = "spark.driver.memory"
STATIC = {WAREHOUSE, MEMORY, "spark.sql.extensions"}


class Conf:
    """Spark's settings, of which it knows one that can be changed."""

    def __init__(self, values):
        self.values = dict(values)

    def isModifiable(self, key):
        return key == PARTITIONS

    def get(self, key, *default):
        if key not in self.values and not default:
            raise AnalysisException("no such setting")
        return self.values.get(key, *default)

    def set(self, key, value):
        if key in STATIC:
            raise AnalysisException("static")
        self.values[key] = value

    def unset(self, key):
        self.values.pop(key)


class Session:
    """A Spark session without a Spark."""

    def __init__(self, values):
        self.conf = Conf(values)
        self._sc = SimpleNamespace(_jsc=object())

    def newSession(self):
        return Session(self.conf.values)


@pytest.fixture
def runs(monkeypatch):
    """Has a Spark run with these settings; `stopped` are those that were stopped."""
    stopped = []
    monkeypatch.setattr(holders, "_end", stopped.append)

    def runs(values, *, ours):
        session = Session(values)
        monkeypatch.setattr(SparkSession, "_instantiatedSession", session)
        if ours:
            holders.started(session, values)
        return session

    runs.stopped = stopped
    return runs


def test_where_no_spark_runs_one_may_start(monkeypatch):
    monkeypatch.setattr(SparkSession, "_instantiatedSession", None)

    assert holders.usable({}, {}) is None


@pytest.mark.parametrize(
    "then",
    [
        {WAREHOUSE: "/dev"},
        {WAREHOUSE: "/dev", PARTITIONS: "7"},
        {WAREHOUSE: "file:/dev", "spark.sql.catalog.beside": "acme.Catalog"},
        {WAREHOUSE: "/dev", "spark.app.name": "another"},
    ],
)
@pytest.mark.parametrize("ours", [True, False])
def test_what_a_session_can_be_given_asks_for_no_other_spark(runs, then, ours):
    session = runs({WAREHOUSE: "/dev"}, ours=ours)

    assert holders.usable(then, then) is session
    assert runs.stopped == []
    assert session.conf.values == {WAREHOUSE: "/dev"}


@pytest.mark.parametrize(
    "then", [{WAREHOUSE: "/other"}, {WAREHOUSE: "/dev", MEMORY: "4g"}, {PARTITIONS: "7"}]
)
def test_ours_makes_way_for_other_settings_once_nobody_holds_it(runs, then):
    session = runs({WAREHOUSE: "/dev"}, ours=True)
    held = holders.hold(session.newSession())

    with pytest.raises(SparkJobError, match="for another invocation of dbt"):
        holders.usable(then, then)
    assert runs.stopped == []

    holders.release(held)
    assert holders.usable(then, then) is None
    assert runs.stopped == [session]


def test_a_session_that_is_lost_holds_nothing(runs):
    session = runs({WAREHOUSE: "/dev"}, ours=True)
    holders.hold(session.newSession())

    assert holders.usable({}, {WAREHOUSE: "/other"}) is None


def test_that_of_the_host_program_is_refused_with_all_that_differs_and_no_secret(runs):
    metastore = "spark.hadoop.javax.jdo.option.Connection"
    session = runs({WAREHOUSE: "/host", f"{metastore}Password": "of-host"}, ours=False)
    given = {WAREHOUSE: "/dev", MEMORY: "4g", f"{metastore}Password": "of-dev"}

    with pytest.raises(SparkJobError) as caught:
        holders.usable(given, given)

    assert str(caught.value).splitlines()[1:-1] == [
        "  - spark.driver.memory is not set, and the profile says 4g",
        f"  - {metastore}Password is ***, and the profile says ***",
        "  - spark.sql.warehouse.dir is /host, and the profile says /dev",
    ]
    assert "as the program that runs dbt has started it" in str(caught.value)
    assert runs.stopped == []
    assert holders.usable({WAREHOUSE: "/host"}, given) is session


def test_a_session_forgets_what_only_the_profile_before_has_set(runs):
    session = runs({PARTITIONS: "7", "spark.sql.catalog.gone": "acme.Catalog"}, ours=True)
    new = session.newSession()

    holders.forget_others(new, {})

    assert new.conf.values == {}
