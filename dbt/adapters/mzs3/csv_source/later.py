"""What the interface of a source has, and this version does not do yet: refused, never ignored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# The values that work, then those that are known and do not.
_MODES: dict[str, tuple[str, tuple[str, ...]]] = {
    "header_match": ("exact", ("reorder", "subset")),
    "on_header_mismatch": ("fail", ("skip_object",)),
    "on_bad_row": ("fail", ("reject",)),
}
_UTF_8 = frozenset({"utf-8", "utf8"})


def later_problems(given: Mapping[str, Any]) -> list[str]:
    """A problem for each value under `external` that this version cannot honour."""
    problems = [
        problem
        for key, (now, later) in _MODES.items()
        if (problem := _mode_problem(key, given.get(key, now), now, later))
    ]
    encoding = given.get("encoding", "UTF-8")
    if str(encoding).lower() not in _UTF_8:
        problems.append(
            f"external.encoding {encoding!r} is not supported by this version; UTF-8 is"
        )
    return problems


def _mode_problem(key: str, value: Any, now: str, later: tuple[str, ...]) -> str | None:
    if value == now:
        return None
    if value in later:
        return f"external.{key}: {value} is not supported by this version; {now} is"
    return f"external.{key} must be {now}, not {value!r}"
