"""What the package keeps for as long as a process lives; and how a test begins without it."""

from __future__ import annotations

import gc
import pickle
import sys
from typing import Any

import boto3

KEPT = {
    ("store.client", "_idle"),
    ("ledger.lock", "_threads"),
    ("export.running_view", "_locks"),
    ("store.conditions", "_known"),
    ("store.conditions", "_trying"),
    ("project.staging", "_locks"),
    ("spark.holders", "_held"),
    ("spark.interrupt", "_verdicts"),
    ("spark.remote", "_running"),
}
"""Modules, and what of theirs is empty in a new process."""

CACHES = {
    ("project.source_runs", "_attempts"),
    ("shard.state.state", "_reader"),
    ("spark.job", "_code_of"),
}
"""Modules, and functions of theirs whose results are kept."""

SETTINGS = {("spark.holders", "_started"), ("spark.session", "_output")}
"""Modules, and what of theirs is None in a new process."""

# In these, code that travels to workers keeps things from task to task, under this name.
_OF_WORKERS: tuple[Any, ...] = (boto3, gc, pickle)
NAME = "_of_dbt_mzs3"


def forget() -> None:
    """Nothing is kept any more, as in a new process."""
    for module in _OF_WORKERS:
        vars(module).pop(NAME, None)
    for name, attribute in KEPT | CACHES | SETTINGS:
        module = sys.modules.get(f"dbt.adapters.mzs3.{name}")
        if module is None:
            continue  # not imported yet
        if (name, attribute) in SETTINGS:
            setattr(module, attribute, None)
        elif (name, attribute) in CACHES:
            getattr(module, attribute).cache_clear()
        else:
            getattr(module, attribute).clear()
