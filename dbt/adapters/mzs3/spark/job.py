"""Runs compiled PySpark code in this process, and ships our code to executors."""

from __future__ import annotations

import functools
import gc
import hashlib
import importlib
import io
import linecache
import pickle
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import Any, ParamSpec

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from dbt.adapters.mzs3.errors import Mzs3Error, SparkJobError
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, readable

SHIPPED = (
    "arrow",
    "store",
    "options",
    "formats",
    "upload",
    "ledger.table_files",
    "source.executor",
    "shard.executor",
    "shard.types",
    "errors",
    "names",
    "text",
)

# A worker keeps the code of so many kinds of tasks, 1 MB each.
_KEPT_CODE = 16
_WHOLE_COLLECTION_S = 60.0

OnBatches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
P = ParamSpec("P")


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


def shipped(make: Callable[P, OnBatches], *arguments: P.args, **named: P.kwargs) -> OnBatches:
    """What `make` gives for the arguments, for `mapInArrow`; workers make it.

    `make` is a function of the executor layer. Its code, and that of the arguments, is pickled
    once in this process, and unpickled once in a worker: to pickle it takes as long as to export
    thousands of rows. What it has in its globals stays in a worker.
    """
    pickled = io.BytesIO()
    pickler = _ByName(pickled)
    pickler.dump((make, arguments, named))
    code, data = _code_of(frozenset(pickler.names)), pickled.getvalue()
    version = hashlib.sha256(code).digest()

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        loaded = vars(pickle).setdefault("_of_dbt_mzs3", {})  # lives as long as the worker
        if version not in loaded:
            loaded[version] = pickle.loads(code)  # noqa: S301 - our own
            while len(loaded) > _KEPT_CODE:
                del loaded[next(iter(loaded))]
        ours = loaded[version] = loaded.pop(version)  # the last that is dropped
        # PySpark collects garbage after each task, and looks at all objects of the worker for it:
        # 0.17 s once boto3 is loaded. What has lived through one such collection is left out of
        # those of a minute. (In a module of Python's, as this code has none in a worker.)
        state = vars(gc).setdefault("_of_dbt_mzs3", {})
        now = time.monotonic()
        if now - state.get("whole", -_WHOLE_COLLECTION_S) >= _WHOLE_COLLECTION_S:
            gc.unfreeze()
            state.update(whole=now, left_out=False)
        elif not state["left_out"]:
            gc.freeze()
            state.update(left_out=True)

        class Unpickler(pickle.Unpickler):
            def find_class(self, module: str, name: str) -> Any:
                found = ours.get((module, name))
                return super().find_class(module, name) if found is None else found

        made, given, by_name = Unpickler(io.BytesIO(data)).load()
        batches_of: OnBatches = made(*given, **by_name)
        return batches_of(batches)

    return run


class _ByName(pickle.Pickler):
    """Pickles functions and classes by their names, and notes those of the executor layer."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.names: set[tuple[str, str]] = set()

    def reducer_override(self, value: Any) -> Any:
        """Called for each value; nothing is reduced in another way than by default."""
        if isinstance(value, type | FunctionType) and _is_shipped(value.__module__):
            self.names.add((value.__module__, value.__qualname__))
        return NotImplemented


def _is_shipped(module: str) -> bool:
    ours = tuple(f"dbt.adapters.mzs3.{name}" for name in SHIPPED)
    return module.startswith(ours)


@functools.lru_cache(maxsize=16)
def _code_of(names: frozenset[tuple[str, str]]) -> bytes:
    """The functions and classes of these modules and names, pickled by value."""
    ship_executor_code()
    found = {
        (module, name): functools.reduce(getattr, name.split("."), sys.modules[module])
        for module, name in names
    }
    return bytes(cloudpickle.dumps(found))
