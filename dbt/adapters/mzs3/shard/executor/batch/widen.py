"""Values of a column's earlier type, as its later one."""

from __future__ import annotations

import pyarrow as pa

from dbt.adapters.mzs3.shard.types.kind import Type
from dbt.adapters.mzs3.shard.types.storage import wire_type


def widened(values: pa.Array, kind: Type, target: Type) -> pa.Array:
    """Wire values of `kind` as those of `target`, each the same value.

    Raises ArrowInvalid for a value that `target` does not have.
    """
    if kind == target:
        return values
    return values.cast(wire_type(target))
