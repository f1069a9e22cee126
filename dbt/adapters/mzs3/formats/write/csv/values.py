"""The CSV text of values of any type, nested ones included."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.arrow.arrays import is_list, null_where, running_total
from dbt.adapters.mzs3.formats.write.csv.quoting import (
    WHITESPACE,
    TextBytes,
    concat,
    escapes,
    quote_values,
    text_scalar,
)
from dbt.adapters.mzs3.formats.write.csv.scalars import (
    INTERVAL_ALPHABET,
    Formatter,
    interval_text,
    scalar_formatter,
)
from dbt.adapters.mzs3.formats.write.format import PLAIN, LogicalType

# PostgreSQL quotes elements that contain one of these, are empty, or are the word NULL.
ARRAY_SPECIAL = '{},"\\' + WHITESPACE

# In maps, Materialize quotes keys and values by the same rules, and if they contain = or >.
MAP_SPECIAL = ARRAY_SPECIAL + "=>"

# PostgreSQL quotes fields of records that contain one of these, or are empty.
RECORD_SPECIAL = '(),"\\' + WHITESPACE


def formatter_of(data_type: pa.DataType, logical_type: LogicalType = PLAIN) -> Formatter | None:
    """The formatter for values of this Arrow type, as Spark sends them, that stand for
    `logical_type`; None if the type, or a type nested in it, has no text."""
    kind = logical_type.kind
    if kind == "interval":
        return Formatter(interval_text, INTERVAL_ALPHABET)
    if kind in ("plain", "variant"):
        if is_list(data_type):
            kind = "list"
        elif pa.types.is_struct(data_type):
            kind = "struct"
        else:
            return scalar_formatter(data_type)
    struct = data_type.value_type if kind == "map" else data_type  # a map is a list of structs
    types = [data_type.value_type] if kind == "list" else [field.type for field in struct]
    children = logical_type.of_children(len(types))
    formatters = [each for each in map(formatter_of, types, children) if each is not None]
    if len(formatters) < len(types):
        return None
    write = {"list": _array_text, "map": _map_text, "struct": _record_text}[kind]
    return Formatter(lambda values: write(values, formatters), None, has_braces=kind != "struct")


def value_text(values: pa.Array, logical_type: LogicalType = PLAIN) -> pa.Array:
    """The values' text. Raises TypeError for a type without text."""
    formatter = formatter_of(values.type, logical_type)
    if formatter is None:
        raise TypeError(f"no text for values of type {values.type}")
    return formatter.write(values)


def _array_text(lists: pa.Array, formatters: Sequence[Formatter]) -> pa.Array:
    # Arrays of arrays with different lengths or with a NULL array, which PostgreSQL does not have,
    # are written by the same rules: `{{1},{2,3},NULL}`.
    (element,) = formatters
    # `flatten` returns only this slice's elements, and leaves out what lies under NULL lists.
    elements = lists.flatten()
    return _lists_in_braces(lists, _element_text(elements, element, ARRAY_SPECIAL))


def _element_text(values: pa.Array, formatter: Formatter, special: str) -> pa.Array:
    """The texts of values as elements between braces, with the word NULL for NULL.

    Quotes the empty text, the word NULL in any case, and texts that contain one of the characters
    in `special`. Nested lists and maps, which have braces of their own, are not quoted.
    """
    texts = formatter.write(values)
    if not formatter.has_braces:
        text_bytes = TextBytes(texts)
        mask = text_bytes.mask_where(contains=special, equals=[""])
        if b"null" in text_bytes.data.lower():
            is_null = pc.equal(pc.ascii_upper(text_bytes.values), text_scalar("NULL"))
            mask = is_null if mask is None else pc.or_(mask, is_null)
        texts = quote_values(texts, mask, '"', escapes('"', "\\"))
    return pc.fill_null(texts, text_scalar("NULL"))


def _lists_in_braces(lists: pa.Array, texts: pa.Array) -> pa.Array:
    """`{a,b}` for each list; `texts` has the elements of all lists that are not NULL."""
    lengths = pc.fill_null(pc.cast(pc.list_value_length(lists), pa.int64()), 0)
    joined = pc.binary_join(
        pa.LargeListArray.from_arrays(running_total(lengths), texts), text_scalar(",")
    )
    # `binary_join` has made an empty text for each NULL list.
    return null_where(concat("{", joined, "}"), lists)


def _map_text(maps: pa.Array, formatters: Sequence[Formatter]) -> pa.Array:
    """`{a=>{1,2}}` for lists of structs `(key, value)`."""
    key, value = formatters
    keys, values = maps.flatten().flatten()
    entries = concat(
        _element_text(keys, key, MAP_SPECIAL), "=>", _element_text(values, value, MAP_SPECIAL)
    )
    return _lists_in_braces(maps, entries)


def _record_text(structs: pa.Array, formatters: Sequence[Formatter]) -> pa.Array:
    """`(a,b)` for structs; a NULL field is written as nothing, an empty text as `""`."""
    if not formatters:
        fields = pa.repeat(text_scalar(""), len(structs))
    else:
        # `flatten` returns fields of this slice, and NULL under a NULL struct.
        texts = map(_field_text, structs.flatten(), formatters)
        fields = pc.binary_join_element_wise(
            *texts, text_scalar(","), null_handling="replace", null_replacement=""
        )
    return null_where(concat("(", fields, ")"), structs)


def _field_text(values: pa.Array, formatter: Formatter) -> pa.Array:
    texts = formatter.write(values)
    mask = TextBytes(texts).mask_where(contains=RECORD_SPECIAL, equals=[""])
    return quote_values(texts, mask, '"', {'"': '""', "\\": "\\\\"})
