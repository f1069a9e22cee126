"""Structs as the text of PostgreSQL's composite types: `(1,"a b",,"")`."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.formats.csv.quoting import (
    WHITESPACE,
    TextBytes,
    concatenated,
    either,
    quoted_doubling,
    text_scalar,
)
from dbt.adapters.mzs3.formats.csv.scalars import Form

# What makes PostgreSQL put quotes around a field, beside the empty text.
SPECIAL = '(),"\\' + WHITESPACE


def record_text(structs: pa.Array, forms: Sequence[Form]) -> pa.Array:
    """A struct array as `large_string`; `forms` are those of the fields, in order.

    A NULL field is nothing at all between its commas, an empty text is `""`.
    """
    if not forms:
        fields = pa.repeat(text_scalar(""), len(structs))
    else:
        # Of this slice; what is under a NULL struct is NULL.
        columns = zip(structs.flatten(), forms, strict=True)
        texts = [_quoted(form.write(values)) for values, form in columns]
        fields = pc.binary_join_element_wise(
            *texts, text_scalar(","), null_handling="replace", null_replacement=""
        )
    return pc.if_else(
        structs.is_valid(), concatenated("(", fields, ")"), pa.scalar(None, pa.large_string())
    )


def _quoted(texts: pa.Array) -> pa.Array:
    known = TextBytes(texts)
    mask = either(known.holding(SPECIAL), known.equal_to(""))
    return texts if mask is None else quoted_doubling(texts, mask, '"\\')
