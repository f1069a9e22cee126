"""Which sources a run lists in full, though they say that their keys only grow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dbt.adapters.mzs3.csv_source.definition import SourceDefinition
from dbt.adapters.mzs3.full_refresh import named_sources

VARIABLE = "mzs3_full_listing"


def sources_to_list(adapter: Any) -> frozenset[str]:
    """The unique ids of the sources that the variable names, all of them if it is true.

    Raises DbtRuntimeError if it names what is no S3 CSV source.
    """
    return named_sources(adapter, VARIABLE)


def listed_in_full(definition: SourceDefinition) -> SourceDefinition:
    """The source as if its next full listing were due."""
    return replace(definition, listing=replace(definition.listing, full_hours=0))
