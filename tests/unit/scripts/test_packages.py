"""What the script of packages makes of dbt's results and of the runs so far."""

from __future__ import annotations

import json
from pathlib import Path

import packages
import pytest
import yaml
from packages import Figures, Package


def figures(package: str, kind: str, failed: list[str], **counts: int) -> Figures:
    return Figures(package, kind, "1.4.1", "2026-11-27", counts, failed)


def test_outcomes_are_dbts_statuses_in_four_words(tmp_path: Path) -> None:
    statuses = {
        "a": "success",
        "b": "pass",
        "c": "warn",
        "d": "error",
        "e": "fail",
        "f": "skipped",
    }
    results = [{"unique_id": node, "status": status} for node, status in statuses.items()]
    (tmp_path / "run_results.json").write_text(json.dumps({"results": results}))
    found = packages.outcomes_of(tmp_path / "run_results.json")
    assert [found[each] for each in statuses] == ["pass", "pass", "warn", "fail", "fail", "skip"]


def test_results_count_for_one_step_only(tmp_path: Path) -> None:
    results = [{"unique_id": "seed.a", "status": "success"}]
    (tmp_path / "run_results.json").write_text(json.dumps({"results": results}))
    assert packages.outcomes_of(tmp_path / "run_results.json") == {"seed.a": "pass"}
    assert packages.outcomes_of(tmp_path / "run_results.json") == {}


def test_only_what_dbt_spark_passes_fails_here_alone() -> None:
    found = [
        figures("dbt_utils", "mzs3", ["model.a", "test.b"]),
        figures("dbt_utils", "spark", ["model.a", "test.c"]),
        figures("dbt_date", "mzs3", ["test.d"]),
    ]
    assert list(packages.only_here(found)) == ["test.b"]


def test_settings_are_added_key_by_key() -> None:
    project = {"name": "tests", "vars": {"a": 1, "b": {"c": 2}}, "seeds": {}}
    settings = {"vars": {"b": {"d": 3}}, "seeds": {"+x": 1}, "models": {"+y": 2}}
    assert packages.merged(project, settings) == {
        "name": "tests",
        "vars": {"a": 1, "b": {"c": 2, "d": 3}},
        "seeds": {"+x": 1},
        "models": {"+y": 2},
    }
    assert project["vars"] == {"a": 1, "b": {"c": 2}}


def test_a_row_has_both_adapters_and_a_dash_for_what_did_not_run() -> None:
    made = packages.table(
        [
            figures("dbt_utils", "mzs3", [], **{"pass": 233, "fail": 4}),
            figures("dbt_utils", "spark", [], **{"pass": 200, "warn": 1, "skip": 36}),
            figures("dbt_date", "mzs3", [], **{"pass": 1}),
        ]
    )
    assert made.splitlines()[-2:] == [
        "| dbt_utils | 1.4.1 | 233 pass, 4 fail | 200 pass, 1 warn, 36 skip | 2026-11-27 |",
        "| dbt_date | 1.4.1 | 1 pass | - | 2026-11-27 |",
    ]


def test_the_table_replaces_the_one_before() -> None:
    page = "# Packages\n\n<!-- figures -->\nold\n<!-- end -->\n\nMore.\n"
    once = packages.with_table(page, "new")
    assert once == "# Packages\n\n<!-- figures -->\nnew\n<!-- end -->\n\nMore.\n"
    assert packages.with_table(once, "new") == once


@pytest.mark.parametrize("kind", packages.TYPES)
def test_the_tests_get_a_profile_and_only_local_packages(tmp_path: Path, kind: str) -> None:
    (tmp_path / "dbt_project.yml").write_text("{name: tests, profile: integration}")
    (tmp_path / "packages.yml").write_text("packages: [{package: dbt-labs/dbt_utils}]")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "lake.yml").write_text("location: s3://public/csv/")
    package = Package(
        "dbt-labs/x", also=("inner",), settings={"vars": {"a": 1}}, bucket="s3://public"
    )
    packages.prepare(package, tmp_path, [tmp_path / "x"], kind)
    written = {path.name: yaml.safe_load(path.read_text()) for path in tmp_path.glob("*.yml")}
    lake = (tmp_path / "models" / "lake.yml").read_text()
    assert lake == f"location: {tmp_path}/public_data/csv/"
    assert written["dbt_project.yml"]["vars"] == {"a": 1}
    assert written["packages.yml"]["packages"] == [
        {"local": str(tmp_path / "x")},
        {"local": "inner"},
    ]
    assert written["profiles.yml"]["integration"]["outputs"][kind]["type"] == kind
