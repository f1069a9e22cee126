"""How messages are put together: counts, sentences, and what may have been meant."""

from __future__ import annotations

import difflib


def counted(count: int, noun: str) -> str:
    """`1 object`, `2 objects`: the number with its noun, whose plural ends in s."""
    return f"{count} {noun}" + ("" if count == 1 else "s")


def followed_by(text: str, sentence: str) -> str:
    """The text, and a sentence more: on a line of its own behind a text of several."""
    text = text.rstrip(".\n ")
    return f"{text}\n{sentence}" if "\n" in text else f"{text}. {sentence}"


def is_near_miss(given: str, meant: str) -> bool:
    """Whether a word is most likely meant to be another one, but is not."""
    close = difflib.get_close_matches(given.lower(), [meant], cutoff=0.8)
    return given != meant and bool(close)
