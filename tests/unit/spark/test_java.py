"""Which Spark a process uses: the one that runs, one begun anew, or none; where Java writes."""

from types import SimpleNamespace

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.spark import java
from dbt.adapters.mzs3.spark.java import output_hint, write_output_to

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


class Gateway:
    """A Java process without a Java: it has not ended, unless it is told so."""

    def __init__(self):
        self.ended = None
        self.proc = SimpleNamespace(poll=lambda: self.ended)


@pytest.fixture
def runs(monkeypatch):
    """Has a Spark run with these settings; `stopped` are those that were stopped."""
    stopped = []

    def end():
        stopped.append(SparkSession._instantiatedSession)
        monkeypatch.setattr(SparkSession, "_instantiatedSession", None)

    monkeypatch.setattr(java, "end", end)

    def runs(values, *, ours):
        session = Session(values)
        monkeypatch.setattr(SparkSession, "_instantiatedSession", session)
        if ours:
            runs.gateway = Gateway()
            java.record_launch(runs.gateway)
            java.record_session(session, values)
        return session

    runs.stopped = stopped
    return runs


def test_where_no_spark_runs_one_may_start(monkeypatch):
    monkeypatch.setattr(SparkSession, "_instantiatedSession", None)

    assert java.reuse_or_end({}, {}) is None


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

    assert java.reuse_or_end(then, then) is session
    assert runs.stopped == []
    assert session.conf.values == {WAREHOUSE: "/dev"}


@pytest.mark.parametrize(
    "then", [{WAREHOUSE: "/other"}, {WAREHOUSE: "/dev", MEMORY: "4g"}, {PARTITIONS: "7"}]
)
def test_ours_makes_way_for_other_settings_once_nobody_holds_it(runs, then):
    session = runs({WAREHOUSE: "/dev"}, ours=True)
    held = java.mark_in_use(session.newSession())

    with pytest.raises(SparkJobError, match="for another invocation of dbt"):
        java.reuse_or_end(then, then)
    assert runs.stopped == []

    java.release(held)
    assert java.reuse_or_end(then, then) is None
    assert runs.stopped == [session]


def test_a_session_that_is_lost_holds_nothing(runs):
    session = runs({WAREHOUSE: "/dev"}, ours=True)
    java.mark_in_use(session.newSession())

    assert java.reuse_or_end({}, {WAREHOUSE: "/other"}) is None


def test_that_of_the_host_program_is_refused_with_all_that_differs_and_no_secret(runs):
    metastore = "spark.hadoop.javax.jdo.option.Connection"
    host = {WAREHOUSE: "s3a://key:of-host@b/host", f"{metastore}Password": "of-host"}
    session = runs(host, ours=False)
    given = {WAREHOUSE: "/dev", MEMORY: "4g", f"{metastore}Password": "of-dev"}

    with pytest.raises(SparkJobError) as caught:
        java.reuse_or_end(given, given)

    assert str(caught.value).splitlines()[1:-1] == [
        "  - spark.driver.memory: not set now, 4g wanted",
        f"  - {metastore}Password: ***** now, ***** wanted",
        "  - spark.sql.warehouse.dir: s3a://*****@b/host now, /dev wanted",
    ]
    assert "as the program that runs dbt has started it" in str(caught.value)
    assert runs.stopped == []
    assert java.reuse_or_end({PARTITIONS: "7"}, given) is session


def test_a_session_forgets_what_only_the_profile_before_has_set(runs):
    session = runs({PARTITIONS: "7", "spark.sql.catalog.gone": "acme.Catalog"}, ours=True)
    new = session.newSession()

    java.unset_others(new, {})

    assert new.conf.values == {}


def test_all_that_differs_is_told_but_what_follows_from_the_rest(runs):
    derived = {"spark.driver.extraJavaOptions": "-Dx=/other"}
    session = runs({WAREHOUSE: "/dev", MEMORY: "4g"}, ours=True)
    held = java.mark_in_use(session.newSession())

    with pytest.raises(SparkJobError) as caught:
        java.reuse_or_end({WAREHOUSE: "/other"}, {WAREHOUSE: "/other", **derived})

    assert str(caught.value).splitlines()[1:-1] == [
        "  - spark.driver.memory: 4g now, not set wanted",
        "  - spark.sql.warehouse.dir: /dev now, /other wanted",
    ]
    java.release(held)


def test_a_java_process_that_has_died_is_in_nobodys_way(runs):
    session = runs({WAREHOUSE: "/dev"}, ours=True)
    runs.gateway.ended = 137

    assert java.reuse_or_end({}, {WAREHOUSE: "/dev"}) is None
    assert runs.stopped == [session]


def test_a_java_process_in_which_spark_was_stopped_makes_way(runs, monkeypatch):
    runs({WAREHOUSE: "/dev"}, ours=True)
    monkeypatch.setattr(SparkSession, "_instantiatedSession", None)

    assert java.reuse_or_end({}, {WAREHOUSE: "/dev"}) is None
    assert runs.stopped == [None]


def test_a_fork_does_not_stop_the_spark_of_its_parent(runs, monkeypatch):
    runs({WAREHOUSE: "/dev"}, ours=True)
    monkeypatch.setattr(java.os, "getpid", lambda: -1)

    with pytest.raises(SparkJobError, match="'spawn'"):
        java.reuse_or_end({}, {WAREHOUSE: "/other"})
    assert runs.stopped == []


def test_a_java_process_that_others_have_started_is_not_ours(runs):
    session = runs({WAREHOUSE: "/host"}, ours=False)
    java.record_launch(SimpleNamespace(proc=None))  # as under spark-submit
    java.record_session(session, {WAREHOUSE: "/host"})

    with pytest.raises(SparkJobError, match="as the program that runs dbt has started it"):
        java.reuse_or_end({WAREHOUSE: "/dev"}, {WAREHOUSE: "/dev"})


@pytest.fixture(autouse=True)
def no_output(monkeypatch, tmp_path):
    monkeypatch.setattr(java, "_output", None)
    monkeypatch.chdir(tmp_path)


def say(text):
    with java.java_output() as file:
        file.write(text)


def test_the_file_is_added_to_and_makes_room_once_it_is_large(tmp_path, monkeypatch):
    monkeypatch.setattr(java, "_MAX_BYTES", 5)
    write_output_to(tmp_path / "logs")
    for text in (b"one ", b"two ", b"three"):
        say(text)
    assert (tmp_path / "logs" / "spark.log").read_bytes() == b"three"
    assert (tmp_path / "logs" / "spark.log.1").read_bytes() == b"one two "


def test_a_folder_that_cannot_be_written_leaves_the_console(tmp_path):
    (tmp_path / "logs").write_text("a file")
    write_output_to(tmp_path / "logs")
    with java.java_output() as file:
        assert file is None


def test_the_hint_names_the_file(tmp_path):
    assert "above" in output_hint()
    write_output_to(tmp_path / "logs")
    assert output_hint() == "logs/spark.log"
    write_output_to(tmp_path.parent)
    assert output_hint() == str(tmp_path.parent / "spark.log")
    write_output_to(None)
    assert "log file" in output_hint()
