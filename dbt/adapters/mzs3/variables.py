"""dbt's variables, for what is no model and so can't ask for them with `var`."""

from __future__ import annotations

from typing import Any


def variable(config: Any, name: str) -> Any:
    """The variable's value in dbt's order: the command line, the project's own, everybody's; None
    if it is nowhere."""
    declared = config.vars.to_dict()
    of_project = declared.get(config.project_name, {})
    for values in (config.cli_vars, of_project, declared):
        if name in values:
            return values[name]
    return None
