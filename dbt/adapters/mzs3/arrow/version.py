"""Checks the version of pyarrow in workers, where no installer checks it."""

from __future__ import annotations

import pyarrow as pa

from dbt.adapters.mzs3.errors import ExecutorError

OLDEST = 24
"""The oldest pyarrow that reads all values right: earlier versions read 96-bit timestamps of far
years wrongly, and lose the types of keys and values of maps in Parquet."""


def require_version() -> None:
    """Raises ExecutorError if pyarrow is too old. Each task calls this first."""
    if int(pa.__version__.split(".")[0]) < OLDEST:
        raise ExecutorError(
            f"the Python of Spark's workers has pyarrow {pa.__version__}, with which some values "
            f"would be wrong: install pyarrow {OLDEST} or later there"
        )
