"""SQL that packs narrow columns for sending, and unpacks them; workers use `arrow.packed`."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import types as T

from dbt.adapters.mzs3.arrow.packed import BITS, LANE_BITS, MAX_DOUBLE_DIGITS, PackedColumn
from dbt.adapters.mzs3.types.table import row_of


def packed_columns(schema: T.StructType) -> tuple[list[str], tuple[PackedColumn, ...]]:
    """SQL of the columns to send, and where in them each column of the schema is.

    Several narrow columns share a `bigint`. Decimals that a `double` can represent are sent as
    `double`. The columns have names that need no quotes.
    """
    sent: list[str] = []
    columns: dict[str, PackedColumn] = {}
    for lane in _lanes(schema):
        for name, (kind, shift) in lane.items():
            columns[name] = PackedColumn(len(sent), kind, shift)
        bits = " | ".join(_bits(name, kind, shift) for name, (kind, shift) in lane.items())
        sent.append(f"{bits} as b{len(sent)}")
    for field in schema.fields:
        if field.name in columns:
            continue
        kind = field.dataType
        if isinstance(kind, T.DecimalType) and kind.precision <= MAX_DOUBLE_DIGITS:
            decimal = pa.decimal128(kind.precision, kind.scale)
            columns[field.name] = PackedColumn(len(sent), decimal)
            sent.append(f"cast({field.name} as double) as {field.name}")
        else:
            columns[field.name] = PackedColumn(len(sent))
            sent.append(field.name)
    return sent, tuple(columns[field.name] for field in schema.fields)


def unpacked_columns(schema: T.StructType) -> list[str]:
    """SQL that restores the exact columns of the schema from `packed_columns`."""
    _, columns = packed_columns(schema)
    fields = zip(schema.fields, columns, strict=True)
    return [f"{_unpacked(f.name, f.dataType, column)} as {f.name}" for f, column in fields]


def _unpacked(name: str, kind: T.DataType, column: PackedColumn) -> str:
    stored = column.data_type
    if stored is None:
        return name
    if stored not in BITS:
        return f"cast({name} as {kind.simpleString()})"
    lane, width = f"b{column.sent}", BITS[stored]
    # Shifting to the left end and back extends the value's sign to all higher bits.
    value = f"shiftright(shiftleft({lane}, {63 - column.shift - width}), {64 - width})"
    if stored == pa.bool_():
        value = f"{value} <> 0"
    elif stored == pa.date32():
        value = f"date_from_unix_date(cast({value} as int))"
    else:
        value = f"cast({value} as {kind.simpleString()})"
    return f"if({lane} & {1 << column.shift}L = 0, null, {value})"


def _lanes(schema: T.StructType) -> list[dict[str, tuple[pa.DataType, int]]]:
    """Groups of columns that share a `bigint`: each column's sent type and first bit, by name."""
    rows = ((field.name, row_of(field.dataType.typeName())) for field in schema.fields)
    narrow = [(name, row.sent) for name, row in rows if row.bits]
    lanes: list[dict[str, tuple[pa.DataType, int]]] = []
    used: list[int] = []
    for name, kind in sorted(narrow, key=lambda column: -BITS[column[1]]):
        width = 1 + BITS[kind]
        fitting = (i for i, bits in enumerate(used) if bits + width <= LANE_BITS)
        place = next(fitting, len(lanes))
        if place == len(lanes):
            lanes.append({})
            used.append(0)
        lanes[place][name] = (kind, used[place])
        used[place] += width
    return [lane for lane in lanes if len(lane) > 1]


def _bits(name: str, kind: pa.DataType, shift: int) -> str:
    number = f"unix_date({name})" if kind == pa.date32() else name
    value = f"cast({number} as bigint) & {2 ** BITS[kind] - 1}L"
    return f"if(isnull({name}), 0L, shiftleft(shiftleft({value}, 1) | 1L, {shift}))"
