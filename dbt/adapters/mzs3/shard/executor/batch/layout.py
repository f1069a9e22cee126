"""How a batch's file is laid out, and what its metadata says of it.

(Materialize's design "Self Describing Persist Batches", sections Schemas and Column Naming, and
Introducing Columnar/Structured Data.)
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from dbt.adapters.mzs3.shard.types.kind import Type, type_from_json
from dbt.adapters.mzs3.shard.types.storage import storage_field

Encoding = Literal["dual", "structured", "codec"]
ENCODINGS: tuple[Encoding, ...] = ("dual", "structured", "codec")

# Counted up when structured columns change in a way that their own versions do not tell, or when
# those of a version turn out to be wrong.
VERSION = 1
# The versions whose structured columns are read.
TRUSTED = frozenset({1})

_METADATA_KEY = b"dbt-mzs3.batch"


@dataclass(frozen=True)
class TaggedColumn:
    """A column under its tag, a number that no other column of the shard ever had."""

    tag: int
    kind: Type


@dataclass(frozen=True)
class BatchLayout:
    """What is in a file: the columns in order, and in which encodings; no name of a user's."""

    columns: tuple[TaggedColumn, ...]
    encoding: Encoding = "dual"
    version: int = VERSION

    @property
    def has_codec(self) -> bool:
        """Whether rows are there as messages, in `k`."""
        return self.encoding != "structured"

    @property
    def has_structure(self) -> bool:
        """Whether rows are there as Arrow columns, in `k_s`."""
        return self.encoding != "codec"

    @property
    def is_trusted(self) -> bool:
        """Whether the structured columns may be read."""
        return self.has_structure and self.version in TRUSTED

    def file_schema(self) -> pa.Schema:
        """The schema of a file: `k`, `v`, `t`, `d`, and beside them `k_s` and `v_s`."""
        codec = [pa.field(name, pa.binary(), nullable=False) for name in ("k", "v")]
        numbers = [pa.field(name, pa.int64(), nullable=False) for name in ("t", "d")]
        structure = [
            pa.field("k_s", pa.struct(list(stored_fields(self.columns))), nullable=False),
            # There are no values, and Parquet has no groups without fields.
            pa.field("v_s", pa.bool_(), nullable=False),
        ]
        return pa.schema(
            [
                *(codec if self.has_codec else ()),
                *numbers,
                *(structure if self.has_structure else ()),
            ],
            metadata={_METADATA_KEY: self._as_json().encode()},
        )

    def _as_json(self) -> str:
        columns = [[column.tag, column.kind.as_json()] for column in self.columns]
        document = {"columns": columns, "encoding": self.encoding, "version": self.version}
        return json.dumps(document, separators=(",", ":"), sort_keys=True)


def stored_fields(columns: Iterable[TaggedColumn]) -> list[pa.Field]:
    """The fields of `k_s`: a column's name is its tag."""
    return [storage_field(str(column.tag), column.kind) for column in columns]


def layout_of(metadata: Mapping[bytes, bytes] | None) -> BatchLayout:
    """What the metadata of a file's schema says; raises ValueError if no shard has written it."""
    document = (metadata or {}).get(_METADATA_KEY)
    if document is None:
        raise ValueError("it is not a file of a shard's batch")
    try:
        found = json.loads(document)
        encoding, version = found["encoding"], int(found["version"])
        columns = _columns(found["columns"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"its metadata is not what a batch has: {error}") from error
    if encoding not in ENCODINGS:
        raise ValueError(f"its encoding {encoding!r} is not one of {', '.join(ENCODINGS)}")
    return BatchLayout(columns, encoding, version)


def _columns(found: Sequence[Sequence[object]]) -> tuple[TaggedColumn, ...]:
    return tuple(TaggedColumn(int(str(tag)), type_from_json(kind)) for tag, kind in found)
