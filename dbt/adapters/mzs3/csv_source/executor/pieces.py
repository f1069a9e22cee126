"""Cutting a key space into pieces that several tasks list, without looking at all of its keys."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Piece:
    """The keys that sort after `after` and not after `last`; None is no bound.

    Keys sort by their UTF-8 bytes, which is the order of Python's texts, and S3's.
    """

    after: str | None = None
    last: str | None = None

    def has(self, key: str) -> bool:
        """Whether the key is in this piece."""
        return (self.after is None or key > self.after) and not self.is_before(key)

    def is_before(self, key: str) -> bool:
        """Whether the piece ends before the key."""
        return self.last is not None and key > self.last


EVERYTHING = Piece()


def cut(marks: Iterable[str], count: int, after: str | None = None) -> list[Piece]:
    """At most `count` pieces, in order, that hold each key after `after` exactly once.

    Whatever keys there are or come to be: `marks` only say where to cut. They are keys, or where
    folders begin, and the pieces have about as many of them each.
    """
    inside = sorted({mark for mark in marks if after is None or mark > after})
    count = max(1, min(count, len(inside) + 1))
    # Between two cuts lie as many marks, but for rounding.
    ends = [inside[(number * (len(inside) + 1)) // count - 1] for number in range(1, count)]
    bounds = [after, *ends, None]
    return [Piece(low, high) for low, high in pairwise(bounds)]
