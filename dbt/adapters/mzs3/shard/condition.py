"""A condition on a shard's columns, as SQL: what can be told of it without Spark.

Spark parses and evaluates it. Here is known which columns it may name, and which of its parts are
so simple that statistics can answer them. Whatever is not surely understood is left to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.mzs3.names import folded
from dbt.adapters.mzs3.options.values import text
from dbt.adapters.mzs3.shard.types import Column

_TOKEN = re.compile(
    r"""\d+(?:\.\d+)?(?![\w.])      # a number, but for 1e5 and 5L
      | [^\W\d]\w*                  # a word
      | '[^']*' | `(?:[^`]|``)+`    # a text, a quoted name
      | <=>|<=|>=|<>|!=|==|\S       # a sign, or a part of whatever it is""",
    re.VERBOSE,
)
# With these, tokens may be other ones than Spark's, by its settings, or comments.
_NOT_READ = re.compile(r"""[\\"]|--|/\*""")
# What no query is in, to Spark as it is set by itself: texts, quoted names, comments.
_NO_QUERY = re.compile(
    r"""(?<!\w)[rR](?:'[^']*'|"[^"]*") | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | `(?:[^`]|``)+`
      | (--[^\n]* | /\*.*?\*/)""",
    re.VERBOSE | re.DOTALL,
)
# Any of the words may be a column too: then it is compared, or stands alone.
_SUBQUERY = re.compile(
    r"\(\s*(?:select|from|with|values|table)\b"
    r"(?!\s*(?:[<>=),]|!=|(?:is|in|between|and|or)\b))",
    re.IGNORECASE,
)

_COLUMN = r"(?P<column>[^\W\d]\w*|`(?:[^`]|``)+`)"
_LITERAL = r"(?:(?:- )?\d+(?:\.\d+)?|(?:(?:date|timestamp(?:_ltz|_ntz)?) )?'[^']*')"
# Of tokens with a blank between any two.
_SIMPLE = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_COLUMN} (?P<sign>==?|<=?|>=?) (?P<value>{_LITERAL})",
        rf"(?P<value>{_LITERAL}) (?P<turned>==?|<=?|>=?) {_COLUMN}",
        rf"{_COLUMN} between (?P<low>{_LITERAL}) and (?P<high>{_LITERAL})",
        rf"{_COLUMN} in \( (?P<values>{_LITERAL}(?: , {_LITERAL})*) \)",
        rf"{_COLUMN} is (?P<null>not null|null)",
    )
]
_TURNED = str.maketrans("<>", "><")
# Unquoted, these may be something else than the column of that name.
_NO_COLUMN = frozenset(
    {
        *("true", "false", "null", "user", "current_user", "session_user", "current_date"),
        *("current_time", "current_timestamp", "localtimestamp", "not", "exists", "interval"),
    }
)

Range = tuple[str | None, str | None]


@dataclass(frozen=True)
class Conjunct:
    """A part without which the condition is not true: the column, under the name that it is given
    there, is in one of the ranges, or NULL if that `is_null` allows.

    A range has literals of SQL, both included, None for no limit. So the part, whose own SQL is
    `sql`, may be true for less.
    """

    sql: str
    column: str
    ranges: tuple[Range, ...] = ()
    is_null: bool = False


def condition(value: Any) -> str:
    """The text of a condition, as far as it can be checked without Spark; else ValueError."""
    sql = text(value)
    if not sql.strip():
        raise ValueError("must be a condition on the shard's columns, not an empty text")
    if _SUBQUERY.search(_NO_QUERY.sub(lambda found: " " if found[1] else "''", sql)):
        raise ValueError(
            "must be a condition on the shard's columns alone, without a query inside (a column "
            f"of such a name goes in backticks): {sql!r}"
        )
    return sql


def columns_in(sql: str, columns: Sequence[Column]) -> tuple[Column, ...]:
    """The columns that a condition names, and maybe some more whose names are words of it."""
    words = folded(sql)

    def is_in(column: Column) -> bool:
        name = re.escape(folded(column.name).replace("`", "``"))
        return re.search(rf"(?<!\w){name}(?!\w)", words) is not None

    return tuple(filter(is_in, columns))


def conjuncts(sql: str) -> list[Conjunct]:
    """Those parts of a condition that are simple, of all that are joined by `AND`."""
    return [] if _NOT_READ.search(sql) else [*_simple_parts(_TOKEN.findall(sql))]


def _simple_parts(tokens: Sequence[str]) -> Iterator[Conjunct]:
    if _is_in_brackets(tokens):
        yield from _simple_parts(tokens[1:-1])
        return
    parts = _split(tokens)
    if len(parts) > 1:
        for part in parts:
            yield from _simple_parts(part)
        return
    for pattern in _SIMPLE:
        found = pattern.fullmatch(" ".join(tokens))
        if found and found["column"].lower() not in _NO_COLUMN:
            yield _conjunct(found)


def _is_in_brackets(tokens: Sequence[str]) -> bool:
    """Whether the first bracket ends with the last token."""
    depth = 0
    for place, each in enumerate(tokens):
        depth += (each == "(") - (each == ")")
        if depth <= 0:
            return each == ")" and place == len(tokens) - 1
    return False


def _split(tokens: Sequence[str]) -> list[list[str]]:
    """The parts between each `AND` that joins conditions; none where something else does.

    That `AND` binds more loosely than all but `OR`. What is in brackets, or of a `CASE`, is a
    part of its own.
    """
    parts: list[list[str]] = [[]]
    depth, is_between = 0, False
    for token in tokens:
        depth += (token in ("(", "[")) - (token in (")", "]"))
        word = "" if depth else token.lower()
        if word in ("or", "case"):
            return []
        if word == "and" and not is_between:
            parts.append([])
            continue
        is_between = word == "between" or (is_between and word != "and")
        parts[-1].append(token)
    return parts


def _conjunct(found: re.Match[str]) -> Conjunct:
    parts = found.groupdict()
    name = parts["column"]
    column = name[1:-1].replace("``", "`") if name.startswith("`") else name
    if null := parts.get("null"):
        is_null = null.lower() == "null"
        return Conjunct(found[0], column, () if is_null else ((None, None),), is_null)
    if values := parts.get("values"):
        return Conjunct(
            found[0], column, tuple((each, each) for each in re.findall(_LITERAL, values, re.I))
        )
    if low := parts.get("low"):
        return Conjunct(found[0], column, ((low, parts["high"]),))
    sign = parts.get("sign") or parts["turned"].translate(_TURNED)
    value = parts["value"]
    low, high = None if "<" in sign else value, None if ">" in sign else value
    return Conjunct(found[0], column, ((low, high),))
