"""Lists as the text of PostgreSQL's arrays: `{1,NULL,"a b"}`, nested ones `{{1,2},{3,4}}`."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.formats.csv.quoting import (
    WHITESPACE,
    TextBytes,
    concatenated,
    either,
    quoted,
    text_scalar,
)
from dbt.adapters.mzs3.formats.csv.scalars import Form

# What makes PostgreSQL put quotes around an element, beside the empty text and the word NULL.
SPECIAL = '{},"\\' + WHITESPACE


def array_text(lists: pa.Array, element: Form) -> pa.Array:
    """A list array as `large_string`; `element` is the form of what is in the lists.

    PostgreSQL has no arrays of arrays of different lengths, and no NULL among inner arrays; these
    are written by the same rules, `{{1},{2,3},NULL}`.
    """
    elements = lists.flatten()  # of this slice, and nothing from under NULL lists
    return in_braces(lists, element_text(elements, element, SPECIAL))


def element_text(values: pa.Array, form: Form, special: str) -> pa.Array:
    """The text of values between braces, the word NULL for NULL.

    Quoted are the empty text, the word NULL in any case, and what holds one of the characters
    `special`; what is in braces itself stays as it is.
    """
    texts = form.write(values)
    if not form.nests:
        texts = _quoted(texts, special)
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


def _quoted(texts: pa.Array, special: str) -> pa.Array:
    known = TextBytes(texts)
    mask = either(known.holding(special), known.equal_to(""))
    if known.has_text_in_any_case("null"):
        mask = either(mask, pc.equal(pc.ascii_upper(known.values), text_scalar("NULL")))
    return texts if mask is None else quoted(texts, mask, '"', "\\")
