"""Lists as the text of PostgreSQL's arrays: `{1,NULL,"a b"}`, nested ones `{{1,2},{3,4}}`."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.copy.executor.csv.quoting import (
    TextBytes,
    concatenated,
    either,
    quoted,
    text_scalar,
)

# What makes PostgreSQL put quotes around an element, beside the empty text and the word NULL.
SPECIAL = '{},"\\ \t\n\v\f\r'


def is_list(data_type: pa.DataType) -> bool:
    """Whether the type is a list of either offset width."""
    return bool(pa.types.is_list(data_type) or pa.types.is_large_list(data_type))


def array_text(lists: pa.Array, text_of: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """A list array as `large_string`; `text_of` gives the text of the elements.

    PostgreSQL has no arrays of arrays of different lengths, and no NULL among inner arrays; these
    are written by the same rules, `{{1},{2,3},NULL}`.
    """
    elements = lists.flatten()  # of this slice, and nothing from under NULL lists
    texts = text_of(elements)
    if not is_list(elements.type):
        texts = _quoted_elements(texts)
    texts = pc.fill_null(texts, text_scalar("NULL"))
    lengths = pc.fill_null(pc.cast(pc.list_value_length(lists), pa.int64()), 0)
    ends = pc.cumulative_sum(lengths)
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
    joined = pc.binary_join(pa.LargeListArray.from_arrays(offsets, texts), text_scalar(","))
    # A NULL list became an empty one.
    return pc.if_else(
        lists.is_valid(), concatenated("{", joined, "}"), pa.scalar(None, joined.type)
    )


def _quoted_elements(texts: pa.Array) -> pa.Array:
    known = TextBytes(texts)
    mask = either(known.holding(SPECIAL), known.equal_to(""))
    if known.has_text_in_any_case("null"):
        mask = either(mask, pc.equal(pc.ascii_upper(known.values), text_scalar("NULL")))
    return texts if mask is None else quoted(texts, mask, '"', "\\")
