"""Runs the integration tests of dbt packages on local Spark, with dbt-mzs3 and with dbt-spark.

Run it as `python scripts/packages.py [PACKAGE …]`. Each package comes from GitHub, or from a
folder of clones (`--clones`). With `--page` the figures of all runs so far become the table in
docs/packages.md.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from importlib.metadata import version as of
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "packages.md"
WORK = ROOT / ".packages"
TYPES = ("mzs3", "spark")
BEGIN, END = "<!-- figures -->\n", "<!-- end -->"
OUTCOMES = dict.fromkeys(("success", "pass", "no-op"), "pass") | {"warn": "warn"}
OUTCOMES |= dict.fromkeys(("fail", "error", "runtime error", "partial success"), "fail")
OUTCOMES |= {"skipped": "skip"}
DID_NOT_END = 2  # dbt's exit code where a hook of a run or dbt itself has failed, and no node


@dataclass(frozen=True)
class Package:
    """A package, as `owner/name@commit`; `settings` are added to the project of its tests, whose
    folder `public_data` stands for the `bucket`; `steps` are dbt's commands, which count but for
    run-operations."""

    repository: str
    tests: str = "integration_tests"
    needs: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    steps: tuple[str, ...] = ("build",)
    settings: Mapping[str, Any] = field(default_factory=dict)
    bucket: str = "no bucket"


STAGE = "run-operation dbt_external_tables.stage_external_sources"
SPARK = {"dbt_external_tables_integration_tests": {"plugins": {"spark": {"+enabled": True}}}}
PACKAGES = {
    "dbt_utils": Package("dbt-labs/dbt-utils@700764c"),
    "dbt_date": Package("godatadriven/dbt-date@e706de9"),
    "dbt_expectations": Package("metaplane/dbt-expectations@77d3856", needs=("dbt_date",)),
    "audit_helper": Package("dbt-labs/dbt-audit-helper@3bd0ca4", needs=("dbt_utils",)),
    "codegen": Package(
        "dbt-labs/dbt-codegen@526cb1f",
        needs=("dbt_utils",),
        steps=("run-operation create_source_table", "seed", "run", "test"),
    ),
    "elementary": Package(
        "elementary-data/dbt-data-reliability@ccb0de3",
        "integration_tests/dbt_project",
        needs=("dbt_utils",),
        steps=("build --select package:elementary",),
        settings={"models": {"elementary": {"+file_format": "parquet"}}},
    ),
    "dbt_artifacts": Package(
        "brooklyn-data/dbt_artifacts@6d37fa0",
        "integration_test_project",
        settings={"vars": {"dbt_artifacts_database": None}},
    ),
    "dbt_project_evaluator": Package(
        "dbt-labs/dbt-project-evaluator@927abbd",
        needs=("dbt_utils",),
        also=("exclude_package",),
        settings={"vars": {"max_depth_dag": 9}},
    ),
    "dbt_external_tables": Package(
        "dbt-labs/dbt-external-tables@c33165e",
        needs=("dbt_utils",),
        steps=("seed", STAGE, STAGE, "test"),
        settings={"sources": SPARK, "tests": SPARK},
        bucket="s3://dbt-external-tables-testing",
    ),
}


@dataclass(frozen=True)
class Figures:
    """What one run of a package's tests gave: counts by outcome, and what failed."""

    package: str
    type: str
    version: str
    day: str
    counts: dict[str, int]
    failed: list[str]


def main() -> int:
    """Run what the command line names; 1 if something fails that passes with dbt-spark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=", ".join(PACKAGES))
    parser.add_argument("--clones", type=Path, help="a folder with the repositories")
    parser.add_argument("--types", nargs="+", choices=TYPES, default=TYPES)
    parser.add_argument("--page", action="store_true", help="write docs/packages.md")
    wanted = parser.parse_args()
    if unknown := set(wanted.packages) - set(PACKAGES):
        parser.error(f"no such package: {', '.join(sorted(unknown))}")
    for name in wanted.packages or ([] if wanted.page else PACKAGES):
        for kind in wanted.types:
            figures = run(name, kind, wanted.clones)
            (WORK / f"{name}.{kind}.json").write_text(json.dumps(asdict(figures)))
            print(f"{name} with {kind}: {in_words(figures.counts)}", flush=True)
            print("".join(f"  {each}\n" for each in figures.failed), end="", flush=True)
    found = [Figures(**json.loads(path.read_text())) for path in sorted(WORK.glob("*.json"))]
    for each in only_here(found):
        print(f"fails with mzs3 alone: {each}")
    if wanted.page:
        PAGE.write_text(with_table(PAGE.read_text(), table(found)))
    return int(any(only_here(found)))


def run(name: str, kind: str, clones: Path | None) -> Figures:
    """Run the package's tests with a profile of the type, in a clone of its own."""
    package, folder = PACKAGES[name], WORK / kind / name
    shutil.rmtree(folder, ignore_errors=True)
    for each in (name, *package.needs):
        source, commit = PACKAGES[each].repository.split("@")
        source = str(clones / source.split("/")[1]) if clones else f"https://github.com/{source}"
        subprocess.run(["git", "clone", "--quiet", source, folder / each], check=True)
        subprocess.run(["git", "-C", folder / each, "checkout", "--quiet", commit], check=True)
        (folder / each / "packages.yml").unlink(missing_ok=True)  # those that it asks the hub for
    tests = folder / name / package.tests
    prepare(package, tests, [folder / each for each in (name, *package.needs)], kind)
    outcomes: dict[str, str] = {}
    dbt("deps", tests)
    for step in package.steps:
        code = dbt(step, tests)
        if not step.startswith("run-operation"):
            outcomes |= outcomes_of(tests / "target" / "run_results.json")
        if code == DID_NOT_END:
            outcomes[f"dbt {step}"] = "fail"
    described = ["git", "-C", str(folder / name), "describe", "--tags", "--always"]
    return Figures(
        package=name,
        type=kind,
        version=subprocess.check_output(described, text=True).strip(),
        day=datetime.now(timezone.utc).date().isoformat(),
        counts=dict(Counter(outcomes.values())),
        failed=sorted(node for node, outcome in outcomes.items() if outcome == "fail"),
    )


def prepare(package: Package, tests: Path, packages: Iterable[Path], kind: str) -> None:
    """Write the profile, the packages and the settings of the tests' project."""
    for file in (tests / "models").rglob("*.yml"):
        file.write_text(file.read_text().replace(package.bucket, f"{tests}/public_data"))
    project_file = tests / "dbt_project.yml"
    project = merged(yaml.safe_load(project_file.read_text()), package.settings)
    project_file.write_text(yaml.safe_dump(project, sort_keys=False))
    local = [{"local": str(each)} for each in (*packages, *package.also)]
    (tests / "packages.yml").write_text(yaml.safe_dump({"packages": local}))
    (tests / "package-lock.yml").unlink(missing_ok=True)
    output = {
        "type": kind,
        "method": "session",
        "host": "localhost",  # which dbt-spark asks for
        "schema": "packages",
        "threads": 4,
        "server_side_parameters": {
            "spark.master": "local[2]",
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
            "spark.sql.warehouse.dir": str(tests / "warehouse"),
        },
    }
    profile = {project["profile"]: {"target": kind, "outputs": {kind: output}}}
    (tests / "profiles.yml").write_text(yaml.safe_dump(profile))


def merged(project: dict[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The project with the settings, those of a map key by key."""
    both = dict(project)
    for key, value in settings.items():
        inside = isinstance(value, Mapping) and isinstance(both.get(key), dict)
        both[key] = merged(both[key], value) if inside else value
    return both


def dbt(command: str, folder: Path) -> int:
    """dbt's exit code for the command, which it runs; its output is in the folder's `dbt.log`."""
    program = str(Path(sys.executable).with_name("dbt"))
    words = [program, *command.split(), "--profiles-dir", str(folder)]
    with (folder / "dbt.log").open("a") as log:
        return subprocess.run(words, cwd=folder, stdout=log, stderr=log, check=False).returncode


def outcomes_of(run_results: Path) -> dict[str, str]:
    """Each node of a step's run_results.json, which it removes: pass, warn, fail or skip."""
    if not run_results.exists():  # dbt has ended before the first node
        return {}
    found = json.loads(run_results.read_text())["results"]
    run_results.unlink()
    return {each["unique_id"]: OUTCOMES[each["status"]] for each in found}


def in_words(counts: Mapping[str, int]) -> str:
    """`233 pass, 4 fail`."""
    return ", ".join(f"{counts[x]} {x}" for x in dict.fromkeys(OUTCOMES.values()) if x in counts)


def only_here(found: Iterable[Figures]) -> Iterable[str]:
    """What fails with mzs3 and not with dbt-spark, of the packages that ran with both."""
    failed = {(each.package, each.type): set(each.failed) for each in found}
    for (package, kind), nodes in failed.items():
        if kind == "mzs3" and (package, "spark") in failed:
            yield from sorted(nodes - failed[package, "spark"])


def table(found: Iterable[Figures]) -> str:
    """The figures as a table in Markdown."""
    by_package = {(each.package, each.type): each for each in found}
    versions = f"dbt-core {of('dbt-core')}, dbt-spark {of('dbt-spark')}, pyspark {of('pyspark')}"
    lines = [f"With {versions}:", "", "| package | version | mzs3 | dbt-spark | day |"]
    lines.append("| --- | --- | --- | --- | --- |")
    for name in PACKAGES:
        if ours := by_package.get((name, "mzs3")):
            theirs = by_package.get((name, "spark"))
            beside = in_words(theirs.counts) if theirs else "-"
            cells = (name, ours.version, in_words(ours.counts), beside, ours.day)
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def with_table(page: str, made: str) -> str:
    """The page with the table between its two marks."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}{made}\n{END}{after}"


if __name__ == "__main__":
    sys.exit(main())
