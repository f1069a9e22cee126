"""What several keys of a source's `external` have for their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def whole_number(
    given: Mapping[str, Any], key: str, least: int, problems: list[str]
) -> int | None:
    """The number of that key, None if there is none; what is wrong goes to `problems`."""
    value = given.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        problems.append(f"external.{key} must be a whole number, {least} or more, not {value!r}")
        return None
    return value
