"""Formats whose objects have a schema: typed fields, read as a source's columns."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.formats.read.columns import (
    INTEGERS,
    Column,
    RecordLayout,
    added_places,
    canonical_type,
)
from dbt.adapters.mzs3.formats.read.convert import convert, through_wide
from dbt.adapters.mzs3.formats.read.format import (
    ObjectDecoder,
    Reading,
    RecordField,
    Records,
    StoredObject,
)
from dbt.adapters.mzs3.formats.read.header import FIX_HEADER, layout_of
from dbt.adapters.mzs3.formats.read.object_error import (
    FIX_OBJECT,
    HEADER,
    HeaderProblem,
    ObjectError,
    excerpt,
    not_of_type,
)
from dbt.adapters.mzs3.types.calendar import FIRST_DAY, LAST_DAY
from dbt.adapters.mzs3.types.table import MAX_DIGITS, arrow_type, type_sent_as

VOID = "void"
FIX_FILE = (
    "Write it again, or remove it, or narrow `pattern` so that it is left out, then run again"
)
# The other types that a field of each type can be read as; text can be read as any type.
_OTHERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(INTEGERS, (*INTEGERS, "decimal", "float", "double")),
    "decimal": (*INTEGERS, "decimal"),
    "float": ("double",),
    "timestamp_ntz": ("timestamp",),
    "binary": ("string",),
}
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
# The column types of Arrow types that occur in files, but not in what Spark sends.
_OWN = {
    pa.uint8(): "smallint",
    pa.uint16(): "int",
    pa.uint32(): "bigint",
    pa.uint64(): "decimal(20,0)",
    pa.float16(): "float",
    pa.date64(): "date",
    pa.string_view(): "string",
    pa.binary_view(): "binary",
}


def other_file(name: str, kind: str) -> HeaderProblem:
    """The error for an object that is another kind of file than the format `name`."""
    return HeaderProblem(f"it is not valid {name} (it is {kind})", FIX_FILE)


def invalid_file(name: str, what: object) -> ObjectError:
    """The error for an object that violates the specification of the format `name`."""
    return ObjectError(f"it is not valid {name} ({what})", FIX_FILE)


def unreadable_file(name: str, what: str, advice: str = FIX_FILE) -> ObjectError:
    """The error for an object that may meet the specification, but is not supported."""
    return ObjectError(f"it is {name} that a source can't read ({what})", advice)


TypedFile = tuple[Sequence[RecordField], Callable[[Sequence[int]], Iterator[list[pa.Array]]]]
"""An open object: the fields of its schema, and a function that reads all of its records.

The function takes positions of fields, and yields their values in that order, for some records at
a time. Raises ObjectError.
"""


@dataclass(frozen=True)
class TypedFormat:
    """A format whose objects have a schema as their header; an empty object has no header.

    `opened` opens an object that is not empty. ObjectError may come from it or within its context.
    """

    reading: Reading
    opened: Callable[[StoredObject], AbstractContextManager[TypedFile]]

    def fields(self, stored: StoredObject) -> tuple[RecordField, ...] | None:
        """The fields of the object's schema. Raises ObjectError."""
        if stored.size == 0:
            return None
        with self.opened(stored) as (fields, _):
            return tuple(fields)

    def decoder(self, header: tuple[str, ...] | None, columns: Sequence[Column]) -> ObjectDecoder:
        """See `ObjectFormat`; `header` is never None."""
        assert header is not None
        return _TypedDecoder(self, header, columns)


@dataclass(frozen=True)
class _TypedDecoder:
    """Decodes objects with this header to batches of the columns."""

    object_format: TypedFormat
    header: tuple[str, ...]
    columns: Sequence[Column]

    def __call__(self, stored: StoredObject) -> Generator[Records, None, None]:
        if stored.size == 0:
            return
        with self.object_format.opened(stored) as (fields, batches):
            match = self.object_format.reading.header_match
            layout = typed_layout(fields, self.header, self.columns, match)
            own_types = [str(fields[position].own) for position in layout.fields]
            present, done = layout.present(self.columns), 0
            kinds = [arrow_type(column.data_type) for column in self.columns]
            names = [column.name for column in self.columns]
            for values in batches(layout.fields):
                records = typed_records(values, own_types, present, done)
                every = layout.with_missing(records.batch.columns, kinds)
                yield replace(records, batch=pa.RecordBatch.from_arrays(every, names=names))
                done += records.count

    def together(self, _: Sequence[StoredObject]) -> None:
        """None: each object has its own schema."""


def typed_layout(
    fields: Sequence[RecordField], header: Sequence[str], columns: Sequence[Column], match: str
) -> RecordLayout:
    """The columns' positions among an object's fields; `match` is the source's header_match.

    Raises HeaderProblem for other names, and for types that can't be read as the columns' types.
    """
    names = [field.name for field in fields]
    layout = layout_of(names, header, match, added=added_places(columns))
    read_as = [fields[position] for position in layout.fields]
    found = misfits(read_as, layout.present(columns))
    if found:
        problem = f"its fields are not as declared: {'; '.join(found)}"
        raise HeaderProblem(problem, FIX_HEADER, cause=HEADER)
    return layout


def typed_records(
    values: Sequence[pa.Array], own_types: Sequence[str], columns: Sequence[Column], before: int
) -> Records:
    """Converts fields' values to the columns; the object has `before` records before these.

    Raises ObjectError for the first record with a value that is not of its column's type.
    """
    pairs = list(zip(values, own_types, [c.data_type for c in columns], strict=True))
    try:
        arrays = [convert_typed(*pair) for pair in pairs]
    except ValueError:
        record, position = min((_first_bad(*one), place) for place, one in enumerate(pairs))
        column, value = columns[position], _shown(values[position][record])
        text = not_of_type(column.name, value, column.data_type)
        raise ObjectError(text, FIX_OBJECT, record=before + record + 1) from None
    batch = pa.RecordBatch.from_arrays(arrays, names=[c.name for c in columns])
    return Records(batch, batch.num_rows)


def convert_typed(values: pa.Array, own: str, data_type: str) -> pa.Array:
    """Converts the values of a field of type `own` to a type that the field can be read as.

    Converts texts as in CSV. Raises ValueError if a value is not of the type, or would change.
    """
    kind = arrow_type(data_type)
    if own == VOID:
        return pa.nulls(len(values), kind)
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if not (own.startswith("decimal") and pa.types.is_decimal(values.type)):
        values = pc.cast(values, arrow_type(own))
    if own == "string":
        values.validate(full=True)  # Parquet's strings may be any bytes
        return convert(values, data_type)
    if not pa.types.is_decimal(kind):
        return pc.cast(values, kind)
    if values.type == kind:
        # A value may have more digits than the file's schema says.
        values.validate(full=True)
        return values
    if pa.types.is_integer(values.type):
        values = pc.cast(values, pa.int64())
    return through_wide(values, kind)


def _first_bad(values: pa.Array, own: str, data_type: str) -> int:
    """The position of the first value that is not of the type; the number of values if all are."""

    def fails(position: int) -> bool:
        with suppress(ValueError):
            convert_typed(values.slice(0, position + 1), own, data_type)
            return False
        return True

    return bisect_left(range(len(values)), True, key=fails)


def _shown(value: pa.Scalar) -> str:
    """A value as a message shows it: texts and bytes in quotes, numbers and times without."""
    if isinstance(value, pa.DictionaryScalar | pa.ExtensionScalar):
        value = value.value
    kind = value.type
    if isinstance(value, pa.BinaryScalar):  # texts too
        raw: bytes = value.as_buffer().to_pybytes()
        with suppress(UnicodeDecodeError):
            return excerpt(raw.decode() if own_type(kind) == "string" else raw)
        return excerpt(raw)
    if pa.types.is_date64(kind):
        value = pc.cast(value, pa.timestamp("ms"))  # shows a time of day, if that's what is wrong
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        value = pc.cast(value, pa.timestamp(kind.unit, tz="UTC"))  # whatever the zone's name
    if pa.types.is_timestamp(value.type) and not _has_four_digits(value):
        return f"{value.value} {value.type.unit} since 1970"
    return excerpt(pc.cast(value, pa.string()).as_py(), quoted=False)


def _has_four_digits(time: pa.Scalar) -> bool:
    """Whether the year is from 1 to 9999: pyarrow writes other years wrongly."""
    a_day = 86_400 * _PER_SECOND[time.type.unit]
    return bool(FIRST_DAY * a_day <= time.value < (LAST_DAY + 1) * a_day)


def own_type(kind: pa.DataType) -> str | None:
    """The column type that holds the values of an Arrow type; `void` if only NULL is possible.

    None for types that no column can have. Columns hold microseconds, and no digits after those.
    """
    if isinstance(kind, pa.BaseExtensionType):
        return own_type(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return own_type(kind.value_type)
    if pa.types.is_decimal(kind):
        fits = kind.precision <= MAX_DIGITS and 0 <= kind.scale <= kind.precision
        return canonical_type(f"decimal({kind.precision},{kind.scale})") if fits else None
    if pa.types.is_fixed_size_binary(kind):
        return "binary"
    row = type_sent_as(kind)
    return row.name if row and row.name != "time" else _OWN.get(kind)


def can_be_read_as(own: str | None, data_type: str) -> bool:
    """Whether fields of type `own` can be read as a column type with every value unchanged."""
    family, wanted = (text.partition("(")[0] for text in (own or "", data_type))
    return own in (data_type, VOID, "string") or wanted in _OTHERS.get(family, ())


def misfits(fields: Sequence[RecordField], columns: Sequence[Column]) -> list[str]:
    """Messages for the fields that can't be read as their columns; empty if all can."""
    found = []
    for field, column in zip(fields, columns, strict=True):
        is_other = column.data_type.partition("(")[0] in field.also
        if not (is_other or can_be_read_as(field.own, column.data_type)):
            cannot = f"can't be read as {column.data_type}" if field.own else "no column can be"
            words = excerpt(field.words, quoted=False)
            found.append(f"{excerpt(field.name)} is {words}, which {cannot}")
    return found
