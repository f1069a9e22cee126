"""What connections say and do beside dbt-spark's own."""

import threading
from types import SimpleNamespace

import pytest
from dbt_common.exceptions import DbtDatabaseError

from dbt.adapters.mzs3.connections import Mzs3ConnectionManager

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
