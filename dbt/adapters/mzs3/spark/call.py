"""Calls of our functions as values, which another process than dbt's can make."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pyspark.sql import SparkSession

T = TypeVar("T")

Tell = Callable[[Any], None]
"""Takes an event, of a type on which the function and its caller agree."""


@dataclass(frozen=True)
class Call(Generic[T]):
    """A function of ours and its arguments; when it runs, the session comes before them, and after
    them what `takes` names: `cancelled`, a threading.Event, and `tell`.

    The call and its result can be pickled, and the function's module does not import dbt.
    """

    function: Callable[..., T]
    arguments: Mapping[str, Any] = field(repr=False)  # secrets may be among them
    takes: tuple[str, ...] = ()

    def run(self, spark: SparkSession, cancelled: threading.Event, tell: Tell) -> T:
        """Calls the function in this process."""
        offered = {"cancelled": cancelled, "tell": tell}
        taken = {name: offered[name] for name in self.takes}
        return self.function(spark, **self.arguments, **taken)
