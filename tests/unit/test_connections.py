"""What connections say and do beside dbt-spark's own."""

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from dbt.adapters.base.query_headers import _QueryComment
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt.adapters.mzs3.connections import Mzs3ConnectionManager
from dbt.adapters.mzs3.impl import Mzs3Adapter

OF_THRIFT = """\
org.apache.hive.service.cli.HiveSQLException: Error running query: [TABLE_OR_VIEW_NOT_FOUND] \
The table or view `a`.`b` cannot be found. SQLSTATE: 42P01; line 16 pos 22;
'CreateTable `spark_catalog`.`a`.`c`, ErrorIfExists
+- 'Project ['id]

\tat org.apache.spark.sql.hive.thriftserver.HiveThriftServerErrors$.runningQueryError(X.scala:43)
\t... 22 more
"""


def test_an_error_of_a_thrift_server_is_told_without_java():
    handler = Mzs3ConnectionManager.exception_handler

    with pytest.raises(DbtDatabaseError) as raised, handler(None, "select"):
        raise DbtDatabaseError(OF_THRIFT)

    assert str(raised.value.msg) == OF_THRIFT.splitlines()[0].removesuffix(";")


def commented(sql, append):
    """A statement as it goes to Spark, in a project with this `query-comment`."""
    manager = Mzs3ConnectionManager.__new__(Mzs3ConnectionManager)
    comment = _QueryComment("of a.b")
    comment.append = append
    manager.query_header = SimpleNamespace(comment=comment, add=comment.add)
    return manager._add_query_comment(sql)


TAKES_ALL = [
    "set a.b = c",
    "SET x=y;",
    " -- why\n/* or */ set a = b",
    "reset a.b",
    "add jar x.jar",
    "refresh /a/b",
]


@pytest.mark.parametrize("sql", TAKES_ALL)
def test_a_comment_is_not_put_where_it_would_be_a_value(sql):
    assert commented(sql, append=True) == sql
    assert commented(sql, append=False) == f"/* of a.b */\n{sql}"


@pytest.mark.parametrize(
    "sql", ["select 1", "settle", "refresh table a.b", "insert into a.b select 1"]
)
def test_other_statements_have_it_where_the_project_wants_it(sql):
    assert commented(sql, append=True) == f"{sql}\n/* of a.b */"
    assert commented(sql, append=False) == f"/* of a.b */\n{sql}"


def test_other_errors_stay_as_they_are():
    handler = Mzs3ConnectionManager.exception_handler

    with pytest.raises(DbtDatabaseError) as raised, handler(None, "select"):
        raise DbtDatabaseError("+- 'Project")

    assert str(raised.value.msg) == "+- 'Project"


def test_what_runs_elsewhere_for_a_connection_is_cancelled_whatever_its_driver_says():
    def cancel():
        raise OSError("the statement has ended")

    handle = SimpleNamespace(cancelled=threading.Event(), cancel=cancel)

    Mzs3ConnectionManager.cancel(
        Mzs3ConnectionManager.__new__(Mzs3ConnectionManager),
        SimpleNamespace(name="model.a", handle=handle),
    )

    assert handle.cancelled.is_set()


@pytest.fixture
def manager():
    config = SimpleNamespace(query_comment=SimpleNamespace(comment=None), credentials=None)
    return Mzs3ConnectionManager(config, threading)


@pytest.fixture
def another_thread():
    with ThreadPoolExecutor(1) as pool:
        yield lambda call, *given: pool.submit(call, *given).result()


def test_an_invocation_that_begins_while_another_runs_is_refused(manager, another_thread):
    with pytest.raises(DbtRuntimeError, match="another invocation of dbt runs"):
        another_thread(manager.cleanup_all)

    manager.cleanup_all()
    another_thread(manager.cleanup_all)


def test_an_invocation_that_goes_on_after_it_has_cleaned_up_runs(manager, another_thread):
    manager.cleanup_all()
    another_thread(manager.set_connection_name, "model.a.b")  # by one of its threads

    with pytest.raises(DbtRuntimeError, match="another invocation of dbt runs"):
        another_thread(manager.cleanup_all)


def test_a_program_that_has_used_the_adapter_after_an_invocation_is_no_other(
    manager, another_thread
):
    manager.cleanup_all()
    manager.set_connection_name("of a program")
    manager.release()

    another_thread(manager.cleanup_all)


def test_the_invocation_of_a_thread_that_has_ended_is_over():
    made = []
    thread = threading.Thread(
        target=lambda: made.append(Mzs3ConnectionManager(SimpleNamespace(), threading))
    )
    thread.start()
    thread.join()

    made[0].cleanup_all()


def test_an_invocation_does_not_go_on_with_the_adapter_of_another(manager, another_thread):
    adapter = Mzs3Adapter.__new__(Mzs3Adapter)
    adapter.connections = manager

    with pytest.raises(DbtRuntimeError, match="another invocation of dbt runs"):
        another_thread(adapter.set_macro_context_generator, None)
    adapter.set_macro_context_generator(None)
