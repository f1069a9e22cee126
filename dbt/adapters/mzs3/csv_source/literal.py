"""Settings under which SQL means what it says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Names of columns come out of objects: SQL must hold them as they are.
_SETTINGS = {
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
}


@contextmanager
def literal_sql(spark: SparkSession) -> Iterator[None]:
    """Nothing in a name or a literal is replaced while this lasts."""
    before = {key: spark.conf.get(key) for key in _SETTINGS}
    changed = [key for key, value in _SETTINGS.items() if before[key] != value]
    for key in changed:
        spark.conf.set(key, _SETTINGS[key])
    try:
        yield
    finally:
        for key in changed:
            spark.conf.set(key, before[key])
