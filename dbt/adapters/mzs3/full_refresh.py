"""When `--full-refresh` ingests sources again: only if a variable says so too."""

from __future__ import annotations

from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.mzs3.source_nodes import selected_sources
from dbt.adapters.mzs3.variables import variable

VARIABLE = "mzs3_full_refresh_sources"


def is_full_refresh(adapter: Any) -> bool:
    """Whether dbt was told to refresh models in full."""
    return bool(getattr(adapter.config.args, "FULL_REFRESH", False))


def sources_to_refresh(adapter: Any) -> frozenset[str]:
    """The unique ids of the sources to ingest afresh in this run of dbt.

    None without `--full-refresh`; with it those that the variable names, all of them if it is
    true. Raises DbtRuntimeError if it names what is no S3 CSV source.
    """
    return named_sources(adapter, VARIABLE) if is_full_refresh(adapter) else frozenset()


def named_sources(adapter: Any, name: str) -> frozenset[str]:
    """The unique ids of the sources that a variable names, all of them if it is true.

    Raises DbtRuntimeError if it names what is no S3 CSV source.
    """
    value = variable(adapter.config, name)
    if value is None or value is False:
        return frozenset()
    names = None if value is True else [value] if isinstance(value, str) else value
    if names is not None and not (
        isinstance(names, (list, tuple)) and all(isinstance(one, str) for one in names)
    ):
        raise DbtRuntimeError(
            f"the variable {name} must be true, false, or a list of sources such as "
            f"[lake.orders], not {value!r}"
        )
    nodes = selected_sources(adapter.get_macro_resolver(), names)
    return frozenset(node.unique_id for node in nodes)
