"""The names that compiled jobs and macros import; they are stable across versions.

Another version of dbt-mzs3 may run an existing job under `target/run`. So names are never removed
from here, and new arguments of functions need defaults.
"""

from __future__ import annotations

from dbt.adapters.mzs3.export.job import copy_to_s3
from dbt.adapters.mzs3.export.monitor import RunContext
from dbt.adapters.mzs3.shard.write.job import persist_shard
from dbt.adapters.mzs3.spark.tables import create_table

__all__ = ["RunContext", "copy_to_s3", "create_table", "persist_shard"]
