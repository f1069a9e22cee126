"""The state of a shard as the JSON object that S3 holds."""

from __future__ import annotations

import json
from typing import Any

from dbt.adapters.mzs3.shard.state.batch import batch_from_json, retired_from_json
from dbt.adapters.mzs3.shard.state.schema import schema_from_json
from dbt.adapters.mzs3.shard.state.state import ShardState

FORMAT = 1


def to_document(state: ShardState, writer: str) -> bytes:
    """The state as JSON: the same bytes for the same state and writer.

    `writer` is an id of the one write, by which it is known again.
    """
    document = {
        "format": FORMAT,
        "writer": writer,
        "schemas": [schema.as_json() for schema in state.schemas],
        "next_tag": state.next_tag,
        "batches": [batch.as_json() for batch in state.batches],
        "since": state.since,
        "upper": state.upper,
        "retired": [file.as_json() for file in state.retired],
        "sweeps": state.sweeps,
        "writes": state.writes,
        "recent": list(state.recent),
    }
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False).encode() + b"\n"


def from_document(data: bytes) -> ShardState:
    """The state that `to_document` wrote; raises ValueError, which says what is wrong."""
    try:
        found: Any = json.loads(data)
        if found["format"] != FORMAT:
            raise ValueError(f"it is of format {found['format']}, not {FORMAT}")
        return ShardState(
            tuple(map(schema_from_json, found["schemas"])),
            int(found["next_tag"]),
            tuple(map(batch_from_json, found["batches"])),
            int(found["since"]),
            tuple(map(retired_from_json, found["retired"])),
            int(found["sweeps"]),
            int(found.get("writes", 0)),  # which earlier versions lack
            tuple(map(str, found.get("recent", ()))),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it lacks {error}") from error
