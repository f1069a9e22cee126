"""Which types hold every value of another one, so that a column may become them."""

from __future__ import annotations

from dbt.adapters.mzs3.shard.types.kind import Type

_INTEGERS = ("tinyint", "smallint", "integer", "bigint")
_INTEGER_DIGITS = {"tinyint": 3, "smallint": 5, "integer": 10, "bigint": 19}
# Exactly: of a double, 53 bits are digits.
_FLOATS = {"tinyint": ("real", "double"), "smallint": ("real", "double"), "integer": ("double",)}
_OTHERS = {("real", "double"), ("uint4", "uint8"), ("uint4", "bigint")}
_NESTED = frozenset({"list", "map", "record", "range", "range_bound", "array"})


def is_wider(target: Type, kind: Type) -> bool:
    """Whether every value of `kind` is one of `target` too, and exactly so; also of itself.

    A nested type is wider if the types inside are; keys of maps stay what they are.
    """
    if target == kind:
        return True
    if kind.name == "numeric" or target.name == "numeric":
        return _is_wider_numeric(target, kind)
    if kind.name in _INTEGERS:
        wider = _INTEGERS[_INTEGERS.index(kind.name) + 1 :]
        return target.name in wider or target.name in _FLOATS.get(kind.name, ())
    if (kind.name, target.name) in _OTHERS:
        return True
    if kind.name != target.name or kind.name not in _NESTED:
        return False
    if len(kind.children) != len(target.children):
        return False
    if kind.name == "map" and kind.children[0] != target.children[0]:
        return False
    return all(map(is_wider, target.children, kind.children))


def _is_wider_numeric(target: Type, kind: Type) -> bool:
    if target.name != "numeric":
        return False
    whole = target.precision - target.scale
    if kind.name == "numeric":
        return whole >= kind.precision - kind.scale and target.scale >= kind.scale
    return whole >= _INTEGER_DIGITS.get(kind.name, whole + 1)
