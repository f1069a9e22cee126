"""What users install: the wheel, away from this checkout."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder / "content")
    return folder / "content"


def files_below(folder, ignored=("__pycache__",)):
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and not set(ignored) & set(path.parts)
    }


def test_the_wheel_has_every_file_of_the_adapter(wheel):
    for package in ("dbt/adapters/mzs3", "dbt/include/mzs3"):
        assert files_below(wheel / package) == files_below(ROOT / package)
    shipped = files_below(wheel / "dbt")
    assert {"adapters/mzs3/py.typed", "include/mzs3/dbt_project.yml"} <= shipped
    assert "include/mzs3/profile_template.yml" in shipped
    assert "include/mzs3/sample_profiles.yml" in shipped
    assert any(name.endswith("copy_to_s3.sql") for name in shipped)


def test_the_report_finds_its_templates_in_the_wheel(wheel):
    program = (
        "import dbt.adapters.mzs3\n"
        "from datetime import datetime, timezone\n"
        "from dbt.adapters.mzs3.export.report.page import render_report\n"
        "print(dbt.adapters.mzs3.__file__)\n"
        "print(render_report([], now=datetime.now(timezone.utc)))\n"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program],
        cwd=wheel,
        env={**os.environ, "PYTHONPATH": str(wheel)},
        capture_output=True,
        text=True,
    )
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith(str(wheel))
    assert shown.stdout.rstrip().endswith("</html>")


def test_the_wheel_has_none_of_the_files_that_dbts_packages_share(wheel):
    for shared in ("dbt", "dbt/adapters", "dbt/include"):
        assert not (wheel / shared / "__init__.py").exists()
    assert {path.name for path in wheel.iterdir() if not path.name.endswith(".dist-info")} == {
        "dbt"
    }


@pytest.mark.slow
def test_dbt_parses_the_sample_project_with_the_wheel(wheel, tmp_path):
    project = tmp_path / "sample_project"
    shutil.copytree(
        ROOT / "sample_project", project, ignore=shutil.ignore_patterns("target", "logs", ".spark")
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(wheel),
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        "DBT_ENV_SECRET_ACCESS_KEY_ID": "key",
        "DBT_ENV_SECRET_SECRET_ACCESS_KEY": "secret",
    }
    program = (
        "import sys, dbt.adapters.mzs3\n"
        "from dbt.cli.main import cli\n"
        "print(dbt.adapters.mzs3.__file__)\n"
        "cli(['parse', '--warn-error', '--show-all-deprecations'])\n"
    )
    parsed = subprocess.run(
        [sys.executable, "-c", program],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert parsed.returncode == 0, parsed.stdout + parsed.stderr
    assert parsed.stdout.startswith(str(wheel))
