"""How strictly a source's objects are read: the keys of `external` that say so."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar

from dbt.adapters.mzs3.csv_source.executor.encoding import (
    EXACT,
    FAIL,
    HEADER_MATCHES,
    ON_BAD_ROW,
    ON_HEADER_MISMATCH,
    REJECT,
    UTF_8,
    Reading,
    canonical_encoding,
)

OneOf = TypeVar("OneOf", bound=Enum)


def parse_reading(given: Mapping[str, Any], problems: list[str], *, has_header: bool) -> Reading:
    """What `given` says; appends to `problems` what is wrong with it."""
    reading = Reading(
        header_match=_one_of(given, "header_match", HEADER_MATCHES, problems),
        on_header_mismatch=_one_of(given, "on_header_mismatch", ON_HEADER_MISMATCH, problems),
        on_bad_row=_one_of(given, "on_bad_row", ON_BAD_ROW, problems),
        max_rejects=_max_rejects(given, problems),
        encoding=_encoding(given, problems),
    )
    if not has_header:
        problems += [
            f"external.{key}: {value} needs objects with a header, but external.header is false"
            for key, value, default in (
                ("header_match", reading.header_match, EXACT),
                ("on_header_mismatch", reading.on_header_mismatch, FAIL),
            )
            if value != default
        ]
    return reading


def _one_of(
    given: Mapping[str, Any], key: str, values: tuple[str, ...], problems: list[str]
) -> str:
    value = given.get(key, values[0])
    if value in values:
        return str(value)
    problems.append(f"external.{key} must be one of {', '.join(values)}, not {value!r}")
    return values[0]


def _max_rejects(given: Mapping[str, Any], problems: list[str]) -> int | None:
    limit = whole_number(given, "max_rejects", 0, problems)
    if limit is not None and given.get("on_bad_row", FAIL) == FAIL:
        problems.append(f"external.max_rejects needs `on_bad_row: {REJECT}` beside it")
    return limit


def _encoding(given: Mapping[str, Any], problems: list[str]) -> str:
    try:
        return canonical_encoding(str(given.get("encoding", UTF_8)))
    except ValueError as exc:
        problems.append(f"external.encoding {exc}")
        return UTF_8


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
