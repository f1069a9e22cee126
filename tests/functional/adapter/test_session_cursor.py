"""Our own connection to a session: fetching, errors, bindings, isolation, cancelling."""

import datetime as dt
import threading
from decimal import Decimal

import pytest
from dbt_common.exceptions import DbtDatabaseError

from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.spark import engine
from dbt.adapters.mzs3.spark.cursor import SessionConnection
from dbt.adapters.mzs3.spark.engine import open_session
from dbt.adapters.mzs3.spark.session import get_or_create
from dbt.adapters.mzs3.spark.sql import quote_literal

ENDLESS = "select count(*) from range(1000000000000) where id % 7 = rand()"


@pytest.fixture
def connect(dbt_profile_target, spark_parameters):
    """`connect()`: a new connection, as the profile has it."""
    server = dbt_profile_target.get("host")
    opened = []

    def new():
        opened.append(SessionConnection(open_session(server, spark_parameters, 0)))
        return opened[-1]

    yield new
    for connection in opened:
        connection.close()


@pytest.fixture
def connection(connect):
    return connect()


def query(connection, sql, bindings=None):
    cursor = connection.cursor()
    cursor.execute(sql, bindings)
    return [tuple(row) for row in cursor.fetchall()]


def test_fetchmany_takes_rows_in_turn(connection):
    cursor = connection.cursor()
    cursor.execute("select id from range(5) order by id;")

    assert [row.id for row in cursor.fetchmany(2)] == [0, 1]


def test_bindings_arrive_exactly(connection):
    values = [
        None,
        "it's \\n 100% `x`",
        2**53 + 1,
        2**63,
        Decimal("1.50"),
        0.1,
        True,
        dt.date(7, 1, 2),
        dt.datetime(2020, 1, 2, 3, 4, 5, 6),
    ]
    marks = ", ".join(f"%s as c{n}" for n in range(len(values)))

    (row,) = query(connection, f"select {marks}, cast(%s as string)", [*values, values[-1]])

    assert list(row[:-2]) == values[:-1]
    assert row[-1] == "2020-01-02 03:04:05.000006"


@pytest.mark.parametrize(
    "text", ["it's", "a\\b\\", "\x00\x1a\r\n\t", "\\u0041 %s ${x}", "é\U0001f600"]
)
def test_literals_read_back_as_their_text(connection, text):
    assert query(connection, f"select {quote_literal(text)}") == [(text,)]


def test_settings_and_views_of_one_connection_are_unknown_to_another(connection, connect):
    query(connection, "set spark.sql.shuffle.partitions = 7")
    query(connection, "create temporary view mine as select 1 as x")
    other = connect()

    assert query(connection, "set spark.sql.shuffle.partitions")[0][1] == "7"
    assert query(other, "set spark.sql.shuffle.partitions")[0][1] == "2"
    assert query(other, "show views") == []


@pytest.mark.in_process
def test_there_is_one_spark_in_the_process(connection, spark_parameters):
    shared = get_or_create(spark_parameters)

    assert get_or_create({**spark_parameters, "spark.app.name": "another"}) is shared
    assert connection.session.sparkContext is shared.sparkContext


def test_the_time_zone_is_utc_and_ansi_mode_is_on(connection):
    assert query(connection, "select current_timezone()") == [("UTC",)]
    with pytest.raises(SparkJobError, match="DIVIDE_BY_ZERO"):
        query(connection, "select 1 / 0")


@pytest.mark.parametrize("sql", ["select * from nowhere.nothing", "selec 1", "select 1 / 0"])
def test_errors_have_sparks_message_and_no_stack_trace(connection, sql):
    with pytest.raises(SparkJobError) as caught:
        query(connection, sql)

    text = str(caught.value)
    assert text.startswith("[")
    assert "\tat " not in text
    assert "org.apache" not in text
    assert "Unresolved" not in text


def is_busy(session):
    status = engine.status_tracker(session)
    return bool(status.getActiveJobsIds() if status else (engine.tasks(session) or (0, 0))[1])


def test_cancelling_stops_the_running_statement_and_refuses_the_next(connection):
    failures = []

    def run():
        try:
            query(connection, ENDLESS)
        except SparkJobError as exc:
            failures.append(str(exc))

    running = threading.Thread(target=run)
    running.start()
    while running.is_alive() and not is_busy(connection.session):
        running.join(0.05)
    connection.cancel()
    running.join(60)

    assert failures == ["cancelled"]
    with pytest.raises(SparkJobError, match="cancelled"):
        query(connection, "select 1")


def test_cancelling_one_connection_leaves_the_others_alone(connection, connect):
    connect().cancel()

    assert query(connection, "select 1") == [(1,)]


class TestThroughDbt:
    def execute(self, project, sql, **kwargs):
        with project.adapter.connection_named("__test"):
            return project.adapter.execute(sql, **kwargs)

    def test_a_limit_is_a_limit(self, project):
        _, table = self.execute(project, "select id from range(100)", fetch=True, limit=3)

        assert len(table.rows) == 3

    @pytest.mark.in_process
    def test_rows_that_an_insert_wrote_are_reported(self, project):
        table = f"{project.test_schema}.counted"
        self.execute(project, f"create table {table} (id bigint) using parquet")

        response, _ = self.execute(project, f"insert into {table} select id from range(12)")

        assert (str(response), response.code, response.rows_affected) == (
            "INSERT 12",
            "INSERT",
            12,
        )

    @pytest.mark.in_process
    def test_rows_are_counted_after_comments_too(self, project):
        table = f"{project.test_schema}.commented"
        self.execute(project, f"create table {table} (id bigint) using parquet")

        response, _ = self.execute(project, f"-- one\n/* two */ insert into {table} values (1)")

        assert response.rows_affected == 1

    def test_a_query_reports_no_rows_affected(self, project):
        response, _ = self.execute(project, "select 1 as id", fetch=True)

        assert str(response) == "OK"
        assert response.rows_affected is None

    def test_an_error_of_fetching_is_dbts_error_too(self, project):
        with pytest.raises(DbtDatabaseError, match="DIVIDE_BY_ZERO"):
            self.execute(project, "select 1 / 0", fetch=True)

    def test_open_connections_can_be_cancelled(self, project):
        manager = project.adapter.connections
        with project.adapter.connection_named("__other"):
            handle = manager.get_thread_connection().handle
            cancelling = threading.Thread(target=manager.cancel_open)
            cancelling.start()
            cancelling.join()

        assert project.adapter.is_cancelable()
        assert handle.cancelled.is_set()
