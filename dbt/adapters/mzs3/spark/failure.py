"""Turns Spark's failures into errors for users, without stack traces and plans."""

from __future__ import annotations

import itertools
import json
import re
from contextlib import suppress

from pyspark.errors import PySparkException

from dbt.adapters.mzs3.errors import MARK_BEGIN, MARK_END, ExecutorError, Mzs3Error, SparkJobError
from dbt.adapters.mzs3.spark.interrupt import why_ended

JavaError: type[Exception]
try:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    JavaError = Py4JError
except ModuleNotFoundError:  # in pyspark-client, which does not use Java
    JavaError = PySparkException

SPARK_FAILURES = (PySparkException, JavaError)

_MARKED = re.compile(re.escape(MARK_BEGIN) + r"(.*?)" + re.escape(MARK_END), re.DOTALL)
_TRACEBACK = "Traceback (most recent call last):"
_MISSING_MODULE = re.compile(r"ModuleNotFoundError: No module named '(pyarrow|boto3|botocore)'")
# Spark's description of the Python lines that called it.
_CALLERS = re.compile(r"\n== DataFrame ==\n.*?(?=\n== |\Z)", re.DOTALL)
_MAX_LINES = 12

# Failures of a Spark Connect server itself, by gRPC status code or Spark's error condition.
GONE = (
    "the Spark Connect server does not answer, or was started anew: see whether it is up and can "
    "be reached, and run again"
)
_REMOTE = {
    "UNAVAILABLE": GONE,
    "DEADLINE_EXCEEDED": GONE,
    "UNAUTHENTICATED": "the Spark Connect server refused the token of `host` in the profile",
    "PERMISSION_DENIED": "the Spark Connect server does not let this token in",
    "RESPONSE_ALREADY_RECEIVED": GONE,
    "NO_ACTIVE_SESSION": GONE,
    "INVALID_HANDLE.SESSION_NOT_FOUND": GONE,
    "INVALID_HANDLE.SESSION_CLOSED": GONE,
    "INVALID_HANDLE.SESSION_CHANGED": GONE,
    "INVALID_HANDLE.OPERATION_NOT_FOUND": GONE,
}

_PY4J = re.compile(r"\AAn error occurred while calling \S+\s*\n: (?:[\w$]+\.)+[\w$]+: ")
_PLAN = re.compile(r"^\s*(?:'[A-Z]\w+ |[A-Z]\w+ \[|\+- |:- |== SQL ==|== DataFrame ==)")
_NO_VIEWS = (
    "this catalog has no views, and a view, an export and a shard are each a view in Spark: "
    "materialize the model as a table, or work in a catalog that has them, such as spark_catalog"
)
# Texts for users, by a part of Spark's or Hive's message, if that does not name the cause.
_CAUSES = {
    "MISSING_CATALOG_ABILITY.VIEWS": _NO_VIEWS,
    "Creating a view is not supported by catalog": _NO_VIEWS,
    "cannot be cast to class org.apache.spark.sql.connector.catalog.ViewCatalog": _NO_VIEWS,
    "Another instance of Derby may have already booted the database": (
        "another process uses this project's metastore, and Derby serves one at a time: wait for "
        "it to end, or give each its own spark.sql.warehouse.dir in the profile"
    ),
    "to length 32700": (
        "the text of the view is longer than the 32 700 characters that Derby's metastore can "
        "hold: materialize the model as a table, or use a metastore on another database"
    ),
}


def executor_error(exc: BaseException) -> ExecutorError | None:
    """The ExecutorError in the text of Spark's failure, if an executor raised one, else None."""
    if (marked := _MARKED.search(str(exc))) is None:
        return None
    document = marked[1]
    # Spark may have escaped the quotes once more.
    for candidate in (document, document.replace('\\"', '"')):
        with suppress(ValueError, TypeError):
            return ExecutorError(**json.loads(candidate))
    return ExecutorError(document)


def explain(exc: Exception) -> Mzs3Error:
    """The failure as an Mzs3Error: an executor's error, or a SparkJobError with Spark's message or
    a clearer one."""
    if isinstance(exc, Mzs3Error):
        return exc
    if (raised := executor_error(exc)) is not None:
        return Mzs3Error(raised.message)
    if (ended := why_ended(str(exc))) is not None:
        return SparkJobError(ended)
    if (remote := remote_failure(exc)) is not None:
        return SparkJobError(remote)
    text = _brief(str(exc)) or type(exc).__name__
    if missing := _MISSING_MODULE.search(text):
        text += (
            f"; the Python of Spark's workers lacks {missing.group(1)}: install pyarrow and boto3 "
            "there, or name a Python that has them in PYSPARK_PYTHON"
        )
    return SparkJobError(text)


def remote_failure(exc: Exception) -> str | None:
    """What is wrong with the Spark Connect server; None if the failure has another cause."""
    if "incorrect server side session identifier" in str(exc):  # has no error condition
        return GONE
    condition = exc.getCondition() if isinstance(exc, PySparkException) else None
    status = getattr(exc, "getGrpcStatusCode", None)
    return _REMOTE.get(condition or "") or _REMOTE.get(status().name if status else "")


def _brief(text: str) -> str:
    """Spark's message without stack traces; a Python traceback is cut to the exception."""
    text = text.split("\nJVM stacktrace:")[0].split("\nDriver stacktrace:")[0]
    before, traceback, after = text.partition(_TRACEBACK)
    lines = _CALLERS.sub("", before).splitlines()
    if traceback:
        lines += [line for line in after.splitlines() if line and not line.startswith(" ")]
    kept = [line for line in lines if not line.lstrip().startswith("at ")]
    return "\n".join(kept[:_MAX_LINES]).strip()


def readable(exc: Exception) -> Mzs3Error:
    """The failure of a statement as an Mzs3Error, without the statement's plan and text."""
    # PySpark has the messages of Java's causes only in the stack trace.
    text = f"{exc}\n{getattr(exc, '_stackTrace', '')}"
    for sign, cause in _CAUSES.items():
        if sign in text:
            return SparkJobError(cause)
    error = explain(exc)
    if type(error) is not SparkJobError:
        return error
    text = _PY4J.sub("", str(error))
    lines = itertools.takewhile(lambda line: not _PLAN.match(line), text.splitlines())
    return SparkJobError("\n".join(lines).strip().removesuffix(";") or text)
