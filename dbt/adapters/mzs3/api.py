"""What compiled jobs import: all that stays where it is from one version to the next.

A job under `target/run` may be run again by another version of dbt-mzs3. So names are only ever
added here, and arguments of functions have defaults if they were not there from the beginning.
"""

from __future__ import annotations

from dbt.adapters.mzs3.export.job import copy_to_s3
from dbt.adapters.mzs3.export.monitor import RunContext
from dbt.adapters.mzs3.shard.write.job import persist_shard
from dbt.adapters.mzs3.spark.tables import create_table

__all__ = ["RunContext", "copy_to_s3", "create_table", "persist_shard"]
