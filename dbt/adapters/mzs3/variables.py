"""dbt's variables, for what is no model and so can't ask for them with `var`."""

from __future__ import annotations

from typing import Any

from dbt_common.exceptions import DbtRuntimeError


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
