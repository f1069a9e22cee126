"""A column's values in an earlier type are the same values in a wider one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.shard.values import list_of, map_of, numerics, record_of, same, values_of, wire_array

from dbt.adapters.mzs3.shard.types import Type, is_wider, wire_type

NAMES = ("tinyint", "smallint", "integer", "bigint", "uint4", "uint8", "real", "double")
plain = st.sampled_from([Type(name) for name in NAMES]) | numerics
TEXT = Type("text")


@examples(200)
@given(plain, plain, st.sampled_from(["alone", "list", "record", "map"]), st.data())
def test_widened_values_are_the_same(
    kind: Type, target: Type, inside: str, data: st.DataObject
) -> None:
    wrap = {
        "alone": lambda found: found,
        "list": list_of,
        "record": lambda found: record_of(TEXT, found),
        "map": lambda found: map_of(TEXT, found),
    }[inside]
    kind, target = wrap(kind), wrap(target)
    if not is_wider(target, kind):
        return
    values: list[Any] = data.draw(st.lists(values_of(kind) | st.none(), max_size=5))
    before = wire_array(values, kind)
    same(before.cast(wire_type(target)), pa.array(before.to_pylist(), wire_type(target)))
