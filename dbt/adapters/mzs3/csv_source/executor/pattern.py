"""Which keys a source takes: a glob pattern, compiled once to one regular expression."""

from __future__ import annotations

import re

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
        self.pattern = pattern
        if not pattern:
            raise ValueError("is empty; leave it out to take every object")
        if pattern.startswith("/"):
            raise ValueError("starts with /; it is matched against the key below the location")
        plain = _expand(_tokens(pattern))
        self.literal_prefix = _common_prefix([_literal_prefix(p) for p in plain])
        self._regex = re.compile("|".join(_regex(p) for p in plain), re.DOTALL)

    @property
    def expression(self) -> str:
        """The pattern as a regular expression for the whole of a key; Java reads it the same."""
        return f"(?s)(?:{self._regex.pattern})"

    def matches(self, relative_key: str) -> bool:
        """Whether the pattern takes the whole of a key, given below the location."""
        return self._regex.fullmatch(relative_key) is not None


# A token is one literal character, or longer: then it is one of these, or a regular expression.
_STARS = "**"
_OPEN, _COMMA, _CLOSE = "{{", "{,}", "}}"
_ONE = "[^/]"
_RUN = "[^/]*"
_FOLDERS = "(?:.*/)?"
_REST = ".*"


def _tokens(pattern: str) -> list[str]:
    """The pattern in tokens; brackets and braces are checked for balance."""
    tokens: list[str] = []
    opened: list[int] = []
    position = 0
    while position < len(pattern):
        char = pattern[position]
        if char == "[":
            token, position = _char_set(pattern, position)
            tokens.append(token)
            continue
        if char == "*":
            stars = len(pattern[position:]) - len(pattern[position:].lstrip("*"))
            tokens.append(_STARS if stars == 2 else _RUN)
            position += stars
            continue
        if char == "{":
            opened.append(position)
        if char == "}" and opened:
            opened.pop()
            tokens.append(_CLOSE)
        else:
            tokens.append(_single(pattern, position, bool(opened)))
        position += 1
    if opened:
        raise ValueError(f"has a {{ at character {opened[-1] + 1} that is not closed")
    return tokens


def _single(pattern: str, position: int, in_braces: bool) -> str:
    char = pattern[position]
    if char in "]}":
        raise ValueError(
            f"has a {char} at character {position + 1} without its opening bracket; "
            f"write [{char}] for the character itself"
        )
    if char == "\\":
        raise ValueError(
            f"has a backslash at character {position + 1}, which escapes nothing here; write a "
            "special character in brackets, such as [*]"
        )
    if char == "," and in_braces:
        return _COMMA
    return {"?": _ONE, "{": _OPEN}.get(char, char)


def _char_set(pattern: str, start: int) -> tuple[str, int]:
    """The set that opens at `start`, and where the pattern goes on behind it."""
    first = start + 1
    negated = pattern[first : first + 1] in ("!", "^")
    if negated:
        first += 1
    # A ] that comes first is a member, as in every glob.
    end = pattern.find("]", first + 1)
    if end < 0:
        raise ValueError(f"has a [ at character {start + 1} that is not closed")
    members = pattern[first:end]
    if len(members) == 1 and not negated and members != "/":
        return members, end + 1
    inside = _members(members, start)
    if negated:
        return f"[^/{inside}]", end + 1
    return f"(?!/)[{inside}]", end + 1


def _members(members: str, start: int) -> str:
    parts: list[str] = []
    position = 0
    while position < len(members):
        low = members[position]
        high = members[position + 2 : position + 3]
        if members[position + 1 : position + 2] == "-" and high:
            if low > high:
                raise ValueError(
                    f"has the range {low}-{high} in the set at character {start + 1}, which "
                    "runs backwards"
                )
            parts.append(f"{re.escape(low)}-{re.escape(high)}")
            position += 3
        else:
            parts.append(re.escape(low))
            position += 1
    return "".join(parts)


def _expand(tokens: list[str]) -> list[list[str]]:
    """Every pattern without braces that one with braces stands for."""
    plain, _ = _alternatives(tokens, 0)
    return plain


def _alternatives(tokens: list[str], position: int) -> tuple[list[list[str]], int]:
    done: list[list[str]] = []
    current: list[list[str]] = [[]]
    while position < len(tokens):
        token = tokens[position]
        if token == _CLOSE:
            break
        if token == _COMMA:
            done += current
            current = [[]]
        elif token == _OPEN:
            inner, position = _alternatives(tokens, position + 1)
            if len(current) * len(inner) > MAX_ALTERNATIVES:
                raise ValueError(f"stands for more than {MAX_ALTERNATIVES} patterns")
            current = [head + tail for head in current for tail in inner]
        else:
            for each in current:
                each.append(token)
        position += 1
    return done + current, position


def _literal_prefix(tokens: list[str]) -> str:
    for position, token in enumerate(tokens):
        if len(token) > 1:
            return "".join(tokens[:position])
    return "".join(tokens)


def _common_prefix(texts: list[str]) -> str:
    # What the first and the last in order share, all between them share.
    first, last = min(texts), max(texts)
    shared = next((i for i, c in enumerate(first) if last[i : i + 1] != c), len(first))
    return first[:shared]


def _regex(tokens: list[str]) -> str:
    parts: list[str] = []
    position = 0
    while position < len(tokens):
        token = tokens[position]
        if token != _STARS:
            parts.append(token if len(token) > 1 else re.escape(token))
            position += 1
            continue
        starts = position == 0 or tokens[position - 1] == "/"
        following = tokens[position + 1] if position + 1 < len(tokens) else None
        if starts and following is None:
            parts.append(_REST)
        elif starts and following == "/":
            parts.append(_FOLDERS)
            position += 1
        else:
            # Part of a folder's name: no more than one star is.
            parts.append(_RUN)
        position += 1
    return "".join(parts)
