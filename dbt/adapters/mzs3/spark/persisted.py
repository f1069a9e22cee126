"""A DataFrame that is computed once, however often it is used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@contextmanager
def persisted(frame: DataFrame) -> Iterator[DataFrame]:
    """Spark holds what it computes of the frame until the end, whatever happens."""
    held = frame.persist()
    try:
        yield held
    finally:
        held.unpersist()
