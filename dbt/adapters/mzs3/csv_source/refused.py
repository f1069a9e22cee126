"""Names of sources that Spark's catalog refuses, told as users gave them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from dbt.adapters.mzs3.csv_source.relations import SourceRelations

_CONDITION = "INVALID_SCHEMA_OR_RELATION_NAME"
_TAKEN = re.compile("[A-Za-z0-9_]+")


def refused_name(exc: Exception, relations: SourceRelations) -> str | None:
    """Which name of a source the catalog refuses, and the way out; None for any other failure.

    Spark itself tells the name of whichever of the source's relations came first.
    """
    if not isinstance(exc, PySparkException) or exc.getCondition() != _CONDITION:
        return None
    key, name = "schema", relations.schema
    if _TAKEN.fullmatch(name):
        key, name = "identifier", relations.identifier
    return (
        f"Spark's catalog does not take the {key} {name}: its names have letters, digits and _ "
        f"alone. Declare another {key}"
    )
