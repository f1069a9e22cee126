"""Changes to values wherever they are in a column, as Spark expressions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T


@dataclass(frozen=True)
class Change:
    """What `make` does to the types that it `concerns`, also inside of arrays and structs.

    What concerns no part of a column leaves the column the reference that it is.
    """

    concerns: Callable[[T.DataType], bool]
    make: Callable[[Column, T.DataType], Column]

    def is_needed(self, kind: T.DataType) -> bool:
        """Whether the type, or one inside of it, is concerned."""
        if isinstance(kind, T.ArrayType):
            return self.is_needed(kind.elementType)
        if isinstance(kind, T.StructType):
            return any(self.is_needed(field.dataType) for field in kind.fields)
        return self.concerns(kind)

    def of(self, column: Column, kind: T.DataType) -> Column:
        """The column, of type `kind`, changed; NULL stays NULL, structs included."""
        if not self.is_needed(kind):
            return column
        if isinstance(kind, T.ArrayType):
            element = kind.elementType
            return F.transform(column, lambda item: self.of(item, element))
        if isinstance(kind, T.StructType):
            fields = [
                self.of(column.getField(field.name), field.dataType).alias(field.name)
                for field in kind.fields
            ]
            return F.when(column.isNotNull(), F.struct(*fields))
        return self.make(column, kind)
