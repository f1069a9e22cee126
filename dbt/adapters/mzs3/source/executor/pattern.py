"""Glob patterns of keys, each compiled once to one regular expression."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile

MAX_ALTERNATIVES = 1024


class Pattern:
    """A glob over the part of a key below the source's location; `/` separates folders.

    `?` is one character and `*` any run of them, both without `/`; `**` as a whole folder name
    is any number of folders, and at the end everything below; `[ab]`, `[a-z]` and `[!ab]` are
    one character of a set, never `/`; `{a,b}` is either, nested if need be. A special
    character stands for itself in brackets: `[*]`. Upper and lower case differ.

    Raises ValueError, whose text says what is wrong and at which character.
    """

    def __init__(self, pattern: str) -> None:
        if not pattern:
            raise ValueError("is empty; leave it out to take every object")
        if pattern.startswith("/"):
            raise ValueError("starts with /; it is matched against the key below the location")
        tokens = list(_tokens(pattern))
        plain = _alternatives(iter(tokens))
        side_by_side = zip(*plain, strict=False)
        shared = takewhile(lambda same: len(set(same)) == 1 and len(same[0]) == 1, side_by_side)
        self.literal_prefix = "".join(same[0] for same in shared)
        self._regex = re.compile("|".join(_regex(p) for p in plain), re.DOTALL)

    @property
    def expression(self) -> str:
        """A regular expression for whole keys, in a syntax that Java reads the same."""
        return f"(?s)(?:{self._regex.pattern})"

    def matches(self, relative_key: str) -> bool:
        """Whether the pattern matches a key, of which the part below the location is given."""
        return self._regex.fullmatch(relative_key) is not None


# A token is one literal character; a longer one is one of these, or a regular expression.
_STARS = "**"
_OPEN, _COMMA, _CLOSE = "{{", "{,}", "}}"
_RUN = "[^/]*"
_FOLDERS = "(?:.*/)?"
_REST = ".*"
_WILDCARDS = {"?": "[^/]", "**": _STARS}

# A run of stars, a set, or one character. A ] that comes first in a set is a member, as in every
# glob.
_PIECE = re.compile(r"\*+|\[(?P<negation>[!^]|(?![!^]))(?P<members>.[^]]*)\]|.", re.DOTALL)


def _tokens(pattern: str) -> Iterator[str]:
    """The pattern in tokens. Raises ValueError if a bracket or brace is not closed."""
    opened: list[int] = []
    for piece in _PIECE.finditer(pattern):
        char, place = piece[0], piece.start() + 1
        if piece["members"]:
            yield _char_set(piece["members"], piece["negation"], place)
        elif char[0] in "*?":
            yield _WILDCARDS.get(char, _RUN)
        elif char == "{":
            opened.append(place)
            yield _OPEN
        elif char == "," and opened:
            yield _COMMA
        elif char == "}" and opened:
            opened.pop()
            yield _CLOSE
        elif char == "[":
            raise ValueError(f"has a [ at character {place} that is not closed")
        elif char in "]}":
            raise ValueError(
                f"has a {char} at character {place} without its opening bracket; "
                f"write [{char}] for the character itself"
            )
        elif char == "\\":
            raise ValueError(
                f"has a backslash at character {place}, which escapes nothing here; write a "
                "special character in brackets, such as [*]"
            )
        else:
            yield char
    if opened:
        raise ValueError(f"has a {{ at character {opened[-1]} that is not closed")


def _char_set(members: str, negation: str, place: int) -> str:
    if len(members) == 1 and not negation and members != "/":
        return members
    inside = ""
    for low, high, single in re.findall("(.)-(.)|(.)", members, re.DOTALL):
        if low > high:
            raise ValueError(
                f"has the range {low}-{high} in the set at character {place}, which runs backwards"
            )
        inside += re.escape(single) if single else f"{re.escape(low)}-{re.escape(high)}"
    return f"[^/{inside}]" if negation else f"(?!/)[{inside}]"


def _alternatives(tokens: Iterator[str]) -> list[list[str]]:
    """Expands braces: all patterns that the tokens, up to a closing brace, stand for."""
    done: list[list[str]] = []
    current: list[list[str]] = [[]]
    for token in tokens:
        if token == _CLOSE:
            break
        if token == _COMMA:
            done += current
            current = [[]]
        elif token == _OPEN:
            inner = _alternatives(tokens)
            if len(current) * len(inner) > MAX_ALTERNATIVES:
                raise ValueError(f"stands for more than {MAX_ALTERNATIVES} patterns")
            current = [head + tail for head in current for tail in inner]
        else:
            for each in current:
                each.append(token)
    return done + current


def _regex(tokens: list[str]) -> str:
    parts: list[str] = []
    neighbours = zip(["/", *tokens], tokens, [*tokens[1:], ""], strict=False)
    for before, token, following in neighbours:
        if token == _STARS and before == "/" and following in ("/", ""):
            parts.append(_FOLDERS if following else _REST)
        elif token == _STARS:
            # Within a folder's name, several stars mean the same as one.
            parts.append(_RUN)
        elif before != _STARS or parts[-1] != _FOLDERS:  # else _FOLDERS has this slash
            parts.append(token if len(token) > 1 else re.escape(token))
    return "".join(parts)
