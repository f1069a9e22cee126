"""dbt's variables, for what is no model and so can't ask for them with `var`."""

from __future__ import annotations

from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.mzs3.project.sources import selected_sources

REFRESH_VARIABLE = "mzs3_full_refresh_sources"

LISTING_VARIABLE = "mzs3_full_listing"


def variable(config: Any, name: str) -> Any:
    """The variable's value in dbt's order: the command line, the project's own, everybody's; None
    if it is nowhere."""
    declared = config.vars.to_dict()
    of_project = declared.get(config.project_name) or {}
    for values in (config.cli_vars, of_project, declared):
        if name in values:
            return values[name]
    return None


def is_set(config: Any, name: str) -> bool:
    """Whether the variable is true; one that is nowhere is false.

    Raises DbtRuntimeError for any value but true and false.
    """
    value = variable(config, name)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise DbtRuntimeError(f"the variable {name} must be true or false, not {value!r}")


def is_full_refresh(adapter: Any) -> bool:
    """Whether dbt was told to refresh models in full."""
    return bool(getattr(adapter.config.args, "FULL_REFRESH", False))


def sources_to_refresh(adapter: Any) -> frozenset[str]:
    """The unique ids of the sources to ingest afresh in this run of dbt.

    None without `--full-refresh`; with it those that the variable names.
    """
    return named_sources(adapter, REFRESH_VARIABLE) if is_full_refresh(adapter) else frozenset()


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
