"""Names of columns and fields, compared as Spark does.

Spark compares in two ways: by Java's `equalsIgnoreCase` to look a name up, as in each query of a
view, and by `toLowerCase` to create a table.
"""

from __future__ import annotations

from collections.abc import Sequence

ONE_NAME = "one name where spark.sql.caseSensitive is off, as it is by default"
"""What is wrong with two names that differ in case: readers may have the setting off."""


def namesakes_text(first: str, second: str, what: str = "columns") -> str:
    """Two names that Spark takes for one, in a message, with the reason."""
    if first == second:
        return f"two {what} named {first}"
    return f"{what} {first} and {second}, which are {ONE_NAME}"


def folded(name: str) -> str:
    """The name, folded so that names are equal where a lookup of Spark's takes them for one.

    Letter by letter, in upper case and then in lower case, as far as that is one letter again: so
    Turkish i without a dot is i, long s is s and final sigma is sigma, but sharp s is not ss.
    """
    return "".join(map(_folded_letter, name))


def _folded_letter(letter: str) -> str:
    upper = letter.upper()
    # The lower case of I with a dot is two characters; Java takes the first.
    return (upper if len(upper) == 1 else letter).lower()[0]


def namesakes(names: Sequence[str]) -> list[tuple[int, int]]:
    """The indexes of each pair of names that Spark takes for one, the first occurrence first."""
    first_seen: dict[str, int] = {}
    pairs = []
    for index, name in enumerate(names):
        keys = (folded(name), name.lower())
        first = min(first_seen.setdefault(key, index) for key in keys)
        if first < index:
            pairs.append((first, index))
    return pairs
