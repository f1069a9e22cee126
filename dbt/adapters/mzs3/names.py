"""Compares names of columns and fields as Spark does.

Spark compares names in two ways: with Java's `equalsIgnoreCase` to look up a name, as in each
query of a view, and with `toLowerCase` to create a table.
"""

from __future__ import annotations

from collections.abc import Sequence

ONE_NAME = "one name where spark.sql.caseSensitive is off, as it is by default"
"""The problem of two names that differ only in case, for readers that have the setting off."""


def namesakes_text(first: str, second: str, what: str = "columns") -> str:
    """The text of a message about two names that Spark treats as equal, with the reason."""
    if first == second:
        return f"two {what} named {first}"
    return f"{what} {first} and {second}, which are {ONE_NAME}"


def folded(name: str) -> str:
    """Folds a name so that names which are equal for Spark's lookups have equal results.

    Converts each letter to upper and then to lower case, if the result is one letter: Turkish
    dotless i becomes i, long s becomes s, final sigma becomes sigma, but sharp s stays.
    """
    return "".join(map(_folded_letter, name))


def _folded_letter(letter: str) -> str:
    upper = letter.upper()
    # The lower case of I with a dot is two characters; Java takes the first.
    return (upper if len(upper) == 1 else letter).lower()[0]


def namesakes(names: Sequence[str]) -> list[tuple[int, int]]:
    """The indexes of each pair of names that Spark treats as equal: the first occurrence first."""
    first_seen: dict[str, int] = {}
    pairs = []
    for index, name in enumerate(names):
        keys = (folded(name), name.lower())
        first = min(first_seen.setdefault(key, index) for key in keys)
        if first < index:
            pairs.append((first, index))
    return pairs
