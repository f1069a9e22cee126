"""What several keys of a source's `external` have for their values."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar

OneOf = TypeVar("OneOf", bound=Enum)


def whole_number(
    given: Mapping[str, Any], key: str, least: int, problems: list[str], default: int | None = None
) -> int | None:
    """The number of that key, or the default; what is wrong goes to `problems`.

    Where there is no default, NULL means that there is no number.
    """
    value = given.get(key, default)
    if value is None and default is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        problems.append(f"external.{key} must be a whole number, {least} or more, not {value!r}")
        return default
    return value


def one_of(given: Mapping[str, Any], key: str, default: OneOf, problems: list[str]) -> OneOf:
    """The member of the default's class that the key names; what is wrong goes to `problems`."""
    value = given.get(key, default.value)
    try:
        return type(default)(value)
    except ValueError:
        allowed = ", ".join(str(member.value) for member in type(default))
        problems.append(f"external.{key} must be one of {allowed}, not {value!r}")
        return default
