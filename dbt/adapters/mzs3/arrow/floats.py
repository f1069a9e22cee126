"""Floating-point numbers with one NaN."""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.compute as pc


def with_one_nan(values: pa.Array) -> pa.Array:
    """The bits of a NaN are the processor's choice, and Spark doesn't order rows by them."""
    are_nan = pc.is_nan(values)
    if not pc.any(are_nan).as_py():
        return values
    return pc.if_else(are_nan, pa.scalar(math.nan, values.type), values)
