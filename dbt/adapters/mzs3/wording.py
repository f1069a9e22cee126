"""How messages say how many there are."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """`1 object`, `2 objects`: the number with its noun, whose plural ends in s."""
    return f"{count} {noun}" + ("" if count == 1 else "s")
