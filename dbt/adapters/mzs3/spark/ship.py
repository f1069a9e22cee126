"""Code that runs on executors travels with the job, so a cluster needs no dbt."""

from __future__ import annotations

import importlib

from pyspark import cloudpickle

EXECUTOR_PACKAGES = (
    "dbt.adapters.mzs3.arrow",
    "dbt.adapters.mzs3.aws",
    "dbt.adapters.mzs3.objects",
    "dbt.adapters.mzs3.formats",
    "dbt.adapters.mzs3.upload",
    "dbt.adapters.mzs3.csv_source.executor",
    "dbt.adapters.mzs3.shard.executor",
    "dbt.adapters.mzs3.shard.types",
    "dbt.adapters.mzs3.errors",
    "dbt.adapters.mzs3.names",
    "dbt.adapters.mzs3.text",
)


def ship_executor_code() -> None:
    """Make functions and classes of the executor layer travel by value; safe to repeat."""
    for name in EXECUTOR_PACKAGES:
        cloudpickle.register_pickle_by_value(importlib.import_module(name))
