"""Which values of a column of text are not of its type, and the others converted."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.csv_source.executor.convert import FALSE_VALUES, TRUE_VALUES, convert

# Values of which the form alone says that they convert: nearly all there are. The others are
# tried, each distinct one once.
_MONTH_AND_DAY = r"-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
_DATE = rf"^[12][0-9]{{3}}{_MONTH_AND_DAY}"
_TIME = r"[ T](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
_FORMS = {
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


def convert_good(text: pa.Array, data_type: str) -> tuple[pa.Array, pa.Array | None]:
    """The column as its type, and which values are not of it, None if there are none.

    Those are NULL in the column. It is `convert`, for columns where it may fail.
    """
    try:
        return convert(text, data_type), None
    except ValueError:
        pass
    sure = pc.fill_null(pc.match_substring_regex(text, _form(data_type)), True)
    bad = _bad_ones(pc.unique(pc.filter(text, pc.invert(sure))), data_type)
    is_bad = pc.is_in(text, value_set=pa.concat_arrays(bad))
    good = pc.if_else(is_bad, pa.scalar(None, pa.string()), text)
    return convert(good, data_type), is_bad


def _form(data_type: str) -> str:
    if not data_type.startswith("decimal"):
        return _FORMS[data_type]
    precision, scale = map(int, data_type[len("decimal(") : -1].split(","))
    whole = f"[0-9]{{1,{precision - scale}}}" if precision > scale else "0"
    return rf"^[+-]?{whole}(?:\.[0-9]{{0,{scale}}})?$"


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
