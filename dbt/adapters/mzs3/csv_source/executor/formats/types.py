"""The types of fields in formats that have some, and the column types that take their values."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from dbt.adapters.mzs3.csv_source.executor.columns import MAX_PRECISION, Column, canonical_type
from dbt.adapters.mzs3.csv_source.executor.formats.format import Field
from dbt.adapters.mzs3.csv_source.executor.problem import shown

VOID = "void"
# The digits of a decimal that holds every number of 38 digits at every scale to 38.
WIDE_PRECISION = 76
INTEGERS = ("tinyint", "smallint", "int", "bigint")
# Beside its own type and, for a text, all of them: what a field of a type can be read as.
_OTHERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(INTEGERS, (*INTEGERS, "decimal", "float", "double")),
    "decimal": (*INTEGERS, "decimal"),
    "float": ("double",),
    "timestamp_ntz": ("timestamp",),
    "binary": ("string",),
}
_OWN = {
    pa.null(): VOID,
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.uint8(): "smallint",
    pa.uint16(): "int",
    pa.uint32(): "bigint",
    pa.uint64(): "decimal(20,0)",
    pa.float16(): "float",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.date64(): "date",
}


_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_BINARIES = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
)


def own_type(kind: pa.DataType) -> str | None:
    """The column type that has just the values of an Arrow type, `void` for NULL alone.

    None for types that no column can have. Times are in microseconds; one with digits behind
    those is a value that its column can't have.
    """
    if isinstance(kind, pa.BaseExtensionType):
        return own_type(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return own_type(kind.value_type)
    if pa.types.is_decimal(kind):
        fits = kind.precision <= MAX_PRECISION and 0 <= kind.scale <= kind.precision
        return canonical_type(f"decimal({kind.precision},{kind.scale})") if fits else None
    if pa.types.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    if any(test(kind) for test in _TEXTS):
        return "string"
    if any(test(kind) for test in _BINARIES):
        return "binary"
    return _OWN.get(kind)


def can_be_read_as(own: str | None, data_type: str) -> bool:
    """Whether a column type takes the values of a field, each as it is or not at all."""
    if own is None:
        return False
    if own in (data_type, VOID, "string"):
        return True
    family, wanted = (text.partition("(")[0] for text in (own, data_type))
    return wanted in _OTHERS.get(family, ())


def misfits(fields: Sequence[Field], columns: Sequence[Column]) -> list[str]:
    """The fields that can't be read as their columns, in words; empty if all can."""
    return [
        f"{_words(field)}, which can't be read as {column.data_type}"
        if field.own is not None
        else f"{_words(field)}, which no column can be"
        for field, column in zip(fields, columns, strict=True)
        if not can_be_read_as(field.own, column.data_type)
    ]


def _words(field: Field) -> str:
    return f"{shown(field.name)} is {shown(field.words, quoted=False)}"
