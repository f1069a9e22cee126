"""How messages say how many there are, and what may have been meant."""

from __future__ import annotations

import difflib


def counted(count: int, noun: str) -> str:
    """`1 object`, `2 objects`: the number with its noun, whose plural ends in s."""
    return f"{count} {noun}" + ("" if count == 1 else "s")


def is_near_miss(given: str, meant: str) -> bool:
    """Whether a word is most likely meant to be another one, but is not."""
    close = difflib.get_close_matches(given.lower(), [meant], cutoff=0.8)
    return given != meant and bool(close)
