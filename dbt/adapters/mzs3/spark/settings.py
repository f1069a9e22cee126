"""Settings of a session for as long as they are needed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession


@contextlib.contextmanager
def settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """While it lasts, the session has these settings, whatever the user has set.

    Those that this Spark doesn't know, or that can't be changed, are left out.
    """
    conf = spark.conf
    values = {name: value for name, value in values.items() if conf.isModifiable(name)}
    theirs = {name: conf.get(name, None) for name in values}
    try:
        for name, value in values.items():
            conf.set(name, value)
        yield
    finally:
        # A session that takes no setting has ended, of which the work in it has told.
        with contextlib.suppress(PySparkException, Py4JError, OSError):
            for name, before in theirs.items():
                if before is None:
                    conf.unset(name)
                else:
                    conf.set(name, before)
