"""What values mean where the Arrow type that carries them does not say it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["plain", "list", "struct", "map", "interval", "variant"]


@dataclass(frozen=True)
class Shape:
    """One column's, or one nested value's, meaning; the wire is what Spark sends.

    plain: as the Arrow type says. list: a list, `children` is its element. struct: a struct,
    `children` are its fields. map: a list of structs `(key, value)`, sorted by key, `children`
    are key and value. interval: a struct `(months int32, days int32, micros int64)`. variant: a
    string that holds JSON.
    """

    kind: Kind = "plain"
    children: tuple[Shape, ...] = ()


PLAIN = Shape()
