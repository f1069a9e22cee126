"""HTML and SVG as text in which nothing untrusted can become markup."""

from __future__ import annotations

import re
from html import escape

# What XML has no characters for, and what would reorder the text around it.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069"
    "\ud800-\udfff\ufffe\uffff]"
)
_VOID = {"meta", "br", "col", "rect", "line", "circle", "path"}


class Markup(str):
    """Text that is markup already; anything else is escaped."""

    __slots__ = ()


def text(value: str) -> Markup:
    """The text for a reader to see, whatever is in it; what can't be shown becomes U+FFFD."""
    return Markup(escape(_UNPRINTABLE.sub("\ufffd", value), quote=True))


def tag(name: str, /, *children: str | None, **attributes: object) -> Markup:
    """An element, well-formed as XML and right as HTML.

    `class_` stands for `class`, `_` for `-`; an attribute or child that is None is left out.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_markup(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = join(*children)
    if name in _VOID and not inner:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{inner}</{name}>")


def join(*parts: str | None) -> Markup:
    """The parts one after another, escaped where they are not markup."""
    return Markup("".join(_markup(part) for part in parts if part is not None))


def _markup(value: str) -> str:
    return value if isinstance(value, Markup) else text(value)
