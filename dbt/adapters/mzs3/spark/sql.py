"""Names and texts as Spark SQL spells them; nothing untrusted gets into SQL any other way."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"\w+")
_ESCAPES = {
    "\\": "\\\\",
    "'": "\\'",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\x00": "\\u0000",
    "\x1a": "\\Z",
}


def quote_identifier(name: str) -> str:
    """The name in backticks, those inside it doubled: exactly this name, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def shown_name(name: str) -> str:
    """The name in a message: in backticks if it may be taken for several, or for none."""
    return name if _PLAIN.fullmatch(name) else quote_identifier(name)


def quote_literal(text: str) -> str:
    """A string literal that Spark reads back as exactly this text.

    Right for Spark's default parser, where a backslash escapes; not for a session that sets
    `spark.sql.parser.escapedStringLiterals`.
    """
    return "'" + "".join(_ESCAPES.get(character, character) for character in text) + "'"
