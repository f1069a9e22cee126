"""What a column of a shard holds: a type's name, and the types inside of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.mzs3.shard.types.table import CONTAINERS, DIGITS, RECORDS, SCALARS

_INTEGERS = ("tinyint", "smallint", "integer", "bigint")
_INTEGER_DIGITS = {"tinyint": 3, "smallint": 5, "integer": 10, "bigint": 19}
# Exactly: of a double, 53 bits are digits.
_FLOATS = {"tinyint": ("real", "double"), "smallint": ("real", "double"), "integer": ("double",)}
_OTHERS = {("real", "double"), ("uint4", "uint8"), ("uint4", "bigint")}
_NESTED = frozenset({"list", "map", "record", "range", "range_bound", "array"})


@dataclass(frozen=True)
class Type:
    """A name of the table of types, and what is inside: valid by construction, else ValueError.

    `children`: of a list its element, of a map its key and value, of a record its fields in order,
    which have no names here. `precision` and `scale` are those of a numeric, in decimal digits.
    """

    name: str
    children: tuple[Type, ...] = ()
    precision: int = 0
    scale: int = 0

    def __post_init__(self) -> None:
        if self.name == "numeric":
            if not (0 < self.precision <= DIGITS and 0 <= self.scale <= self.precision):
                raise ValueError(
                    f"numeric({self.precision},{self.scale}) is no type; a numeric has 1 to "
                    f"{DIGITS} digits, and no more of them after the point"
                )
        elif self.name not in SCALARS and self.name not in CONTAINERS:
            raise ValueError(f"{self.name!r} is no type of shards")
        elif self.precision or self.scale:
            raise ValueError(f"{self.name} has no precision and no scale")
        wanted = _children_of(self.name)
        if wanted is not None and len(self.children) != wanted:
            raise ValueError(f"{self.name} needs {wanted} types inside, not {len(self.children)}")

    def __str__(self) -> str:
        if self.name == "numeric":
            return f"numeric({self.precision},{self.scale})"
        if self.name in SCALARS:
            return self.name
        return f"{self.name}<{', '.join(map(str, self.children))}>"

    def as_json(self) -> Any:
        """Plain values that `type_from_json` reads back: a name, or a mapping."""
        if self.name == "numeric":
            return {"type": self.name, "precision": self.precision, "scale": self.scale}
        if self.name in SCALARS:
            return self.name
        return {"type": self.name, "of": [child.as_json() for child in self.children]}


def type_from_json(value: Any) -> Type:
    """The type that `as_json` wrote; raises ValueError for anything else."""
    if isinstance(value, str):
        return Type(value)
    if not isinstance(value, Mapping) or "type" not in value:
        raise ValueError(f"{value!r} is no type of shards")
    return Type(
        str(value["type"]),
        tuple(type_from_json(child) for child in value.get("of", ())),
        int(value.get("precision", 0)),
        int(value.get("scale", 0)),
    )


def _children_of(name: str) -> int | None:
    """How many types are inside; None for a record, which has any number."""
    if name in SCALARS or name == "numeric":
        return 0
    if name in RECORDS:
        fields = RECORDS[name]
        return None if fields is None else len(fields)
    return CONTAINERS[name].children


BOOLEAN, SMALLINT, TEXT = Type("boolean"), Type("smallint"), Type("text")
BIGINT, UINT4, UINT8 = Type("bigint"), Type("uint4"), Type("uint8")

INT2VECTOR = Type("int2vector", (SMALLINT,))
ACL_ITEM = Type("acl_item", (UINT4, UINT4, UINT8))
MZ_ACL_ITEM = Type("mz_acl_item", (TEXT, TEXT, UINT8))


def list_of(element: Type) -> Type:
    """Lists, of which all have as many dimensions as the type says."""
    return Type("list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """Maps with distinct keys, none of them NULL, in their order."""
    return Type("map", (key, value))


def record_of(*fields: Type) -> Type:
    """Records whose fields are known by their place."""
    return Type("record", fields)


def array_of(element: Type) -> Type:
    """PostgreSQL's arrays: elements in row-major order, and each dimension's bound and length."""
    dimension = Type("array_dimension", (BIGINT, UINT8))
    return Type("array", (list_of(element), list_of(dimension)))


def range_of(bound: Type) -> Type:
    """Ranges: a bound that is NULL is infinite, and a range with neither is empty."""
    end = Type("range_bound", (BOOLEAN, bound))
    return Type("range", (end, end))


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
