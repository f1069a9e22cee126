"""Runs compiled PySpark code, calls in another process, and our code in Spark's workers."""

from __future__ import annotations

import functools
import importlib
import io
import linecache
import os
import pickle
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, Generic, ParamSpec, TypeVar

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from dbt.adapters.mzs3.errors import Mzs3Error, SparkJobError
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, readable
from dbt.adapters.mzs3.worker import freeze_survivors, load

SHIPPED = (
    "arrow",
    "store",
    "options",
    "formats",
    "upload",
    "ledger.table_files",
    "source.executor",
    "shard.batch",
    "shard.codec",
    "shard.types",
    "types",
    "errors",
    "names",
    "secrets",
    "text",
    "worker",
)

GC_FREEZE = "MZS3_GC_FREEZE"
"""If this environment variable of dbt is 0, tasks don't change the garbage collector of their
worker."""

OnBatches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
P = ParamSpec("P")
T = TypeVar("T")

Tell = Callable[[Any], None]
"""A callback for events, of a type on which a function and its caller agree."""


@dataclass(frozen=True)
class Call(Generic[T]):
    """A function of ours and its arguments, to which `run` adds the Spark session and those named
    in `takes`: `cancelled`, a threading.Event, and `tell`.

    The call and its result must be picklable, and the function's module must not import dbt.
    """

    function: Callable[..., T]
    arguments: Mapping[str, Any] = field(repr=False)  # secrets may be among them
    takes: tuple[str, ...] = ()

    def run(self, spark: SparkSession, cancelled: threading.Event, tell: Tell) -> T:
        """Calls the function in this process."""
        extra = {"cancelled": cancelled, "tell": tell}
        return self.function(spark, **self.arguments, **{name: extra[name] for name in self.takes})


def run_job(spark: SparkSession, code: str, name: str, extra_globals: Mapping[str, Any]) -> Any:
    """Runs Python source. Returns its global variable `result`, or None.

    `name` is the file name in tracebacks. Raises Mzs3Errors from the code as they are, and a
    SparkJobError, which names the line, for other failures.
    """
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    scope = {"__name__": "__dbt_job__", "__file__": name, "spark": spark, **extra_globals}
    try:
        exec(compile(code, name, "exec"), scope)  # noqa: S102 (running the model is the job)
    except Mzs3Error:
        raise
    except Exception as exc:
        text = "".join(traceback.format_exception_only(exc)).strip()
        if isinstance(exc, SPARK_FAILURES):
            error = readable(exc)
            if type(error) is not SparkJobError:
                raise error from exc
            text = str(error)
        frames = traceback.extract_tb(exc.__traceback__)
        if not (job_frames := [frame for frame in frames if frame.filename == name]):
            raise SparkJobError(f"{name}: {text}") from exc
        where = f"in {name}, line {job_frames[-1].lineno}: {job_frames[-1].line}"
        raise SparkJobError(f"{text}\n  {where}") from exc
    finally:
        linecache.cache.pop(name, None)
    return scope.get("result")


def ship_executor_code() -> None:
    """Makes cloudpickle pickle the code of the modules in SHIPPED by value."""
    for name in SHIPPED:
        module = importlib.import_module(f"dbt.adapters.mzs3.{name}")
        cloudpickle.register_pickle_by_value(module)


def shipped(make: Callable[P, OnBatches], *arguments: P.args, **named: P.kwargs) -> OnBatches:
    """A function for `mapInArrow`. In the worker, calls `make`, which is of a module in SHIPPED,
    with the arguments, and runs the function that `make` returns.

    The code is pickled once in this process, and unpickled once in each worker: pickling it takes
    as long as exporting thousands of rows.
    """
    pickled = io.BytesIO()
    pickler = _ByName(pickled)
    pickler.dump((make, arguments, named))
    code, data = _code_of(frozenset(pickler.names)), pickled.getvalue()
    freezes = os.environ.get(GC_FREEZE) != "0"

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if freezes:
            freeze_survivors()
        make, arguments, named = load(code, data)
        batches_of: OnBatches = make(*arguments, **named)
        return batches_of(batches)

    return run


class _ByName(pickle.Pickler):
    """Pickles functions and classes by name, and collects those of modules in SHIPPED."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.names: set[tuple[str, str]] = set()

    def reducer_override(self, value: Any) -> Any:
        """Called by pickle for each value, which pickle then pickles as usual."""
        if isinstance(value, type | FunctionType) and _is_shipped(value.__module__):
            self.names.add((value.__module__, value.__qualname__))
        return NotImplemented


def _is_shipped(module: str) -> bool:
    ours = tuple(f"dbt.adapters.mzs3.{name}" for name in SHIPPED)
    return module.startswith(ours)


@functools.lru_cache(maxsize=16)
def _code_of(names: frozenset[tuple[str, str]]) -> bytes:
    """The functions and classes in a dict by module and name, pickled by value."""
    ship_executor_code()
    by_name = {
        (module, name): functools.reduce(getattr, name.split("."), sys.modules[module])
        for module, name in names
    }
    return bytes(cloudpickle.dumps(by_name))
