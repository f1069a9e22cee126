"""The run-operations that get a source out of an error, as a user would type them."""

from __future__ import annotations

import json
from collections.abc import Sequence


def objects_hint(operation: str, source: str, objects: Sequence[str]) -> str:
    """The command that does the operation to these objects of a source."""
    listed = ", ".join(json.dumps(name, ensure_ascii=False) for name in objects)
    return _command(operation, f"source: {source}, objects: [{listed}]")


def reset_hint(source: str) -> str:
    """The command that drops all that was ingested of a source."""
    return _command("reset_s3_source", f"source: {source}, confirm: true")


def unlock_hint(source: str) -> str:
    """The command that takes the source's lock away from whoever has it."""
    return _command("unlock_s3_source", f"source: {source}")


def _command(operation: str, arguments: str) -> str:
    # In a shell, a single quote ends what another one began.
    escaped = arguments.replace("'", "'\\''")
    return f"dbt run-operation {operation} --args '{{{escaped}}}'"
