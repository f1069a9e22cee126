"""Values bound to a statement, as Spark takes them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

_BIGINT = 2**63


def bind(sql: str, values: Sequence[Any]) -> tuple[str, list[Any]]:
    """The statement with a marker for each `%s`, and the values that go to the markers.

    Spark gets the values beside the SQL, so no text is ever read as SQL and every value arrives
    exactly. Dates and times are written into the SQL as literals, because on their way as values
    the driver's time zone would shift them.
    """
    marks = ["?" if not isinstance(value, dt.date) else _literal(value) for value in values]
    passed = [_exact(value) for value in values if not isinstance(value, dt.date)]
    return sql % tuple(marks), passed


def _literal(value: dt.date) -> str:
    if isinstance(value, dt.datetime):
        return f"timestamp'{value.isoformat(' ')}'"
    return f"date'{value.isoformat()}'"


def _exact(value: Any) -> Any:
    if isinstance(value, int) and not -_BIGINT <= value < _BIGINT:
        return Decimal(value)
    if value is None or isinstance(value, (bool, int, float, Decimal, str, bytes)):
        return value
    return str(value)
