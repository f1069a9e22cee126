"""What the package keeps for as long as a process lives; and how a test begins without it."""

from __future__ import annotations

import sys

from dbt.adapters.mzs3.worker import worker_state

KEPT = {
    ("store.opened", "_idle"),
    ("ledger.lease", "_threads"),
    ("export.running_view", "_locks"),
    ("store.conditions", "_known"),
    ("store.conditions", "_trying"),
    ("project.staging", "_locks"),
    ("spark.java", "_in_use"),
    ("spark.interrupt", "_verdicts"),
    ("spark.remote", "_running"),
}
"""Of the driver: modules, and their attributes that are empty in a new process."""

CACHES = {
    ("options.option", "_options_of"),
    ("project.source_runs", "_attempts"),
    ("shard.state.state", "_reader"),
    ("spark.job", "_code_of"),
}
"""Of the driver: modules, and their functions whose results are kept."""

SETTINGS = {("spark.java", "_started"), ("spark.java", "_output")}
"""Of the driver: modules, and their attributes that are None in a new process."""


def clear() -> None:
    """Nothing is kept any more, as in a new process."""
    worker_state().clear()
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
