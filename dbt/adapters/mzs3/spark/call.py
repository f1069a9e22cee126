"""A call of one of our functions as a value, so that another process than dbt's can make it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pyspark.sql import SparkSession

T = TypeVar("T")

Tell = Callable[[Any], None]
"""Called with what happens, of a type that the function and its caller agree on."""


@dataclass(frozen=True)
class Call(Generic[T]):
    """A function of ours with its arguments, but for the session, which comes first.

    Of what is there while it runs, it gets what `takes` names: `cancelled`, an event, and `tell`.
    All of it can be pickled, its result too, and the function's module does not import dbt.
    """

    function: Callable[..., T]
    arguments: Mapping[str, Any] = field(repr=False)  # secrets may be among them
    takes: tuple[str, ...] = ()

    def run(self, spark: SparkSession, cancelled: threading.Event, tell: Tell) -> T:
        """What the function returns, called in this process."""
        offered = {"cancelled": cancelled, "tell": tell}
        taken = {name: offered[name] for name in self.takes}
        return self.function(spark, **self.arguments, **taken)
