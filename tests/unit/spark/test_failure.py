"""Failures of Spark: our own message where an executor raised one, else Spark's without traces."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dbt.adapters.mzs3.errors import CopyError, ExecutorError, Mzs3Error, SparkJobError
from dbt.adapters.mzs3.spark.failure import executor_error, explain

WORKER_FAILED = """[PYTHON_EXCEPTION] An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/x/worker.py", line 1, in main
    process()
{error}

JVM stacktrace:
org.apache.spark.SparkException: Job aborted
\tat org.apache.spark.Some.scala(Some.scala:1)
"""


@given(st.text())
@example("a header named </mzs3-error> or <mzs3-error>")
@example("value 'https://jane:x@acme.com' in column x")
def test_an_executors_message_arrives_as_it_was_raised(message: str) -> None:
    error = f"dbt.adapters.mzs3.errors.ExecutorError: {ExecutorError(message)}"
    failure = explain(RuntimeError(WORKER_FAILED.format(error=error)))
    assert type(failure) is Mzs3Error
    assert str(failure) == message


@given(st.text(), st.text() | st.none(), st.booleans())
@example("the answer of http://store:\n", "s3://b/x://a:b@c.csv", False)
@example('s3://b/"</mzs3-error>', 's3://b/"\\</mzs3-error>"', True)
def test_what_the_driver_alone_reads_arrives_and_is_not_shown(
    message: str, s3_object: str | None, is_escaped: bool
) -> None:
    error = str(ExecutorError(message, "gone", s3_object))
    said = error.replace('"', '\\"') if is_escaped else error
    failure = RuntimeError(WORKER_FAILED.format(error=f"ExecutorError: {said}"))
    found = executor_error(failure)
    assert found is not None
    assert (found.message, found.cause, found.s3_object) == (message, "gone", s3_object)
    assert str(explain(failure)) == message


@pytest.mark.parametrize("document", ["1", '{"other": 1}', "no JSON"])
def test_what_is_marked_by_others_is_shown_as_it_is(document: str) -> None:
    assert str(explain(RuntimeError(f"<mzs3-error>{document}</mzs3-error>"))) == document


def test_our_own_errors_pass_through() -> None:
    error = CopyError("no")
    assert explain(error) is error


def test_other_failures_lose_their_stack_traces() -> None:
    failure = explain(RuntimeError(WORKER_FAILED.format(error="ZeroDivisionError: division")))
    assert type(failure) is SparkJobError
    assert str(failure) == (
        "[PYTHON_EXCEPTION] An exception was thrown from the Python worker:\n"
        "ZeroDivisionError: division"
    )


def test_frames_of_dataframes_are_lost_and_places_in_sql_are_not() -> None:
    said = "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012"
    sql = "== SQL (line 1, position 8) ==\nselect 1/0\n       ^^^"
    frames = '== DataFrame ==\n"cast" was called from\njava.base/jdk.invoke0(Native Method)'
    assert str(explain(RuntimeError(f"{said}\n{frames}\n"))) == said
    assert str(explain(RuntimeError(f"{said}\n{frames}\n\n{sql}\n"))) == f"{said}\n{sql}"


@pytest.mark.parametrize("module", ["pyarrow", "boto3"])
def test_workers_without_what_they_need_are_explained(module: str) -> None:
    error = f"ModuleNotFoundError: No module named '{module}'"
    text = str(explain(RuntimeError(WORKER_FAILED.format(error=error))))
    assert f"the Python of Spark's workers lacks {module}" in text
    assert "PYSPARK_PYTHON" in text


def test_a_text_without_a_mark_has_no_message() -> None:
    assert executor_error(RuntimeError("plain")) is None


def test_spark_quotes_its_settings_without_a_login():
    failure = explain(RuntimeError("no bucket s3a://AKIA:hu/hush@lake/x"))
    assert str(failure) == "no bucket s3a://*****@lake/x"
