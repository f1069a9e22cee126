"""Types as users write them."""

from __future__ import annotations

import pytest
from support.shard.values import list_of, map_of, record_of

from dbt.adapters.mzs3.shard.types import (
    ACL_ITEM,
    INT2VECTOR,
    MZ_ACL_ITEM,
    Type,
    array_of,
    parse_type,
    range_of,
)

NUMERIC = Type("numeric", precision=10, scale=2)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("uuid", Type("uuid")),
        (" mz_timestamp ", Type("mz_timestamp")),
        ("numeric( 10 , 2 )", NUMERIC),
        ("int2vector", INT2VECTOR),
        ("acl_item", ACL_ITEM),
        ("mz_acl_item", MZ_ACL_ITEM),
        ("array<integer>", array_of(Type("integer"))),
        ("range< numeric(10,2)>", range_of(NUMERIC)),
        ("map<text, list<uuid>>", map_of(Type("text"), list_of(Type("uuid")))),
        ("record<text,range<date>,uint8>",
         record_of(Type("text"), range_of(Type("date")), Type("uint8"))),
    ],
)  # fmt: skip
def test_a_text_names_a_type(text: str, kind: Type) -> None:
    assert parse_type(text) == kind


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "has no type at ''"),
        ("uid", "has 'uid', which is no type of shards; those are boolean"),
        ("range", "lacks a <"),
        ("range<date", "lacks a >"),
        ("range<date, date>", "has range with 2 types inside"),
        ("map<text>", "has map with 1 types inside"),
        ("uuid uuid", "has 'uuid' after a type"),
        ("list<,>", "has no type at"),
        ("numeric(39,2)", "is no type"),
        ("numeric", "which is no type of shards"),
    ],
)
def test_what_names_none_says_why(text: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        parse_type(text)
