"""Columns of shards, and their types: as texts, in files, and between Spark and Python."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, get_args

import pyarrow as pa

from dbt.adapters.mzs3.types.table import MAX_DIGITS

BatchEncoding = Literal["dual", "structured", "codec"]
BATCH_ENCODINGS: tuple[BatchEncoding, ...] = get_args(BatchEncoding)
"""How files store rows: `codec` as messages, `structured` as Arrow columns, `dual` as both."""


@dataclass(frozen=True)
class Scalar:
    """A type without inner types: in Arrow between Spark and Python (`wire`), in Arrow in files
    (`storage`), and as a field of `Datum` (`codec`)."""

    wire: pa.DataType
    storage: pa.DataType
    codec: str


INTERVAL_PARTS = pa.struct([("months", pa.int32()), ("days", pa.int32()), ("micros", pa.int64())])
# Holds every unsigned number of 64 bits.
_UNSIGNED = pa.decimal128(20, 0)

# From Materialize's design "Self Describing Persist Batches", section Columnar Encodings.
SCALARS: Mapping[str, Scalar] = {
    "boolean": Scalar(pa.bool_(), pa.bool_(), "bool"),
    "tinyint": Scalar(pa.int8(), pa.int8(), "int32"),
    "smallint": Scalar(pa.int16(), pa.int16(), "int32"),
    "integer": Scalar(pa.int32(), pa.int32(), "int32"),
    "bigint": Scalar(pa.int64(), pa.int64(), "int64"),
    "uint4": Scalar(pa.int64(), pa.uint32(), "uint64"),
    "uint8": Scalar(_UNSIGNED, pa.uint64(), "uint64"),
    # 0.0 and -0.0 are equal, but have different bytes.
    "real": Scalar(pa.float32(), pa.float32(), "float"),
    "double": Scalar(pa.float64(), pa.float64(), "double"),
    "text": Scalar(pa.string(), pa.string(), "string"),
    "bytea": Scalar(pa.binary(), pa.binary(), "bytes"),
    # Days, and microseconds, since 1970-01-01.
    "date": Scalar(pa.date32(), pa.int32(), "date"),
    "timestamp": Scalar(pa.timestamp("us"), pa.int64(), "timestamp"),
    "timestamptz": Scalar(pa.timestamp("us", "UTC"), pa.int64(), "timestamp"),
    # Nanoseconds since midnight, as Spark can't group or cast its own time type; in files, seconds
    # and nanoseconds of 32 bits each, big-endian.
    "time": Scalar(pa.int64(), pa.binary(8), "time"),
    # In files, months, days and microseconds, big-endian, each with its sign bit flipped.
    "interval": Scalar(INTERVAL_PARTS, pa.binary(16), "interval"),
    # In files, a message `Datum` with the JSON text.
    "jsonb": Scalar(pa.string(), pa.binary(), "json"),
    "uuid": Scalar(pa.binary(), pa.binary(16), "bytes"),
    # Milliseconds since 1970-01-01.
    "mz_timestamp": Scalar(_UNSIGNED, pa.uint64(), "uint64"),
}

# The names of a record's fields in files. None: fields are named by position, as users may rename
# fields, or consider their names sensitive.
RECORDS: Mapping[str, tuple[str, ...] | None] = {
    "record": None,
    "array": ("elements", "dimensions"),
    "array_dimension": ("lower_bound", "length"),
    "range": ("lower", "upper"),
    "range_bound": ("inclusive", "bound"),
    "acl_item": ("grantee", "grantor", "acl_mode"),
    "mz_acl_item": ("grantee", "grantor", "acl_mode"),
}
LISTS = ("list", "int2vector")
LARGEST = {"uint4": 2**32 - 1, "uint8": 2**64 - 1, "mz_timestamp": 2**64 - 1}
"""The largest values of unsigned types, whose wire forms can hold larger ones."""
CONTAINERS = (*LISTS, "map", *RECORDS)
# The number of inner types; a record may have any number.
_CHILDREN = {"map": 2, **dict.fromkeys(LISTS, 1)}
_CHILDREN |= {name: len(fields) for name, fields in RECORDS.items() if fields is not None}


@dataclass(frozen=True)
class Type:
    """A type of a shard's column, by name, with its inner types. Raises ValueError if not valid.

    `children` are a list's element, a map's key and value, or a record's fields in order, which
    have no names here. `precision` and `scale` are a numeric's, in decimal digits.
    """

    name: str
    children: tuple[Type, ...] = ()
    precision: int = 0
    scale: int = 0

    def __post_init__(self) -> None:
        if self.name == "numeric":
            if not (0 < self.precision <= MAX_DIGITS and 0 <= self.scale <= self.precision):
                raise ValueError(
                    f"numeric({self.precision},{self.scale}) is no type; a numeric has 1 to "
                    f"{MAX_DIGITS} digits, and no more of them after the point"
                )
        elif self.name not in SCALARS and self.name not in CONTAINERS:
            raise ValueError(f"{self.name!r} is no type of shards")
        elif self.precision or self.scale:
            raise ValueError(f"{self.name} has no precision and no scale")
        count = _CHILDREN.get(self.name, 0)
        if self.name != "record" and len(self.children) != count:
            raise ValueError(f"{self.name} needs {count} types inside, not {len(self.children)}")

    def __str__(self) -> str:
        if self.name == "numeric":
            return f"numeric({self.precision},{self.scale})"
        if self.name in SCALARS:
            return self.name
        return f"{self.name}<{', '.join(map(str, self.children))}>"

    @property
    def element(self) -> Type:
        """The type of a list's elements; of a map's entries, which are records (key, value)."""
        return Type("record", self.children) if self.name == "map" else self.children[0]

    def holds(self, names: Container[str]) -> bool:
        """Whether the name of this type or of an inner type is one of these."""
        return self.name in names or any(child.holds(names) for child in self.children)

    def as_json(self) -> Any:
        """The type as a name or a mapping, for `type_from_json`."""
        if self.name == "numeric":
            return {"type": self.name, "precision": self.precision, "scale": self.scale}
        if self.name in SCALARS:
            return self.name
        return {"type": self.name, "of": [child.as_json() for child in self.children]}


def type_from_json(value: Any) -> Type:
    """The type in the result of `as_json`. Raises ValueError for anything else."""
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


BOOLEAN, SMALLINT, TEXT = Type("boolean"), Type("smallint"), Type("text")
BIGINT, UINT4, UINT8 = Type("bigint"), Type("uint4"), Type("uint8")

INT2VECTOR = Type("int2vector", (SMALLINT,))
ACL_ITEM = Type("acl_item", (UINT4, UINT4, UINT8))
MZ_ACL_ITEM = Type("mz_acl_item", (TEXT, TEXT, UINT8))


def array_of(element: Type) -> Type:
    """PostgreSQL's array: its elements in row-major order, and the dimensions."""
    dimension = Type("array_dimension", (BIGINT, UINT8))
    return Type("array", (Type("list", (element,)), Type("list", (dimension,))))


def range_of(bound: Type) -> Type:
    """The type of ranges. A bound whose value is NULL is infinite; empty ranges have no bounds."""
    end = Type("range_bound", (BOOLEAN, bound))
    return Type("range", (end, end))


# Other types that can hold all values of a type exactly; a double has 53 bits of precision.
_WIDER = {
    "tinyint": ("smallint", "integer", "bigint", "real", "double"),
    "smallint": ("integer", "bigint", "real", "double"),
    "integer": ("bigint", "double"),
    "real": ("double",),
    "uint4": ("uint8", "bigint"),
}
_INTEGER_DIGITS = {"tinyint": 3, "smallint": 5, "integer": 10, "bigint": 19}


def is_wider(target: Type, kind: Type) -> bool:
    """Whether `target` can hold all values of `kind` exactly; types of map keys must be equal."""
    if target == kind:
        return True
    if target.name == "numeric":
        whole = target.precision - target.scale
        if kind.name == "numeric":
            return whole >= kind.precision - kind.scale and target.scale >= kind.scale
        return kind.name in _INTEGER_DIGITS and whole >= _INTEGER_DIGITS[kind.name]
    if target.name != kind.name:
        return target.name in _WIDER.get(kind.name, ())
    if kind.name == "map" and kind.children[0] != target.children[0]:
        return False
    return len(kind.children) == len(target.children) and all(
        map(is_wider, target.children, kind.children)
    )


# Captures the word `timestamp`, but not inside a quoted name.
_INSTANT = re.compile(r"`(?:[^`]|``)*`|\b(timestamp)\b")


@dataclass(frozen=True)
class Column:
    """A column as users see it, and the tag that identifies it in files.

    `spark` is the type in Spark, as DDL. `default` is the value in batches from before the column
    was added: a message `Datum`, empty for NULL.
    """

    tag: int
    name: str
    kind: Type
    spark: str
    default: bytes = b""

    @property
    def spark_sql(self) -> str:
        """`spark` with `timestamp_ltz` for `timestamp`, whose meaning in SQL depends on
        `spark.sql.timestampType`."""
        return _INSTANT.sub(lambda found: f"{found[0]}_ltz" if found[1] else found[0], self.spark)


EXTENSION_KEY = b"ARROW:extension:name"
TIMES = {"time": pa.time64("ns")}
"""The Arrow type that Spark accepts from Python as its own time type."""


def storage_field(name: str, kind: Type, *, nullable: bool = True) -> pa.Field:
    """The field in files. It and the fields inside have the extension names of their types."""
    metadata = {EXTENSION_KEY: extension_name(kind).encode()}
    return pa.field(name, storage_type(kind), nullable=nullable, metadata=metadata)


def extension_name(kind: Type) -> str:
    """`materialize.persist.<version>.<name>`. Each type still has the first version."""
    return f"materialize.persist.1.{kind.name}"


def storage_type(kind: Type) -> pa.DataType:
    """The Arrow type in which values are stored."""
    if kind.name == "numeric":
        return NUMERIC_STORAGE
    if kind.name in SCALARS:
        return SCALARS[kind.name].storage
    if kind.name in RECORDS:
        names = RECORDS[kind.name] or map(str, range(len(kind.children)))
        fields = list(map(storage_field, names, kind.children))
        return pa.struct(fields) if fields else pa.bool_()  # Parquet has no groups without fields
    if kind.name == "map":
        key, value = kind.children
        return pa.map_(storage_field("key", key, nullable=False), storage_field("value", value))
    (element,) = kind.children
    return pa.list_(storage_field("item", element))


def wire_type(kind: Type, other: Mapping[str, pa.DataType] = MappingProxyType({})) -> pa.DataType:
    """The Arrow type of values between Spark and Python; `other` overrides it for some types.

    A record is a struct whose fields are named by position; a map is a list of such structs.
    """
    if kind.name == "numeric":
        return pa.decimal128(kind.precision, kind.scale)
    if kind.name in SCALARS:
        return other.get(kind.name, SCALARS[kind.name].wire)
    if kind.name in RECORDS:
        inside = enumerate(kind.children)
        return pa.struct([(str(place), wire_type(child, other)) for place, child in inside])
    return pa.list_(wire_type(kind.element, other))


NUMERIC_STORAGE = pa.struct(
    [storage_field("lossy", Type("double")), storage_field("actual", Type("bytea"))]
)
"""A numeric in files: the nearest double, and its exact digits."""


_NAME = re.compile(r"\s*(?:numeric\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)|(\w+))")
_WITHOUT_PARAMETERS = {"int2vector": INT2VECTOR, "acl_item": ACL_ITEM, "mz_acl_item": MZ_ACL_ITEM}
_WITH_PARAMETERS = ("list", "array", "range", "map", "record")


def parse_type(text: str) -> Type:
    """The type that a text such as `range<numeric(10,2)>` names; raises ValueError."""
    kind, end = _type_at(text, 0)
    if text[end:].strip():
        raise ValueError(f"has {text[end:].strip()!r} after a type, in {text!r}")
    return kind


def _type_at(text: str, place: int) -> tuple[Type, int]:
    """The type that begins at `place`, and where it ends."""
    matched = _NAME.match(text, place)
    if matched is None:
        raise ValueError(f"has no type at {text[place:]!r}, in {text!r}")
    precision, scale, name = matched.groups()
    if precision:
        return Type("numeric", precision=int(precision), scale=int(scale)), matched.end()
    if name in SCALARS:
        return Type(name), matched.end()
    if name in _WITHOUT_PARAMETERS:
        return _WITHOUT_PARAMETERS[name], matched.end()
    if name not in _WITH_PARAMETERS:
        allowed = ", ".join((*SCALARS, "numeric(p,s)", *_WITHOUT_PARAMETERS, *_WITH_PARAMETERS))
        raise ValueError(f"has {name!r}, which is no type of shards; those are {allowed}")
    mark = re.compile(r"\s*<").match(text, matched.end())
    if mark is None:
        raise ValueError(f"lacks a <, in {text!r}")
    inside = []
    while mark is not None and ">" not in mark[0]:
        kind, end = _type_at(text, mark.end())
        inside.append(kind)
        mark = re.compile(r"\s*[,>]").match(text, end)
    if mark is None:
        raise ValueError(f"lacks a >, in {text!r}")
    if name != "record" and len(inside) != (2 if name == "map" else 1):
        raise ValueError(f"has {name} with {len(inside)} types inside, in {text!r}")
    if name in ("array", "range"):
        return (array_of if name == "array" else range_of)(*inside), mark.end()
    return Type(name, tuple(inside)), mark.end()
