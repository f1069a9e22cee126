"""Turns columns of text into a source's types, a whole column at a time.

This is for the types that pyarrow's CSV reader does not read as PostgreSQL does, and for what it
refuses though PostgreSQL writes or reads it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.csv_source.executor.columns import arrow_type
from dbt.adapters.mzs3.csv_source.executor.datetimes import to_date, to_timestamp
from dbt.adapters.mzs3.csv_source.executor.decimals import to_decimal
from dbt.adapters.mzs3.csv_source.executor.floats import to_float

_TRUE = ("t", "true", "y", "yes", "on", "1")
_FALSE = ("f", "false", "n", "no", "off", "0")


def spellings(words: tuple[str, ...]) -> list[str]:
    """Each word in lower and upper case and capitalised: what CSV files have."""
    return sorted({form for w in words for form in (w, w.upper(), w.capitalize())})


TRUE_VALUES = spellings(_TRUE)
FALSE_VALUES = spellings(_FALSE)


def convert(text: pa.Array, data_type: str) -> pa.Array:
    """A column of text as its type; NULL stays NULL.

    White space around a value is let be, as PostgreSQL does, but in strings it is kept. Raises
    ValueError if any value is not of the type; which one is for `locate` to find.
    """
    if data_type == "string":
        return text
    kind = "decimal" if data_type.startswith("decimal") else data_type
    converter, arrow_kind = _CONVERTERS[kind], arrow_type(data_type)
    if converter in (to_decimal, to_float):
        # All such columns come here: spare those that have no white space the pass over it.
        with contextlib.suppress(ValueError):
            return converter(text, arrow_kind)
    return converter(pc.ascii_trim_whitespace(text), arrow_kind)


def _to_boolean(text: pa.Array, _: pa.DataType) -> pa.Array:
    true = pc.is_in(text, value_set=pa.array(TRUE_VALUES))
    known = pc.or_(true, pc.is_in(text, value_set=pa.array(FALSE_VALUES)))
    _require(pc.or_(known, pc.is_null(text)))
    return pc.if_else(pc.is_valid(text), true, pa.scalar(None, pa.bool_()))


def _to_integer(text: pa.Array, kind: pa.DataType) -> pa.Array:
    # Without the check pyarrow reads 0xff, as -1 if that is what fits.
    _require_match(text, r"^[+-]?[0-9]+$")
    return pc.cast(pc.replace_substring_regex(text, r"^\+", ""), kind)


def _to_binary(text: pa.Array, _: pa.DataType) -> pa.Array:
    _require_match(text, r"^\\x(?:[0-9A-Fa-f]{2})*$")
    return _from_hex(pc.utf8_slice_codeunits(pc.fill_null(text, "\\x"), 2), pc.is_valid(text))


def _from_hex(digits: pa.Array, valid: pa.Array) -> pa.Array:
    """The bytes that columns of hexadecimal digits stand for: one pass over the whole buffer."""
    count = len(digits)
    _, offset_buffer, digit_buffer = digits.buffers()
    offsets = pa.Array.from_buffers(
        pa.int32(), count + 1, [None, offset_buffer], offset=digits.offset
    )
    first, last = offsets[0].as_py(), offsets[count].as_py()
    data = bytes.fromhex(digit_buffer[first:last].to_pybytes().decode()) if last > first else b""
    halved = pc.divide(pc.subtract(offsets, offsets[0]), pa.scalar(2, pa.int32()))
    values = pa.Array.from_buffers(
        pa.binary(), count, [None, halved.buffers()[1], pa.py_buffer(data)]
    )
    return pc.if_else(valid, values, pa.scalar(None, pa.binary()))


def _require_match(text: pa.Array, regex: str) -> None:
    _require(pc.match_substring_regex(text, regex))


def _require(holds: pa.Array) -> None:
    # NULL says nothing about a value; an empty or all-NULL column has nothing wrong.
    if pc.all(holds, min_count=0).as_py() is False:
        raise ValueError("a value is not of the column's type")


_CONVERTERS: dict[str, Callable[[pa.Array, Any], pa.Array]] = {
    "boolean": _to_boolean,
    "tinyint": _to_integer,
    "smallint": _to_integer,
    "int": _to_integer,
    "bigint": _to_integer,
    "float": to_float,
    "double": to_float,
    "decimal": to_decimal,
    "date": to_date,
    "timestamp": to_timestamp,
    "timestamp_ntz": to_timestamp,
    "binary": _to_binary,
}
