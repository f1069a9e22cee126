"""Where dbt searches for the macros that a package dispatches."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from dbt.adapters.mzs3.impl import PACKAGES, search_own_macros
from dbt.include import mzs3

MACROS = Path(mzs3.__file__).parent / "macros" / "packages"


def orders(*entries):
    config = SimpleNamespace(project_name="acme", dispatch=list(entries))
    search_own_macros(config)
    return {each["macro_namespace"]: each["search_order"] for each in config.dispatch}


def entry(package, *order):
    return {"macro_namespace": package, "search_order": list(order)}


def test_there_is_a_file_of_macros_for_each_package():
    assert [path.stem for path in sorted(MACROS.glob("*.sql"))] == list(PACKAGES)


def test_the_adapters_macros_come_after_the_projects_and_before_the_packages():
    assert orders()["dbt_utils"] == ["acme", "dbt", "dbt_utils"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["acme", "shim", "dbt_utils"], ["acme", "shim", "dbt", "dbt_utils"]),
        (["acme", "dbt_utils", "dbt"], ["acme", "dbt_utils", "dbt"]),
        (["acme", "shim"], ["acme", "shim"]),
    ],
)
def test_a_projects_own_order_is_kept(given, expected):
    assert orders(entry("dbt_utils", *given))["dbt_utils"] == expected


def test_of_two_entries_for_a_package_the_first_counts():
    found = orders(entry("dbt_utils", "shim", "dbt_utils"), entry("dbt_utils", "dbt_utils"))
    assert found["dbt_utils"] == ["shim", "dbt", "dbt_utils"]


def test_other_packages_are_searched_as_the_project_says():
    found = orders(entry("spark_utils", "acme", "spark_utils"))
    assert found["spark_utils"] == ["acme", "spark_utils"]
    assert sorted(found) == sorted([*PACKAGES, "spark_utils"])


def test_the_entries_of_the_project_are_not_changed():
    given = entry("dbt_utils", "acme", "dbt_utils")
    orders(given)
    assert given == entry("dbt_utils", "acme", "dbt_utils")


def test_a_command_without_a_project_has_nothing_to_search():
    config = SimpleNamespace()
    search_own_macros(config)
    assert not hasattr(config, "dispatch")
