"""Converts the values of a text column that are of its type, and finds those that are not."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.csv_source.executor.columns import INTEGERS, arrow_type
from dbt.adapters.mzs3.csv_source.executor.convert import FALSE_VALUES, TRUE_VALUES, convert

# Values of which the form alone says that they convert: nearly all there are.
_MONTH_AND_DAY = r"-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
_DATE = rf"^[12][0-9]{{3}}{_MONTH_AND_DAY}"
_TIME = r"[ T](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
_GOOD = {
    "boolean": f"^(?:{'|'.join([*TRUE_VALUES, *FALSE_VALUES])})$",
    "tinyint": r"^[+-]?[0-9]{1,2}$",
    "smallint": r"^[+-]?[0-9]{1,4}$",
    "int": r"^[+-]?[0-9]{1,9}$",
    "bigint": r"^[+-]?[0-9]{1,18}$",
    "float": r"^-?[0-9]{1,12}(?:\.[0-9]{1,12})?$",
    "double": r"^-?[0-9]{1,15}(?:\.[0-9]{1,15})?$",
    "date": _DATE + "$",
    "timestamp": _DATE + _TIME + r"(?:Z|[+-](?:0[0-9]|1[0-3])(?::?[0-5][0-9])?)?$",
    "timestamp_ntz": _DATE + _TIME + "$",
    "binary": r"^\\x(?:[0-9A-Fa-f]{2})*$",
}

# Values of any other form do not convert. What is in neither class is tried, once each.
_POSSIBLE_DATE = r"[0-9]{4,7}-[0-9]{2}-[0-9]{2}.*"
_POSSIBLE_NUMBER = r"[+-]?[.0-9]+(?:[eE][+-]?[0-9]+)?"
_POSSIBLE_FLOAT = rf"(?:{_POSSIBLE_NUMBER}|[+-]?(?:inf.*|nan.*|INF.*|NAN.*|[IiNn].*))"
_POSSIBLE = {
    "boolean": r"[A-Za-z01]{1,5}",
    **dict.fromkeys(INTEGERS, r"[+-]?[0-9]+"),
    **dict.fromkeys(("float", "double"), _POSSIBLE_FLOAT),
    "decimal": _POSSIBLE_NUMBER,
    **dict.fromkeys(("date", "timestamp", "timestamp_ntz"), _POSSIBLE_DATE),
    "binary": r"\\x.*",
}


def convert_good(text: pa.Array, data_type: str) -> tuple[pa.Array, pa.Array | None]:
    """The column converted, NULL where a value is not of the type, and a mask of those values.

    The mask is None if there are none.
    """
    try:
        return convert(text, data_type), None
    except ValueError:
        pass
    sure = pc.fill_null(pc.match_substring_regex(text, good_form(data_type)), True)
    unsure = pc.unique(pc.filter(text, pc.invert(sure)))
    possible = pc.match_substring_regex(unsure, possible_form(data_type))
    bad = [
        pc.filter(unsure, pc.invert(possible)),
        *_bad_ones(pc.filter(unsure, possible), data_type),
    ]
    is_bad = pc.is_in(text, value_set=pa.concat_arrays(bad))
    good = pc.if_else(is_bad, pa.scalar(None, pa.string()), text)
    return convert(good, data_type), is_bad


def possible_form(data_type: str) -> str:
    """A regular expression that every value of the type matches, and perhaps others."""
    form = _POSSIBLE[data_type.partition("(")[0]]
    return rf"(?s)^[ \t\n\x0b\f\r]*{form}[ \t\n\x0b\f\r]*$"


def good_form(data_type: str) -> str:
    """A regular expression that only values of the type match, and nearly all of them."""
    if not data_type.startswith("decimal"):
        return _GOOD[data_type]
    kind = arrow_type(data_type)
    digits = kind.precision - kind.scale
    whole = f"[0-9]{{1,{digits}}}" if digits else "0"
    return rf"^[+-]?{whole}(?:\.[0-9]{{0,{kind.scale}}})?$"


def _bad_ones(values: pa.Array, data_type: str) -> list[pa.Array]:
    """The values that do not convert, by halving: few are bad, or few are distinct."""
    try:
        convert(values, data_type)
    except ValueError:
        if len(values) == 1:
            return [values]
    else:
        return []
    half = len(values) // 2
    return [
        *_bad_ones(values.slice(0, half), data_type),
        *_bad_ones(values.slice(half), data_type),
    ]
