"""Types as users write them."""

from __future__ import annotations

import re

from dbt.adapters.mzs3.shard.types.kind import (
    ACL_ITEM,
    INT2VECTOR,
    MZ_ACL_ITEM,
    Type,
    array_of,
    list_of,
    map_of,
    range_of,
    record_of,
)
from dbt.adapters.mzs3.shard.types.table import SCALARS

_TOKEN = re.compile(r"\s*(?:(numeric)\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)|(\w+)|([<>,]))")
_WHOLE = {"int2vector": INT2VECTOR, "acl_item": ACL_ITEM, "mz_acl_item": MZ_ACL_ITEM}
_WITH_ONE = {"list": list_of, "array": array_of, "range": range_of}


def parse_type(text: str) -> Type:
    """The type that a text such as `range<numeric(10,2)>` names; raises ValueError."""
    tokens = _Tokens(text)
    kind = tokens.kind()
    if tokens.rest():
        raise ValueError(f"has {tokens.rest()!r} after a type, in {text!r}")
    return kind


class _Tokens:
    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0

    def rest(self) -> str:
        return self._text[self._place :].strip()

    def kind(self) -> Type:
        found = self._next()
        if found is None or found[5]:
            raise ValueError(f"has no type at {self._text[self._place :]!r}, in {self._text!r}")
        if found[1]:
            return Type("numeric", precision=int(found[2]), scale=int(found[3]))
        name = found[4]
        if name in SCALARS:
            return Type(name)
        if name in _WHOLE:
            return _WHOLE[name]
        inside = self._inside(name)
        if name in _WITH_ONE and len(inside) == 1:
            return _WITH_ONE[name](*inside)
        if name == "map" and len(inside) == 2:
            return map_of(*inside)
        if name == "record":
            return record_of(*inside)
        raise ValueError(f"has {name} with {len(inside)} types inside, in {self._text!r}")

    def _inside(self, name: str) -> list[Type]:
        if name not in (*_WITH_ONE, "map", "record"):
            known = ", ".join((*SCALARS, "numeric(p,s)", *_WHOLE, *_WITH_ONE, "map", "record"))
            raise ValueError(f"has {name!r}, which is no type of shards; those are {known}")
        self._expect("<")
        kinds = [self.kind()]
        while self._is(","):
            kinds.append(self.kind())
        self._expect(">")
        return kinds

    def _next(self) -> re.Match[str] | None:
        found = _TOKEN.match(self._text, self._place)
        if found is not None:
            self._place = found.end()
        return found

    def _is(self, mark: str) -> bool:
        found = _TOKEN.match(self._text, self._place)
        if found is None or found[5] != mark:
            return False
        self._place = found.end()
        return True

    def _expect(self, mark: str) -> None:
        if not self._is(mark):
            raise ValueError(f"lacks a {mark}, in {self._text!r}")
