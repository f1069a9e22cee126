"""Spark's failures of a statement, as a user wants to read them."""

from __future__ import annotations

import re

from dbt.adapters.mzs3.errors import Mzs3Error, SparkJobError
from dbt.adapters.mzs3.spark.failure import explain

_PY4J = re.compile(r"\AAn error occurred while calling \S+\s*\n: (?:[\w$]+\.)+[\w$]+: ")
_PLAN = re.compile(r"^\s*(?:'[A-Z]\w+ |[A-Z]\w+ \[|\+- |:- |== SQL ==|== DataFrame ==)")
# What Spark's and Hive's words for it leave unclear.
_CAUSES = {
    "Another instance of Derby may have already booted the database": (
        "another process uses this project's metastore, and Derby serves one at a time: wait for "
        "it to end, or give each its own spark.sql.warehouse.dir in the profile"
    ),
    "to length 32700": (
        "the text of the view is longer than the 32 700 characters that Derby's metastore can "
        "hold: materialize the model as a table, or use a metastore on another database"
    ),
}


def readable(exc: Exception) -> Mzs3Error:
    """The failure of a statement: Spark's message and where in the SQL, without plans, without
    the statement repeated and without the JVM's stack trace."""
    # PySpark keeps what the JVM's causes said apart from the message.
    said = f"{exc}\n{getattr(exc, '_stackTrace', '')}"
    for sign, cause in _CAUSES.items():
        if sign in said:
            return SparkJobError(cause)
    error = explain(exc)
    if type(error) is not SparkJobError:
        return error
    text = _PY4J.sub("", str(error))
    lines = text.splitlines()
    end = next((n for n, line in enumerate(lines) if _PLAN.match(line)), len(lines))
    return SparkJobError("\n".join(lines[:end]).strip().removesuffix(";") or text)
