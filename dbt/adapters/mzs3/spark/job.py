"""Runs compiled PySpark code in this process, and ships our code to executors."""

from __future__ import annotations

import importlib
import linecache
import traceback
from collections.abc import Mapping
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import SparkSession

from dbt.adapters.mzs3.errors import Mzs3Error, SparkJobError
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, readable

SHIPPED = (
    "arrow",
    "aws",
    "config",
    "objects",
    "formats",
    "upload",
    "csv_source.executor",
    "shard.executor",
    "shard.types",
    "errors",
    "names",
    "text",
)


def run_job(spark: SparkSession, code: str, name: str, extra_globals: Mapping[str, Any]) -> Any:
    """Runs Python source; returns its global `result`, or None.

    `name` is the file that tracebacks show. Raises Mzs3Errors of the code as they are, and else a
    SparkJobError that names the line and what happened there.
    """
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    scope = {"__name__": "__dbt_job__", "__file__": name, "spark": spark, **extra_globals}
    try:
        exec(compile(code, name, "exec"), scope)  # noqa: S102 (running the model is the job)
    except Mzs3Error:
        raise
    except Exception as exc:
        said = "".join(traceback.format_exception_only(exc)).strip()
        if isinstance(exc, SPARK_FAILURES):
            error = readable(exc)
            if type(error) is not SparkJobError:
                raise error from exc
            said = str(error)
        frames = traceback.extract_tb(exc.__traceback__)
        if not (ours := [frame for frame in frames if frame.filename == name]):
            raise SparkJobError(f"{name}: {said}") from exc
        where = f"in {name}, line {ours[-1].lineno}: {ours[-1].line}"
        raise SparkJobError(f"{said}\n  {where}") from exc
    finally:
        linecache.cache.pop(name, None)
    return scope.get("result")


def ship_executor_code() -> None:
    """Has cloudpickle send the code of the executor layer by value; safe to repeat."""
    for name in SHIPPED:
        module = importlib.import_module(f"dbt.adapters.mzs3.{name}")
        cloudpickle.register_pickle_by_value(module)
