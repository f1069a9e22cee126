"""Stopping what Spark runs once the user has cancelled."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POLL_S = 0.2


@contextmanager
def interruptible(spark: SparkSession, cancelled: threading.Event | None) -> Iterator[None]:
    """Once `cancelled` is set, no job of this session comes to its end while the block lasts.

    To interrupt the session once is not enough: it stops what runs at that moment, and a query
    that is still being planned would run afterwards.
    """
    if cancelled is None:
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=_interrupt, args=(spark, cancelled, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _interrupt(spark: SparkSession, cancelled: threading.Event, ended: threading.Event) -> None:
    while not ended.wait(_POLL_S):
        if cancelled.is_set():
            spark.interruptAll()
