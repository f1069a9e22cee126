"""Values of a column's earlier type, as its later one."""

from __future__ import annotations

import pyarrow as pa

from dbt.adapters.mzs3.shard.executor.codec.decode import values_of_datums
from dbt.adapters.mzs3.shard.executor.codec.encode import datums
from dbt.adapters.mzs3.shard.types.kind import Type
from dbt.adapters.mzs3.shard.types.storage import wire_type


def widened(values: pa.Array, kind: Type, target: Type) -> pa.Array:
    """Wire values of `kind` as those of `target`, each the same value.

    Raises ArrowInvalid for a value that `target` does not have.
    """
    if kind == target:
        return values
    return values.cast(wire_type(target))


def widened_datum(message: bytes, kind: Type, target: Type) -> bytes:
    """The message `Datum` of a value of `kind` as that of the same value of `target`."""
    if not message:
        return message
    [one] = datums(widened(values_of_datums(pa.array([message]), kind), kind, target), target)
    return bytes(one.as_py())
