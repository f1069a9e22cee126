from pyspark.errors import AnalysisException

from dbt.adapters.mzs3.errors import CopyError, ExecutorError, SparkJobError
from dbt.adapters.mzs3.spark.failure import readable


def test_the_plan_is_cut_from_an_analysis_error():
    exc = AnalysisException(
        "[TABLE_OR_VIEW_NOT_FOUND] The table or view `a`.`b` cannot be found. SQLSTATE: 42P01; "
        "line 1 pos 14;\n'Project [*]\n+- 'UnresolvedRelation [a, b], [], false\n"
    )

    assert str(readable(exc)) == (
        "[TABLE_OR_VIEW_NOT_FOUND] The table or view `a`.`b` cannot be found. SQLSTATE: 42P01; "
        "line 1 pos 14"
    )


def test_the_plan_of_a_view_is_cut_too():
    exc = AnalysisException(
        "[UNRESOLVED_COLUMN] `nope` cannot be resolved. SQLSTATE: 42703; line 7 pos 7;\n"
        "'CreateViewCommand `spark_catalog`.`w`.`a`, select nope, false, true, PersistedView\n"
    )

    assert str(readable(exc)) == (
        "[UNRESOLVED_COLUMN] `nope` cannot be resolved. SQLSTATE: 42703; line 7 pos 7"
    )


def test_the_statement_is_not_repeated():
    exc = AnalysisException(
        "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'selec'. (line 1, pos 0)\n\n"
        "== SQL ==\nselec 1\n^^^\n"
    )

    assert str(readable(exc)) == (
        "[PARSE_SYNTAX_ERROR] Syntax error at or near 'selec'. (line 1, pos 0)"
    )


def test_the_place_in_the_sql_is_kept():
    exc = AnalysisException(
        "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n"
        "== SQL (line 1, position 8) ==\nselect 1/0\n       ^^^\n"
    )

    assert "== SQL (line 1, position 8) ==\nselect 1/0" in str(readable(exc))


def test_the_jvm_is_not_mentioned():
    exc = RuntimeError(
        "An error occurred while calling o105.collectToPython.\n"
        ": org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 4 cancelled\n"
        "\tat org.apache.spark.scheduler.DAGScheduler.handle(DAGScheduler.scala:4404)\n"
    )

    assert str(readable(exc)) == "[SPARK_JOB_CANCELLED] Job 4 cancelled"


def test_a_metastore_in_use_is_explained():
    exc = RuntimeError(
        "Caused by: ERROR XSDB6: Another instance of Derby may have already "
        "booted the database /data/metastore_db."
    )

    assert "another process uses this project's metastore" in str(readable(exc))


def test_a_metastore_in_use_is_explained_where_only_a_cause_of_the_failure_says_so():
    exc = AnalysisException("Unable to instantiate SessionHiveMetaStoreClient")
    exc._stackTrace = "Caused by: Another instance of Derby may have already booted the database"

    assert "another process uses this project's metastore" in str(readable(exc))


def test_a_view_too_long_for_derby_is_explained():
    exc = RuntimeError(
        "A truncation error was encountered trying to shrink '...' to length 32700."
    )

    assert "materialize the model as a table" in str(readable(exc))


def test_errors_of_our_own_are_left_as_they_are():
    own = CopyError("the export failed")

    assert readable(own) is own
    assert not isinstance(readable(ExecutorError("row 3 is ragged")), SparkJobError)
