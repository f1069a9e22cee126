"""The text of any values, nested ones included: how types and shapes become forms."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.formats.csv.quoting import (
    WHITESPACE,
    TextBytes,
    concatenated,
    either,
    quoted,
    quoted_doubling,
    text_scalar,
)
from dbt.adapters.mzs3.formats.csv.scalars import (
    INTERVAL_ALPHABET,
    Formatter,
    NotUtf8,
    interval_text,
    scalar_formatter,
)
from dbt.adapters.mzs3.formats.format import PLAIN, LogicalType

__all__ = ["NotUtf8", "formatter_of", "value_text"]

# What makes PostgreSQL put quotes around an element, beside the empty text and the word NULL.
ARRAY_SPECIAL = '{},"\\' + WHITESPACE

# What makes Materialize put quotes around a key or a value, beside what does in arrays.
MAP_SPECIAL = ARRAY_SPECIAL + "=>"

# What makes PostgreSQL put quotes around a field, beside the empty text.
RECORD_SPECIAL = '(),"\\' + WHITESPACE


def formatter_of(data_type: pa.DataType, logical_type: LogicalType = PLAIN) -> Formatter | None:
    """The form of a type that Spark sends, which means what `logical_type` says.

    None if it, or something nested in it, has no form, or is not of that shape.
    """
    if logical_type.kind in ("plain", "variant"):
        return _form_of_type(data_type)
    if logical_type.kind == "list":
        return _list_formatter(data_type, *logical_type.children)
    if logical_type.kind == "struct":
        return _struct_formatter(data_type, logical_type.children)
    if logical_type.kind == "map":
        return _map_formatter(data_type, *logical_type.children)
    if _field_types(data_type) == [pa.int32(), pa.int32(), pa.int64()]:
        return Formatter(interval_text, INTERVAL_ALPHABET)
    return None


def value_text(values: pa.Array, logical_type: LogicalType = PLAIN) -> pa.Array:
    """The values' text; TypeError for a type without a form."""
    formatter = formatter_of(values.type, logical_type)
    if formatter is None:
        raise TypeError(f"no text for values of type {values.type}")
    return formatter.write(values)


def _form_of_type(data_type: pa.DataType) -> Formatter | None:
    """The form of values that are what their type says."""
    if _is_list(data_type):
        return _list_formatter(data_type, PLAIN)
    if pa.types.is_struct(data_type):
        return _struct_formatter(data_type, (PLAIN,) * data_type.num_fields)
    return scalar_formatter(data_type)


def _list_formatter(data_type: pa.DataType, element_type: LogicalType) -> Formatter | None:
    element = formatter_of(data_type.value_type, element_type) if _is_list(data_type) else None
    if element is None:
        return None
    return Formatter(lambda lists: array_text(lists, element), None, nests=True)


def _struct_formatter(
    data_type: pa.DataType, logical_types: tuple[LogicalType, ...]
) -> Formatter | None:
    types = _field_types(data_type)
    if types is None or len(types) != len(logical_types):
        return None
    fields = [
        formatter_of(kind, logical_type)
        for kind, logical_type in zip(types, logical_types, strict=True)
    ]
    formatters = [formatter for formatter in fields if formatter is not None]
    if len(formatters) < len(fields):
        return None
    return Formatter(lambda structs: record_text(structs, formatters), None)


def _map_formatter(
    data_type: pa.DataType, key_type: LogicalType, value_type: LogicalType
) -> Formatter | None:
    types = _field_types(data_type.value_type) if _is_list(data_type) else None
    if types is None or len(types) != 2:
        return None
    key, value = formatter_of(types[0], key_type), formatter_of(types[1], value_type)
    if key is None or value is None:
        return None
    return Formatter(lambda maps: map_text(maps, key, value), None, nests=True)


def _field_types(data_type: pa.DataType) -> list[pa.DataType] | None:
    """The types of a struct's fields; None for what is no struct."""
    if not pa.types.is_struct(data_type):
        return None
    return [data_type.field(i).type for i in range(data_type.num_fields)]


def _is_list(data_type: pa.DataType) -> bool:
    """Whether the type is a list of either offset width."""
    return bool(pa.types.is_list(data_type) or pa.types.is_large_list(data_type))


def array_text(lists: pa.Array, element: Formatter) -> pa.Array:
    """A list array as `large_string`; `element` is the form of what is in the lists.

    PostgreSQL has no arrays of arrays of different lengths, and no NULL among inner arrays; these
    are written by the same rules, `{{1},{2,3},NULL}`.
    """
    elements = lists.flatten()  # of this slice, and nothing from under NULL lists
    return in_braces(lists, element_text(elements, element, ARRAY_SPECIAL))


def element_text(values: pa.Array, formatter: Formatter, special: str) -> pa.Array:
    """The text of values between braces, the word NULL for NULL.

    Quoted are the empty text, the word NULL in any case, and what holds one of the characters
    `special`; what is in braces itself stays as it is.
    """
    texts = formatter.write(values)
    if not formatter.nests:
        texts = _quoted_elements(texts, special)
    return pc.fill_null(texts, text_scalar("NULL"))


def in_braces(lists: pa.Array, texts: pa.Array) -> pa.Array:
    """`{a,b}` for each list; `texts` are those of the elements of all lists that are not NULL."""
    lengths = pc.fill_null(pc.cast(pc.list_value_length(lists), pa.int64()), 0)
    ends = pc.cumulative_sum(lengths)
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
    joined = pc.binary_join(pa.LargeListArray.from_arrays(offsets, texts), text_scalar(","))
    # A NULL list became an empty one.
    return pc.if_else(
        lists.is_valid(), concatenated("{", joined, "}"), pa.scalar(None, joined.type)
    )


def _quoted_elements(texts: pa.Array, special: str) -> pa.Array:
    known = TextBytes(texts)
    mask = either(known.holding(special), known.equal_to(""))
    if known.has_text_in_any_case("null"):
        mask = either(mask, pc.equal(pc.ascii_upper(known.values), text_scalar("NULL")))
    return texts if mask is None else quoted(texts, mask, '"', "\\")


def map_text(maps: pa.Array, key: Formatter, value: Formatter) -> pa.Array:
    """Lists of structs `(key, value)` as `large_string`, the entries in the order they are in.

    Keys and values are quoted as the elements of arrays are, and if they hold `=` or `>`. Arrays
    and maps among them stay as they are: `{a=>{1,2}}`.
    """
    keys, values = maps.flatten().flatten()
    entries = concatenated(
        element_text(keys, key, MAP_SPECIAL), "=>", element_text(values, value, MAP_SPECIAL)
    )
    return in_braces(maps, entries)


def record_text(structs: pa.Array, formatters: Sequence[Formatter]) -> pa.Array:
    """A struct array as `large_string`; `formatters` are those of the fields, in order.

    A NULL field is nothing at all between its commas, an empty text is `""`.
    """
    if not formatters:
        fields = pa.repeat(text_scalar(""), len(structs))
    else:
        # Of this slice; what is under a NULL struct is NULL.
        columns = zip(structs.flatten(), formatters, strict=True)
        texts = [_quoted_field(formatter.write(values)) for values, formatter in columns]
        fields = pc.binary_join_element_wise(
            *texts, text_scalar(","), null_handling="replace", null_replacement=""
        )
    return pc.if_else(
        structs.is_valid(), concatenated("(", fields, ")"), pa.scalar(None, pa.large_string())
    )


def _quoted_field(texts: pa.Array) -> pa.Array:
    known = TextBytes(texts)
    mask = either(known.holding(RECORD_SPECIAL), known.equal_to(""))
    return texts if mask is None else quoted_doubling(texts, mask, '"\\')


class Lines:
    """`data[offsets[i]:offsets[i + 1]]` is line i, its newline included."""

    def __init__(self, lines: pa.Array) -> None:
        _, offsets, data = lines.buffers()
        self.offsets = memoryview(offsets).cast("q")[: len(lines) + 1]
        self.data = memoryview(data) if data is not None else memoryview(b"")

    def __len__(self) -> int:
        return len(self.offsets) - 1
