"""Writes a diff of unknown size from a cluster; takes the argument of `export_on_cluster`.

The shard has other rows before, in one file. All change, and there are enough for several parts.
Each time that Spark computes a row it is another one, as if its clock were part of the model.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from dbt.adapters.mzs3.events import Committed
from dbt.adapters.mzs3.shard import rows as shard_rows
from dbt.adapters.mzs3.shard.write import diff
from dbt.adapters.mzs3.shard.write.job import persist_shard
from support.spark import export_on_cluster

BEFORE = f"select id as k, -1D as x from range({export_on_cluster.GROUPS})"
OTHER_EACH_TIME = """
select k, x + cast(java_method('java.lang.System', 'nanoTime') as bigint) % 1000000 as x from ({})
"""


def persist_diff(
    spark: Any, query: str, *, options: dict[str, Any], as_of: int, **run: Any
) -> Committed:
    """Stands for `persist_shard`: the query's rows are the second batch."""
    persist_shard(spark, BEFORE, options={**options, "parts": 1}, as_of=as_of, **run)
    unknown = {"location": options["location"]}
    query = OTHER_EACH_TIME.format(query)
    return persist_shard(spark, query, options=unknown, as_of=as_of + 1, **run)


if __name__ == "__main__":
    shard_rows.ROWS_OF_A_PART = 100
    for module in (shard_rows, diff):
        module.default_parallelism = lambda _: export_on_cluster.PARTS
    export_on_cluster.persist_shard = persist_diff  # type: ignore[assignment]
    export_on_cluster.main(**json.loads(sys.argv[1]))
