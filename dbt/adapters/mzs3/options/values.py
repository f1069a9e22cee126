"""Reads and checks the values of a configuration; reports every problem, not only the first."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import Any, TypeVar

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.text import SIZE_UNITS

T = TypeVar("T")
E = TypeVar("E", bound=Enum)

# Keys in a Python model's config that dbt adds, and the key that says how to run the model.
IGNORED = frozenset(
    {
        "config_keys_used",
        "config_keys_defaults",
        "meta_keys_used",
        "meta_keys_defaults",
        "submission_method",
    }
)

UNITS = {unit: 1 << 10 * power for power, unit in enumerate(SIZE_UNITS[:5])}

_SIZE = re.compile(r"\s*(\d+)\s*([A-Za-z]*)\s*")


class Problems:
    """Gathers what is wrong with the configuration of one model or operation."""

    def __init__(self, subject: str, known: Iterable[str] = ()) -> None:
        self._subject = subject
        self.found = list(known)

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Gathers the problems of a ConfigError that the block raises, instead of raising it."""
        try:
            yield
        except ConfigError as exc:
            self.found += exc.problems

    def raise_if_any(self) -> None:
        """Raises ConfigError with all problems, if there are any."""
        if self.found:
            raise ConfigError(self._subject, self.found)


def text(value: Any) -> str:
    """The value, which must be a text already."""
    if not isinstance(value, str):
        hint = "" if isinstance(value, (list, Mapping)) else "; put it in quotes"
        raise ValueError(f"must be a text, not {value!r}{hint}")
    return value


def flag(value: Any) -> bool:
    """The value, which must be a boolean."""
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, not {value!r}")
    return value


def names(value: Any) -> tuple[str, ...]:
    """Column names, given as a list or as one name."""
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise ValueError(f"must be a column's name, or a list of names, not {value!r}")
    return tuple(listed)


def names_or_all(value: Any) -> tuple[str, ...]:
    """Column names, or `*` for all."""
    try:
        return names(value)
    except ValueError:
        raise ValueError(f"must be '*' or a list of column names, not {value!r}") from None


def whole_number(low: int, high: int | None = None) -> Callable[[Any], int]:
    """A converter that accepts whole numbers from `low` to `high`, or from `low` on."""
    allowed = f", {low} or more" if high is None else f" from {low} to {high}"

    def convert(value: Any) -> int:
        number = None if isinstance(value, bool) or not isinstance(value, int) else int(value)
        if number is None or number < low or (high is not None and number > high):
            raise ValueError(f"must be a whole number{allowed}, not {value!r}")
        return number

    return convert


def member(of: type[E]) -> Callable[[Any], E]:
    """A converter that accepts the values of an Enum's members, and returns the member."""
    one_of = choice(tuple(str(one.value) for one in of))
    return lambda value: of(one_of(value))


def choice(supported: tuple[str, ...]) -> Callable[[Any], str]:
    """A converter that accepts the supported values only."""

    def convert(value: Any) -> str:
        if value not in supported:
            raise ValueError(f"must be one of {', '.join(supported)}, not {value!r}")
        return str(value)

    return convert


def file_name(value: Any) -> str:
    """A file name without folders; it must not begin with an underscore, as the manifest does."""
    name = text(value)
    if not name or "/" in name or name in (".", ".."):
        raise ValueError(
            f"must be a file name without a slash, such as 'orders.csv', not {name!r}"
        )
    if name.startswith("_"):
        raise ValueError(f"must not begin with an underscore, as the manifest does: {name!r}")
    if has_control_character(name):
        raise ValueError(f"has a control character in it, such as a newline: {name!r}")
    return name


def has_control_character(text: str) -> bool:
    """Whether the text has a control character, with which readers don't find an object."""
    return any(unicodedata.category(character) == "Cc" for character in text)


def parse_size(value: object) -> int:
    """The size in bytes; units are case-sensitive and multiply by 1024."""
    if isinstance(value, int) and not isinstance(value, bool):
        size = value
    elif isinstance(value, str) and (match := _SIZE.fullmatch(value)):
        number, unit = match.groups()
        if unit and unit not in UNITS:
            raise ValueError(
                f"has the unknown unit {unit!r}; units are {', '.join(UNITS)} (case-sensitive)"
            )
        size = int(number) * UNITS[unit or "B"]
    else:
        raise ValueError(f"must be a number of bytes or a text such as '256MB', not {value!r}")
    if size < 1:
        raise ValueError(f"must be at least 1 byte, not {value!r}")
    return size


def format_size(size: int) -> str:
    """The size in the largest unit that divides it, such as `8MB`; `parse_size` reads it back."""
    unit = next(unit for unit, factor in reversed(UNITS.items()) if size % factor == 0)
    return f"{size // UNITS[unit]}{unit}"
