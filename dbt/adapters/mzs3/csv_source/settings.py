"""Settings of Spark's session under which a source does its work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = {
    # Names of columns come out of objects: SQL must hold them as they are.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    # What is persisted is often small: without this, it has as many tasks as shuffles may have.
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
}


@contextmanager
def own_settings(spark: SparkSession) -> Iterator[None]:
    """Nothing in a name or a literal is replaced while this lasts, and few rows take few tasks."""
    before = {key: spark.conf.get(key) for key in _SETTINGS}
    changed = [key for key, value in _SETTINGS.items() if before[key] != value]
    for key in changed:
        spark.conf.set(key, _SETTINGS[key])
    try:
        yield
    finally:
        for key in changed:
            spark.conf.set(key, before[key])
