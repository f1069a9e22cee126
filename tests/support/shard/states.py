"""Columns, batches and states to begin from."""

from __future__ import annotations

from dbt.adapters.mzs3.shard.state.state import BatchFile, ShardBatch
from dbt.adapters.mzs3.shard.types import Column, Type

SPARK = {"integer": "int", "bigint": "bigint", "text": "string", "double": "double"}


def given(**columns: str) -> list[Column]:
    return [column(tag, name, kind) for tag, (name, kind) in enumerate(columns.items())]


def column(tag: int, name: str, kind: str = "integer", default: bytes = b"") -> Column:
    return Column(tag, name, Type(kind), SPARK[kind], default)


def batch(lower: int, upper: int, *names: str, schema: int = 0) -> ShardBatch:
    files = tuple(BatchFile(name, 100, f'"{name}"', 5) for name in names)
    return ShardBatch(lower, upper, schema, "dual", files, additions=5 * len(names))
