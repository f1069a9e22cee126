"""The state of a shard as the JSON document in S3."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from dbt.adapters.mzs3.shard.state.state import BatchFile, Retired, Schema, ShardBatch, ShardState
from dbt.adapters.mzs3.shard.types import Column, Type, type_from_json

FORMAT = 1


def to_document(state: ShardState, writer: str) -> bytes:
    """The state as JSON, the same bytes for the same state; `writer` is an id of the write."""
    document = {**vars(state), "format": FORMAT, "writer": writer, "upper": state.upper}
    text = json.dumps(document, default=_plain, indent=1, sort_keys=True, ensure_ascii=False)
    return text.encode() + b"\n"


def _plain(value: Any) -> Any:
    """A dataclass as a mapping of its fields; the `kind` of a column is its `type`."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Type):
        return value.as_json()
    if isinstance(value, Column):
        return {"type" if name == "kind" else name: part for name, part in vars(value).items()}
    return vars(value)


def from_document(data: bytes) -> ShardState:
    """The state that `to_document` wrote; raises ValueError, which says what is wrong."""
    try:
        found: Any = json.loads(data)
        if found["format"] != FORMAT:
            raise ValueError(f"it is of format {found['format']}, not {FORMAT}")
        return ShardState(
            tuple(
                Schema(int(one["id"]), int(one["since"]), tuple(map(_column, one["columns"])))
                for one in found["schemas"]
            ),
            int(found["next_tag"]),
            tuple(map(_batch, found["batches"])),
            int(found["since"]),
            tuple(Retired(str(file["name"]), int(file["at"])) for file in found["retired"]),
            int(found["sweeps"]),
            int(found.get("writes", 0)),  # which earlier versions lack
            tuple(map(str, found.get("recent", ()))),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it lacks {error}") from error


def _column(found: Mapping[str, Any]) -> Column:
    return Column(
        int(found["tag"]),
        str(found["name"]),
        type_from_json(found["type"]),
        str(found["spark"]),
        base64.b64decode(found["default"], validate=True),
    )


def _batch(found: Mapping[str, Any]) -> ShardBatch:
    return ShardBatch(
        int(found["lower"]),
        int(found["upper"]),
        int(found["schema"]),
        found["encoding"],
        tuple(
            BatchFile(str(file["name"]), int(file["size"]), str(file["etag"]), int(file["rows"]))
            for file in found["files"]
        ),
        int(found["additions"]),
        int(found["retractions"]),
        tuple(map(int, found["sort_by"])),
    )
