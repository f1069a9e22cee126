"""What a failure of Spark means to a user."""

from __future__ import annotations

import json
import re

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from dbt.adapters.mzs3.errors import MARK_BEGIN, MARK_END, ExecutorError, Mzs3Error, SparkJobError
from dbt.adapters.mzs3.spark.watchdog import why_ended

SPARK_FAILURES = (PySparkException, Py4JError)

_MARKED = re.compile(re.escape(MARK_BEGIN) + r"([a-z]*)(.*?)" + re.escape(MARK_END), re.DOTALL)
_TRACEBACK = "Traceback (most recent call last):"
_MISSING_MODULE = re.compile(r"ModuleNotFoundError: No module named '(pyarrow|boto3|botocore)'")
_MAX_LINES = 12


def executor_error(exc: BaseException) -> ExecutorError | None:
    """The ExecutorError inside a failure of Spark, as it was raised; None if there is none."""
    marked = _MARKED.search(str(exc))
    return None if marked is None else ExecutorError(_message(marked[2]), marked[1])


def executor_message(exc: BaseException) -> str | None:
    """The message of the ExecutorError inside a failure of Spark, or None if there is none."""
    found = executor_error(exc)
    return None if found is None else found.message


def _message(marked: str) -> str:
    # Spark may escape the text once more on its way through the JVM.
    for candidate in (marked, marked.replace('\\"', '"')):
        try:
            return str(json.loads(candidate))
        except ValueError:
            continue
    return marked


def explain(exc: Exception) -> Mzs3Error:
    """The failure as one of our errors: ours if an executor raised one, else Spark's own words.

    Spark's stack traces are cut: what remains is its message and the first lines of the cause.
    """
    if isinstance(exc, Mzs3Error):
        return exc
    message = executor_message(exc)
    if message is not None:
        return Mzs3Error(message)
    ended = why_ended(str(exc))
    if ended is not None:
        return SparkJobError(ended)
    text = _brief(str(exc)) or type(exc).__name__
    missing = _MISSING_MODULE.search(text)
    if missing:
        text += (
            f"; the Python of Spark's workers lacks {missing.group(1)}: install pyarrow and boto3 "
            "there, or name a Python that has them in PYSPARK_PYTHON"
        )
    return SparkJobError(text)


def _brief(text: str) -> str:
    """Spark's message without stack traces; of a Python traceback, the exception alone."""
    text = text.split("\nJVM stacktrace:")[0].split("\nDriver stacktrace:")[0]
    before, traceback, after = text.partition(_TRACEBACK)
    lines = before.splitlines()
    if traceback:
        lines += [line for line in after.splitlines() if line and not line.startswith(" ")]
    kept = [line for line in lines if not line.lstrip().startswith("at ")]
    return "\n".join(kept[:_MAX_LINES]).strip()
