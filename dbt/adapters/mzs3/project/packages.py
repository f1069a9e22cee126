"""The dbt packages for which the adapter has macros of its own, in `macros/packages/`."""

from __future__ import annotations

from typing import Any

PACKAGES = (
    "audit_helper",
    "dbt_artifacts",
    "dbt_expectations",
    "dbt_external_tables",
    "dbt_utils",
)
_INTERNAL = "dbt"
"""What dbt calls the macros of adapters, as a place to search."""


def search_own_macros(config: Any) -> None:
    """Has these packages find the adapter's macros before their own, and after the project's.

    dbt searches adapters' macros only for packages whose `dispatch` in dbt_project.yml says so; a
    project that has such an entry keeps its order. dbt's own `date_spine` and `generate_series`
    then stand for those of dbt_utils, from which they were taken over.
    """
    if not hasattr(config, "dispatch"):  # a command that has no project
        return
    orders: dict[str, list[str]] = {}
    for each in config.dispatch:  # of several entries for a package, dbt takes the first
        orders.setdefault(each["macro_namespace"], each["search_order"])
    for package in PACKAGES:
        order = orders.get(package, [config.project_name, package])
        if _INTERNAL not in order and package in order:
            place = order.index(package)
            orders[package] = [*order[:place], _INTERNAL, *order[place:]]
    config.dispatch = [
        {"macro_namespace": package, "search_order": order} for package, order in orders.items()
    ]
