"""Checks the version of pyarrow in workers, where no installer does."""

from __future__ import annotations

import pyarrow as pa

from dbt.adapters.mzs3.errors import ExecutorError

OLDEST = 24
"""The oldest version of pyarrow whose values are right: before it, timestamps of 96 bits of far
years are not, and maps in Parquet lose the types of their keys and values."""


def require_version() -> None:
    """Each task begins with this; raises ExecutorError."""
    if int(pa.__version__.split(".")[0]) < OLDEST:
        raise ExecutorError(
            f"the Python of Spark's workers has pyarrow {pa.__version__}, with which some values "
            f"would be wrong: install pyarrow {OLDEST} or later there"
        )
