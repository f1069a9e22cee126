"""Types as users write them."""

from __future__ import annotations

import re

from dbt.adapters.mzs3.shard.types.kind import (
    ACL_ITEM,
    INT2VECTOR,
    MZ_ACL_ITEM,
    SCALARS,
    Type,
    array_of,
    list_of,
    map_of,
    range_of,
    record_of,
)

_NAME = re.compile(r"\s*(?:numeric\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)|(\w+))")
_WITHOUT_PARAMETERS = {"int2vector": INT2VECTOR, "acl_item": ACL_ITEM, "mz_acl_item": MZ_ACL_ITEM}
_OF_ONE = {"list": list_of, "array": array_of, "range": range_of}
_CONTAINERS = (*_OF_ONE, "map", "record")


def parse_type(text: str) -> Type:
    """The type that a text such as `range<numeric(10,2)>` names; raises ValueError."""
    kind, end = _type_at(text, 0)
    if text[end:].strip():
        raise ValueError(f"has {text[end:].strip()!r} after a type, in {text!r}")
    return kind


def _type_at(text: str, place: int) -> tuple[Type, int]:
    """The type that begins there, and where it ends."""
    found = _NAME.match(text, place)
    if found is None:
        raise ValueError(f"has no type at {text[place:]!r}, in {text!r}")
    precision, scale, name = found.groups()
    if precision:
        return Type("numeric", precision=int(precision), scale=int(scale)), found.end()
    if name in SCALARS:
        return Type(name), found.end()
    if name in _WITHOUT_PARAMETERS:
        return _WITHOUT_PARAMETERS[name], found.end()
    if name not in _CONTAINERS:
        known = ", ".join((*SCALARS, "numeric(p,s)", *_WITHOUT_PARAMETERS, *_CONTAINERS))
        raise ValueError(f"has {name!r}, which is no type of shards; those are {known}")
    inside, end = _types_inside(text, found.end())
    if name == "record":
        return record_of(*inside), end
    if name == "map" and len(inside) == 2:
        return map_of(*inside), end
    if name in _OF_ONE and len(inside) == 1:
        return _OF_ONE[name](*inside), end
    raise ValueError(f"has {name} with {len(inside)} types inside, in {text!r}")


def _types_inside(text: str, place: int) -> tuple[list[Type], int]:
    """The types in angle brackets that begin there, and where they end."""
    mark = re.compile(r"\s*<").match(text, place)
    if mark is None:
        raise ValueError(f"lacks a <, in {text!r}")
    kinds = []
    while mark is not None and ">" not in mark[0]:
        kind, place = _type_at(text, mark.end())
        kinds.append(kind)
        mark = re.compile(r"\s*[,>]").match(text, place)
    if mark is None:
        raise ValueError(f"lacks a >, in {text!r}")
    return kinds, mark.end()
