"""Spark's failures of a statement, as a user wants to read them."""

from __future__ import annotations

import re

from dbt.adapters.mzs3.errors import Mzs3Error, SparkJobError
from dbt.adapters.mzs3.spark.failure import explain

_PY4J = re.compile(r"\AAn error occurred while calling \S+\s*\n: (?:[\w$]+\.)+[\w$]+: ")
_PLAN = re.compile(r"^\s*(?:'?[A-Z]\w+ \[|\+- |:- |== SQL ==|== DataFrame ==)")
_OTHER_DERBY = "Another instance of Derby may have already booted the database"


def readable(exc: Exception) -> Mzs3Error:
    """The failure of a statement: Spark's message and where in the SQL, without plans, without
    the statement repeated and without the JVM's stack trace."""
    error = explain(exc)
    if type(error) is not SparkJobError:
        return error
    text = _PY4J.sub("", str(error))
    lines = text.splitlines()
    end = next((n for n, line in enumerate(lines) if _PLAN.match(line)), len(lines))
    message = "\n".join(lines[:end]).strip().removesuffix(";") or text
    if _OTHER_DERBY in str(exc):
        message = (
            "another process uses this project's metastore, and Derby serves one at a time: wait "
            "for it to end, or give each its own spark.sql.warehouse.dir in the profile"
        )
    return SparkJobError(message)
