"""Columns of typed values as a source's types: the same values, or an error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.csv_source.executor.columns import (
    INTEGERS,
    MAX_PRECISION,
    Column,
    RecordLayout,
    arrow_type,
    canonical_type,
)
from dbt.adapters.mzs3.csv_source.executor.convert import convert
from dbt.adapters.mzs3.csv_source.executor.formats.format import RecordField, Records
from dbt.adapters.mzs3.csv_source.executor.header import FIX_HEADER, layout_of
from dbt.adapters.mzs3.csv_source.executor.object_error import (
    FIX_OBJECT,
    HeaderProblem,
    ObjectError,
    not_of_type,
    shown,
)

VOID = "void"
# The digits of a decimal that holds every number of 38 digits at every scale to 38.
WIDE_PRECISION = 76
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


@dataclass(frozen=True)
class TypedColumns:
    """A source's columns for objects whose fields have types; `match` is its header_match."""

    header: tuple[str, ...]
    columns: tuple[Column, ...]
    match: str

    def layout(self, fields: Sequence[RecordField]) -> RecordLayout:
        """Which of an object's fields are the columns. Raises HeaderProblem.

        It does where names are not the pinned ones, and where types are not such that the
        columns could be read from them.
        """
        layout = layout_of([field.name for field in fields], self.header, self.match)
        found = misfits([fields[position] for position in layout.fields], self.columns)
        if found:
            raise HeaderProblem(f"its fields are not as declared: {'; '.join(found)}", FIX_HEADER)
        return layout

    def records(
        self, values: Sequence[pa.Array], fields: Sequence[RecordField], before: int
    ) -> Records:
        """Each column's values, of its field, converted; `before` records precede them.

        NULL stays NULL. Raises ObjectError at the first record with a value that is not of its
        column's type.
        """
        try:
            arrays = [
                convert_typed(array, str(field.own), column.data_type)
                for array, field, column in zip(values, fields, self.columns, strict=True)
            ]
        except ValueError:
            raise self._problem(values, fields, before) from None
        batch = pa.RecordBatch.from_arrays(arrays, names=[c.name for c in self.columns])
        return Records(batch, batch.num_rows)

    def _problem(
        self, values: Sequence[pa.Array], fields: Sequence[RecordField], before: int
    ) -> ObjectError:
        bad = [
            (_first_bad(array, str(field.own), column.data_type), position)
            for position, (array, field, column) in enumerate(
                zip(values, fields, self.columns, strict=True)
            )
        ]
        record, position = min((at, position) for at, position in bad if at is not None)
        column = self.columns[position]
        text = not_of_type(column.name, _shown(values[position][record]), column.data_type)
        return ObjectError(text, FIX_OBJECT, record=before + record + 1)


def convert_typed(values: pa.Array, own: str, data_type: str) -> pa.Array:
    """The values of a field, whose own type is `own`, in a type that it can be read as.

    A text is read as CSV's are. Raises ValueError if a value is not of the type, or would not
    be the same in it.
    """
    if own == VOID:
        return pa.nulls(len(values), arrow_type(data_type))
    same = _in_own_type(values, own)
    if own == "string":
        same.validate(full=True)  # Parquet's strings may be any bytes
        return convert(same, data_type)
    if data_type.startswith("decimal"):
        return _to_decimal(same, arrow_type(data_type))
    return pc.cast(same, arrow_type(data_type))


def _in_own_type(values: pa.Array, own: str) -> pa.Array:
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if own.startswith("decimal") and pa.types.is_decimal(values.type):
        return values
    return pc.cast(values, arrow_type(own))


def _to_decimal(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if values.type == kind:
        # A file may have more digits than it says.
        values.validate(full=True)
        return values
    if pa.types.is_integer(values.type):
        values = pc.cast(values, pa.int64())
    return pc.cast(pc.cast(values, pa.decimal256(WIDE_PRECISION, kind.scale)), kind)


def _first_bad(values: pa.Array, own: str, data_type: str) -> int | None:
    """Where the first value is that is not of the type, by halving; None if all are."""
    if _converts(values, own, data_type):
        return None
    low, high = 0, len(values)
    while high - low > 1:
        middle = (low + high) // 2
        if _converts(values.slice(low, middle - low), own, data_type):
            low = middle
        else:
            high = middle
    return low


def _converts(values: pa.Array, own: str, data_type: str) -> bool:
    try:
        convert_typed(values, own, data_type)
    except ValueError:
        return False
    return True


def _shown(value: pa.Scalar) -> str:
    """A value as a message shows it: texts and bytes in quotes, numbers and times without."""
    if isinstance(value, pa.DictionaryScalar | pa.ExtensionScalar):
        value = value.value
    kind = value.type
    if isinstance(value, pa.StringScalar | pa.LargeStringScalar):
        raw: bytes = value.as_buffer().to_pybytes()
        try:
            return shown(raw.decode())
        except UnicodeDecodeError:
            return shown(raw)
    if isinstance(value, pa.BinaryScalar | pa.LargeBinaryScalar | pa.FixedSizeBinaryScalar):
        return shown(value.as_py())
    if pa.types.is_date64(kind):
        value = pc.cast(value, pa.timestamp("ms"))  # shows a time of day, if that's what is wrong
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        value = pc.cast(value, pa.timestamp(kind.unit, tz="UTC"))  # whatever the zone's name
    return shown(pc.cast(value, pa.string()).as_py(), quoted=False)


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


def misfits(fields: Sequence[RecordField], columns: Sequence[Column]) -> list[str]:
    """The fields that can't be read as their columns, in words; empty if all can."""
    return [
        f"{_words(field)}, which can't be read as {column.data_type}"
        if field.own is not None
        else f"{_words(field)}, which no column can be"
        for field, column in zip(fields, columns, strict=True)
        if not can_be_read_as(field.own, column.data_type)
    ]


def _words(field: RecordField) -> str:
    return f"{shown(field.name)} is {shown(field.words, quoted=False)}"
