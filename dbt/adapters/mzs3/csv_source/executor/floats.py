"""Floats from text, with PostgreSQL's idea of what is out of range."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

# A number too large comes back as infinity, one too small as zero, and `nan(1)` as NaN.
_SPECIAL_REGEX = r"(?i)^[+-]?(?:inf(?:inity)?|nan|[0.]+(?:e[+-]?[0-9]+)?)$"


def to_float(text: pa.Array, kind: pa.DataType) -> pa.Array:
    """Each text's number, rounded to the nearest; `NaN`, `inf` and `Infinity` in any case.

    Raises ValueError for a number out of range as PostgreSQL does: too large for the type, or
    not 0 but too small to be told from it. NULL stays NULL.
    """
    values = pc.cast(text, kind)
    special = is_special(values)
    if pc.any(special).as_py():
        written = pc.unique(pc.filter(text, special))
        if not pc.all(pc.match_substring_regex(written, _SPECIAL_REGEX)).as_py():
            raise ValueError("a number out of range")
    return values


def is_special(values: pa.Array) -> pa.Array:
    """Which values pyarrow may have made of something else: infinities, NaN and zeros."""
    return pc.or_(pc.invert(pc.is_finite(values)), pc.equal(values, pa.scalar(0, values.type)))
