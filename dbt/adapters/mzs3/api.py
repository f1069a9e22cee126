"""All that compiled jobs and macros import; stable from one version to the next.

Another version of dbt-mzs3 may run a job under `target/run` again. So names are only added here,
and later arguments of functions have defaults.
"""

from __future__ import annotations

from dbt.adapters.mzs3.export.job import copy_to_s3
from dbt.adapters.mzs3.export.monitor import RunContext
from dbt.adapters.mzs3.shard.write.job import persist_shard
from dbt.adapters.mzs3.spark.tables import create_table

__all__ = ["RunContext", "copy_to_s3", "create_table", "persist_shard"]
