"""A condition on a shard's columns in SQL: which columns it names, and its simple parts.

Spark parses and evaluates the condition. This module only finds simple parts, for which the
statistics of files are enough to skip row groups, and ignores anything that may be ambiguous.
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
      | <=>|<=|>=|<>|!=|==|\S       # an operator, or any other character""",
    re.VERBOSE,
)
# Characters that Spark may read as other tokens: by its settings, or as comments.
_NOT_READ = re.compile(r"""[\\"]|--|/\*""")
# Texts, quoted names and comments, by Spark's default settings: none contains a subquery.
_NO_QUERY = re.compile(
    r"""(?<!\w)[rR](?:'[^']*'|"[^"]*") | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | `(?:[^`]|``)+`
      | (--[^\n]* | /\*.*?\*/)""",
    re.VERBOSE | re.DOTALL,
)
# Not if an operator or a closing bracket follows: then the word is the name of a column.
_SUBQUERY = re.compile(
    r"\(\s*(?:select|from|with|values|table)\b"
    r"(?!\s*(?:[<>=),]|!=|(?:is|in|between|and|or)\b))",
    re.IGNORECASE,
)

_COLUMN = r"(?P<column>[^\W\d]\w*|`(?:[^`]|``)+`)"
_LITERAL = r"(?:(?:- )?\d+(?:\.\d+)?|(?:(?:date|timestamp(?:_ltz|_ntz)?) )?'[^']*')"
# Patterns of simple parts, for tokens that are joined by blanks.
_SIMPLE = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_COLUMN} (?P<sign>==?|<=?|>=?) (?P<value>{_LITERAL})",
        rf"(?P<value>{_LITERAL}) (?P<mirrored>==?|<=?|>=?) {_COLUMN}",
        rf"{_COLUMN} between (?P<low>{_LITERAL}) and (?P<high>{_LITERAL})",
        rf"{_COLUMN} in \( (?P<values>{_LITERAL}(?: , {_LITERAL})*) \)",
        rf"{_COLUMN} is (?P<null>not null|null)",
    )
]
_MIRRORED = str.maketrans("<>", "><")
# Without quotes, these words are not columns for Spark, or are ambiguous.
_NO_COLUMN = frozenset(
    {
        *("true", "false", "null", "user", "current_user", "session_user", "current_date"),
        *("current_time", "current_timestamp", "localtimestamp", "not", "exists", "interval"),
    }
)

Range = tuple[str | None, str | None]


@dataclass(frozen=True)
class Conjunct:
    """A simple part of a condition: the column is in one of the ranges, or NULL if `is_null`.

    `sql` is the part itself, and `column` the name as written there. A range is two SQL literals,
    both included, None for no limit. It may include more values than the part allows.
    """

    sql: str
    column: str
    ranges: tuple[Range, ...] = ()
    is_null: bool = False


def condition(value: Any) -> str:
    """Checks a condition as far as possible without Spark. Raises ValueError."""
    sql = text(value)
    if not sql.strip():
        raise ValueError("must be a condition on the shard's columns, not an empty text")
    if _SUBQUERY.search(_NO_QUERY.sub(lambda matched: " " if matched[1] else "''", sql)):
        raise ValueError(
            "must be a condition on the shard's columns alone, without a query inside (a column "
            f"of such a name goes in backticks): {sql!r}"
        )
    return sql


def columns_in(sql: str, columns: Sequence[Column]) -> tuple[Column, ...]:
    """The columns that a condition names, and others whose names merely occur in its text."""
    words = folded(sql)

    def is_in(column: Column) -> bool:
        name = re.escape(folded(column.name).replace("`", "``"))
        return re.search(rf"(?<!\w){name}(?!\w)", words) is not None

    return tuple(filter(is_in, columns))


def conjuncts(sql: str) -> list[Conjunct]:
    """The simple ones of the parts that `AND` joins."""
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
        matched = pattern.fullmatch(" ".join(tokens))
        if matched and matched["column"].lower() not in _NO_COLUMN:
            yield _conjunct(matched)


def _is_in_brackets(tokens: Sequence[str]) -> bool:
    """Whether the tokens are in one pair of brackets, from the first token to the last."""
    depth = 0
    for place, each in enumerate(tokens):
        depth += (each == "(") - (each == ")")
        if depth <= 0:
            return each == ")" and place == len(tokens) - 1
    return False


def _split(tokens: Sequence[str]) -> list[list[str]]:
    """The parts joined by `AND` outside of brackets; none if there is an `OR` or a `CASE`."""
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


def _conjunct(matched: re.Match[str]) -> Conjunct:
    parts = matched.groupdict()
    name = parts["column"]
    column = name[1:-1].replace("``", "`") if name.startswith("`") else name
    if null := parts.get("null"):
        is_null = null.lower() == "null"
        return Conjunct(matched[0], column, () if is_null else ((None, None),), is_null)
    if values := parts.get("values"):
        return Conjunct(
            matched[0], column, tuple((each, each) for each in re.findall(_LITERAL, values, re.I))
        )
    if low := parts.get("low"):
        return Conjunct(matched[0], column, ((low, parts["high"]),))
    sign = parts.get("sign") or parts["mirrored"].translate(_MIRRORED)
    value = parts["value"]
    low, high = None if "<" in sign else value, None if ">" in sign else value
    return Conjunct(matched[0], column, ((low, high),))
