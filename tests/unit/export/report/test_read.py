"""From rows to a file, with a session that answers from memory."""

from datetime import timedelta
from types import SimpleNamespace

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Row
from support.export.report_runs import NOW

from dbt.adapters.mzs3.errors import ConfigError, Mzs3Error
from dbt.adapters.mzs3.export.report.read import ReportRequest, read_runs, write_report
from dbt.adapters.mzs3.export.report.summary import ReportedRun

STARTED = NOW - timedelta(hours=3, microseconds=1)
ROW = Row(
    model="model.shop.orders",
    location="s3://lake/orders/",
    as_of=17,
    status="rows",
    rows=7,
    bytes=70,
    files=1,
    invocation_id="abc",
    format="csv",
    on_existing="fail",
    error=None,
    started=int(STARTED.timestamp()) * 1_000_000 + STARTED.microsecond,
    ended=int(STARTED.timestamp()) * 1_000_000 + STARTED.microsecond + 2_500_000,
)


class Session:
    """What read_runs uses of a SparkSession."""

    def __init__(self, rows=(), *, has_table=True, error=None):
        self.catalog = self
        self.queries = []
        self.columns = [*ROW.asDict(), "day", "run"]
        self._rows, self._has_table, self._error = rows, has_table, error

    def tableExists(self, name):
        self.asked = name
        return self._has_table

    def table(self, name):
        return SimpleNamespace(columns=self.columns)

    def sql(self, query):
        if self._error:
            raise self._error
        self.queries.append(" ".join(query.split()))
        return self

    def toLocalIterator(self, prefetchPartitions):
        return iter(self._rows)


def test_a_row_becomes_a_run_to_the_microsecond():
    assert list(read_runs(Session([ROW]), "analytics", since=NOW)) == [
        ReportedRun(
            model="model.shop.orders",
            location="s3://lake/orders/",
            as_of=17,
            started=STARTED,
            ended=STARTED + timedelta(seconds=2.5),
            status="rows",
            rows=7,
            bytes=70,
            files=1,
            error=None,
            invocation_id="abc",
            format="csv",
            on_existing="fail",
        )
    ]


def test_a_table_of_an_earlier_version_is_read_without_what_it_lacks():
    old = Session([ROW])
    list(read_runs(old, "s", since=NOW))
    assert "`native`" not in old.queries[0]
    new = Session([Row(**{**ROW.asDict(), "native": True})])
    new.columns.append("native")
    [run] = read_runs(new, "s", since=NOW)
    assert "`native`" in new.queries[0]
    assert run.native is True


@pytest.mark.parametrize(
    ("stored", "outcome"), [("rows", "ok"), ("error", "error"), ("cancelled", "cancelled")]
)
def test_outcomes_are_the_statuses_of_the_table(stored, outcome):
    row = Row(**{**ROW.asDict(), "status": stored})
    assert next(read_runs(Session([row]), "s", since=NOW)).outcome == outcome


def test_the_newest_are_asked_for_within_bounds():
    session = Session([ROW])
    list(read_runs(session, "odd`name", since=NOW))
    query = session.queries[0]
    assert "from `odd``name`.`mzs3_copy_history`" in query
    assert f"started >= timestamp_micros({int(NOW.timestamp())}000000)" in query
    assert query.endswith("order by started desc limit 200001")


def test_the_page_is_in_the_file_whole(tmp_path):
    path = tmp_path / "new" / "report.html"
    assert write_report(Session([ROW]), ReportRequest("analytics", path, 30)) == path
    page = path.read_text()
    assert page.endswith("</html>\n")
    assert "Schema analytics" in page
    assert [each.name for each in path.parent.iterdir()] == ["report.html"]


def test_without_a_table_there_is_a_page_that_helps(tmp_path):
    path = tmp_path / "report.html"
    session = Session(has_table=False)
    write_report(session, ReportRequest("analytics", path, 30))
    assert session.queries == []
    assert "dbt run-operation copy_report" in path.read_text()


def test_what_spark_says_is_an_error_of_ours_and_no_file_is_left(tmp_path):
    session = Session(error=AnalysisException("no column `files`"))
    with pytest.raises(Mzs3Error, match="no column `files`"):
        write_report(session, ReportRequest("s", tmp_path / "report.html", 30))
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"file/report\.html' can't be written"):
        write_report(Session(), ReportRequest("s", tmp_path / "file" / "report.html", 1))


def test_a_path_that_no_file_can_have_is_named(tmp_path):
    with pytest.raises(ConfigError, match="can't be written"):
        write_report(Session(), ReportRequest("s", tmp_path / "a\0b", 1))


def test_a_schema_of_another_catalog_is_read():
    session = Session([ROW])
    list(read_runs(session, "lake.sales", since=NOW))
    assert session.asked == "`lake`.`sales`.`mzs3_copy_history`"
    assert "from `lake`.`sales`.`mzs3_copy_history`" in session.queries[0]
