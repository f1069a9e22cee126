"""Reads and checks the values of a configuration; notes every problem instead of the first."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import Field, fields, is_dataclass
from enum import Enum
from typing import Any, Protocol, TypeVar

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.text import did_you_mean

T = TypeVar("T")
E = TypeVar("E", bound=Enum)

# What dbt notes of a Python model in its config, and how one is to be run.
IGNORED = frozenset(
    {
        "config_keys_used",
        "config_keys_defaults",
        "meta_keys_used",
        "meta_keys_defaults",
        "submission_method",
    }
)

UNITS = {"B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}

_SIZE = re.compile(r"\s*(\d+)\s*([A-Za-z]*)\s*")

SIZES = ("max_file_size", "part_size", "max_multi_part_bytes_in_memory")
"""The options of which `upload_problems` tells what is wrong."""
# What S3 takes as an object, as parts of an upload, and as tags (S3, Categorizing your objects
# using tags).
MAX_OBJECT_SIZE = 5 << 40
MAX_UPLOAD_PARTS = 10_000
MIN_PART_SIZE, MAX_PART_SIZE = 5 << 20, 5 << 30
MAX_TAGS = 10
MAX_TAG_NAME, MAX_TAG_VALUE = 128, 256
_OF_AWS = "aws:"


class Sizes(Protocol):
    """Options of whoever uploads files; sizes in bytes."""

    @property
    def max_file_size(self) -> int:
        """How large a file may grow."""

    @property
    def part_size(self) -> int:
        """The size of one part of an upload."""

    @property
    def max_multi_part_bytes_in_memory(self) -> int:
        """How much one worker buffers in parts."""


class Problems:
    """Gathers what is wrong with the configuration of one model or operation."""

    def __init__(self, subject: str, known: Iterable[str] = ()) -> None:
        self._subject = subject
        self.found = list(known)

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Notes the problems of a ConfigError that the block raises, instead of raising it."""
        try:
            yield
        except ConfigError as exc:
            self.found += exc.problems

    def raise_if_any(self) -> None:
        """Raises ConfigError with all problems, if there are any."""
        if self.found:
            raise ConfigError(self._subject, self.found)


class ConfigReader:
    """Reads a mapping key by key; what is wrong with a value is appended to `problems`.

    Problems name a key with `within` before it, such as `external.`.
    """

    def __init__(self, given: Mapping[str, Any], problems: list[str], within: str = "") -> None:
        self.given = given
        self.problems = problems
        self._within = within

    def __call__(self, key: str, convert: Callable[[Any], T]) -> T | None:
        """The converted value, or None where the key is absent, null or wrong."""
        value = self.given.get(key)
        if value is None:
            return None
        try:
            return convert(value)
        except ValueError as exc:
            self.note(f"{key} {exc}")
            return None

    def all(self, converters: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
        """The converted values of all keys that are given and not wrong."""
        values = ((key, self(key, convert)) for key, convert in converters.items())
        return {key: value for key, value in values if value is not None}

    def note(self, problem: str) -> None:
        """Add a problem, which begins with a key."""
        self.problems.append(f"{self._within}{problem}")


def option_fields(options: Any) -> Iterator[Field[Any]]:
    """The fields of a dataclass of options, in order; a nested dataclass stands for its fields."""
    for one in fields(options):
        if is_dataclass(one.default_factory):
            yield from option_fields(one.default_factory)
        else:
            yield one


def unknown_keys(given: Iterable[str], known: Sequence[str], materialization: str) -> list[str]:
    """A problem for every key that the materialization does not have, with what may be meant."""
    return [
        f"{key} is not an option of {materialization}; "
        + (did_you_mean(key, known).rstrip() or f"known are {', '.join(known)}")
        for key in given
        if key not in known
    ]


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
    """A converter that accepts whole numbers from `low` on, up to `high` if that is given."""
    allowed = f", {low} or more" if high is None else f" from {low} to {high}"

    def convert(value: Any) -> int:
        number = None if isinstance(value, bool) or not isinstance(value, int) else int(value)
        if number is None or number < low or (high is not None and number > high):
            raise ValueError(f"must be a whole number{allowed}, not {value!r}")
        return number

    return convert


def member(of: type[E]) -> Callable[[Any], E]:
    """A converter from the values of an Enum's members to the members."""
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
    """The name of an object directly below a location; not one that the manifest may have."""
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
    """Whether the text holds a character such as a newline, with which readers find no object."""
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


def upload_problems(sizes: Sizes, in_memory: int, *, has_part_size: bool = True) -> Iterator[str]:
    """What is wrong with the sizes of uploads, of which a worker holds so many parts at least.

    `has_part_size` says whether the user has such an option.
    """
    times = {2: "twice", 3: "three times"}[in_memory]
    part_size, shown = sizes.part_size, format_size(sizes.part_size)
    if part_size < MIN_PART_SIZE:
        yield f"part_size must be at least 5MB, which is the least that S3 takes, not {shown}"
    elif part_size > MAX_PART_SIZE:
        yield f"part_size can be 5GB at most, not {shown}"
    if sizes.max_file_size > MAX_OBJECT_SIZE:
        largest = format_size(sizes.max_file_size)
        yield f"max_file_size can be 5TB at most, which is what S3 takes, not {largest}"
    elif sizes.max_file_size > max(part_size, MIN_PART_SIZE) * MAX_UPLOAD_PARTS:
        yield (
            f"max_file_size {format_size(sizes.max_file_size)} needs more than "
            f"{MAX_UPLOAD_PARTS} upload parts of {shown}; lower it"
            + (", or raise part_size" if has_part_size else "")
        )
    if sizes.max_multi_part_bytes_in_memory < in_memory * part_size:
        yield (
            f"max_multi_part_bytes_in_memory must be at least {times} part_size, which is "
            f"{shown}; it is {format_size(sizes.max_multi_part_bytes_in_memory)}"
        )


def tag_problems(subject: str, tags: Mapping[str, str]) -> Iterator[str]:
    """What S3 would not take as an object's tags."""
    if len(tags) > MAX_TAGS:
        yield f"{subject} has {len(tags)} tags; S3 takes {MAX_TAGS} for an object"
    for name, value in tags.items():
        sound = all(map(_is_of_tags, name + value))
        if not (sound and 0 < _units(name) <= MAX_TAG_NAME and _units(value) <= MAX_TAG_VALUE):
            yield (
                f"{subject} {name!r}: {value!r} is no tag for S3: up to {MAX_TAG_NAME} "
                f"characters for the name, {MAX_TAG_VALUE} for the value, of letters, digits, "
                "spaces and + - = . _ : / @"
            )
        elif name.startswith(_OF_AWS):
            yield f"{subject} {name!r}: {value!r}: names that begin with {_OF_AWS} are AWS's own"


def _is_of_tags(character: str) -> bool:
    return character in "+-=._:/@" or unicodedata.category(character)[0] in "LNZ"


def _units(text: str) -> int:
    """How long S3 takes a text of a tag for: it counts in UTF-16."""
    return len(text.encode("utf-16-le")) // 2


def format_size(size: int) -> str:
    """The size in the largest unit that divides it, such as `8MB`; `parse_size` reads it back."""
    unit = next(unit for unit, factor in reversed(UNITS.items()) if size % factor == 0)
    return f"{size // UNITS[unit]}{unit}"
