"""How many rows a command wrote, where Spark counted them anyway."""

from __future__ import annotations

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame


def rows_written(frame: DataFrame) -> int | None:
    """The rows that the command behind `frame` wrote to files, or None where it is not known.

    Reads a counter of the command's own plan; runs nothing. Only a session in this process shows
    its plans.
    """
    plan = getattr(frame, "_jdf", None)
    if plan is None:
        return None
    try:
        command = plan.queryExecution().executedPlan().commandPhysicalPlan()
        counter = command.metrics().get("numOutputRows")
        return int(counter.get().value()) if counter.isDefined() else None
    except Py4JError:
        return None  # not a command, or one that writes no files
